"""What the publisher pays for data files that writers have already listed: 100,000 of them in 100 manifests, or none.

Writing the manifests is the writers' work and is not in the timed part; it is reported beside it. PyIceberg's
`fast_append` of as many files, which one process does alone, is the comparison.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile as PyIcebergDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

import frazil
from bench.ingest import turn
from bench.places import WAREHOUSES
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.manifest import ManifestWriter
from frazil.snapshot.report import Report
from frazil.snapshot.summary import counts_of_added

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

    from frazil.snapshot.descriptor import DistributedSnapshot

MANIFESTS = 100
FILES_PER_MANIFEST = 1_000
COLUMNS = 16
ROWS = 1_000_000
LOW, HIGH = (to_bytes(LongType(), value) for value in (0, ROWS))
SCHEMA = pa.schema([(f"column_{number}", pa.int64()) for number in range(COLUMNS)])
COUNTS = {
    "column_sizes": dict.fromkeys(range(1, COLUMNS + 1), 4_000_000),
    "value_counts": dict.fromkeys(range(1, COLUMNS + 1), ROWS),
    "null_value_counts": dict.fromkeys(range(1, COLUMNS + 1), 0),
    "lower_bounds": dict.fromkeys(range(1, COLUMNS + 1), LOW),
    "upper_bounds": dict.fromkeys(range(1, COLUMNS + 1), HIGH),
}


def measure_publish(rounds: int) -> dict[str, Any]:
    """Medians and every single measure, in seconds."""
    seconds: dict[str, list[float]] = {"empty": [], "full": [], "writing": [], "pyiceberg": []}
    with turn():
        for _ in range(rounds):
            for name, value in one_round().items():
                seconds[name].append(value)
    medians = {name: median(values) for name, values in seconds.items()}
    extra = medians["full"] - medians["empty"]
    return {"data_files": MANIFESTS * FILES_PER_MANIFEST, "medians": medians, "extra": extra, "seconds": seconds}


def one_round() -> dict[str, float]:
    result = {}
    with fresh_table() as table:
        snapshot = frazil.begin_snapshot(table)
        result["empty"] = seconds_of(lambda: frazil.publish_snapshot(table, snapshot, []))
    with fresh_table() as table:
        snapshot = frazil.begin_snapshot(table)
        reports: list[Report] = []
        result["writing"] = seconds_of(lambda: reports.extend(write_reports(table, snapshot)))
        result["full"] = seconds_of(lambda: frazil.publish_snapshot(table, snapshot, reports))
        require_all_listed(table)
    with fresh_table() as table:
        files = [pyiceberg_file(table, number) for number in range(MANIFESTS * FILES_PER_MANIFEST)]
        result["pyiceberg"] = seconds_of(lambda: fast_append(table, files))
        require_all_listed(table)
    return result


def write_reports(table: Table, snapshot: DistributedSnapshot) -> Iterator[Report]:
    """One report per manifest, as so many writers would send them."""
    for number in range(MANIFESTS):
        shard = f"part-{number}"
        names = range(number * FILES_PER_MANIFEST, (number + 1) * FILES_PER_MANIFEST)
        files = [DataFile(file_path(table, name), ROWS, 64_000_000, split_offsets=(4,), **COUNTS) for name in names]
        writer = ManifestWriter(
            table.io,
            snapshot.manifest_path(shard, 0, 0),
            schema=snapshot.schema,
            spec=snapshot.spec,
            format_version=snapshot.format_version,
            snapshot_id=snapshot.snapshot_id,
        )
        for file in files:
            writer.add(file)
        manifest = writer.close()
        yield Report(snapshot.commit_uuid, snapshot.snapshot_id, shard, 0, (manifest,), counts_of_added(files))


def file_path(table: Table, number: int) -> str:
    return f"{table.location()}/data/{number:08d}.parquet"


def pyiceberg_file(table: Table, number: int) -> PyIcebergDataFile:
    file = PyIcebergDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file_path(table, number),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS,
        file_size_in_bytes=64_000_000,
        split_offsets=[4],
        nan_value_counts={},
        **COUNTS,
    )
    file.spec_id = 0
    return file


def fast_append(table: Table, files: list[PyIcebergDataFile]) -> None:
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in files:
            append.append_data_file(file)


def require_all_listed(table: Table) -> None:
    """PyIceberg reads the snapshot back and finds every file in a manifest."""
    snapshot = table.refresh().current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot else []
    found = sum(len(manifest.fetch_manifest_entry(table.io)) for manifest in manifests)
    if found != MANIFESTS * FILES_PER_MANIFEST:
        raise RuntimeError(f"{found} files are listed, not {MANIFESTS * FILES_PER_MANIFEST}")


@contextmanager
def fresh_table() -> Iterator[Table]:
    WAREHOUSES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="publish-", dir=WAREHOUSES))
    try:
        catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace("bench")
        yield catalog.create_table("bench.publish", schema=SCHEMA)
    finally:
        shutil.rmtree(folder)


def seconds_of(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
