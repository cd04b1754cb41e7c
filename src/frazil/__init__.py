"""Many writers, one snapshot: distributed, atomic, resumable writes into Apache Iceberg tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.errors import (
        AlreadyConsumed,
        BadInput,
        BatchAlreadyLanded,
        CommitConflict,
        CommitRefused,
        FrazilError,
        NotLanded,
        OutcomeUnknown,
        ReservationCancelled,
        ReservationExpired,
        SchemaMismatch,
        TooManyRejected,
        WriteFailed,
    )
    from frazil.snapshot.batch_progress import NumberedBatch
    from frazil.snapshot.cleanup import Sweep, sweep
    from frazil.snapshot.data_file import DataFile, FileContent
    from frazil.snapshot.descriptor import DistributedSnapshot
    from frazil.snapshot.manifest import ManifestWriter
    from frazil.snapshot.manifest_file import ManifestContent, ManifestFile
    from frazil.snapshot.outcome import Landed
    from frazil.snapshot.overwrite_scope import MatchingRows, TouchedPartitions, WholeTable
    from frazil.snapshot.publish_snapshot import publish_snapshot
    from frazil.snapshot.rejected_rows import RejectTo
    from frazil.snapshot.rejected_table import open_rejected
    from frazil.snapshot.report import Report
    from frazil.snapshot.reservation import begin_snapshot, cancel, renew
    from frazil.snapshot.schema_commit import merge_schema
    from frazil.snapshot.schema_merge import SchemaMerge
    from frazil.snapshot.write_shard import SnapshotWriter, report_files, write_shard

# Where each public name lives. They are imported on first use, because `frazil --help` must not pay for PyArrow.
_HOMES = {
    "frazil.errors": (
        "AlreadyConsumed",
        "BadInput",
        "BatchAlreadyLanded",
        "CommitConflict",
        "CommitRefused",
        "FrazilError",
        "NotLanded",
        "OutcomeUnknown",
        "ReservationCancelled",
        "ReservationExpired",
        "SchemaMismatch",
        "TooManyRejected",
        "WriteFailed",
    ),
    "frazil.snapshot.batch_progress": ("NumberedBatch",),
    "frazil.snapshot.cleanup": ("Sweep", "sweep"),
    "frazil.snapshot.data_file": ("DataFile", "FileContent"),
    "frazil.snapshot.descriptor": ("DistributedSnapshot",),
    "frazil.snapshot.manifest": ("ManifestWriter",),
    "frazil.snapshot.manifest_file": ("ManifestContent", "ManifestFile"),
    "frazil.snapshot.outcome": ("Landed",),
    "frazil.snapshot.overwrite_scope": ("MatchingRows", "TouchedPartitions", "WholeTable"),
    "frazil.snapshot.publish_snapshot": ("publish_snapshot",),
    "frazil.snapshot.rejected_rows": ("RejectTo",),
    "frazil.snapshot.rejected_table": ("open_rejected",),
    "frazil.snapshot.report": ("Report",),
    "frazil.snapshot.reservation": ("begin_snapshot", "cancel", "renew"),
    "frazil.snapshot.schema_commit": ("merge_schema",),
    "frazil.snapshot.schema_merge": ("SchemaMerge",),
    "frazil.snapshot.write_shard": ("SnapshotWriter", "report_files", "write_shard"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AlreadyConsumed",
    "BadInput",
    "BatchAlreadyLanded",
    "CommitConflict",
    "CommitRefused",
    "DataFile",
    "DistributedSnapshot",
    "FileContent",
    "FrazilError",
    "Landed",
    "ManifestContent",
    "ManifestFile",
    "ManifestWriter",
    "MatchingRows",
    "NotLanded",
    "NumberedBatch",
    "OutcomeUnknown",
    "RejectTo",
    "Report",
    "ReservationCancelled",
    "ReservationExpired",
    "SchemaMerge",
    "SchemaMismatch",
    "SnapshotWriter",
    "Sweep",
    "TooManyRejected",
    "TouchedPartitions",
    "WholeTable",
    "WriteFailed",
    "begin_snapshot",
    "cancel",
    "merge_schema",
    "open_rejected",
    "publish_snapshot",
    "renew",
    "report_files",
    "sweep",
    "write_shard",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'frazil' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
