"""A task's share of a write through Spark's data source: one partition of rows to one report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.rejected_rows import RejectTo
from frazil.snapshot.report import Report
from frazil.snapshot.storage import file_io
from frazil.snapshot.write_shard import write_shard


@dataclass(frozen=True, slots=True)
class ShardWritten(WriterCommitMessage):  # type: ignore[misc]
    """What a task sends to the driver. `retried`: an earlier attempt of it may have left files."""

    report: bytes
    retried: bool

    @classmethod
    def of(cls, report: Report, *, retried: bool) -> ShardWritten:
        """The message that carries this report."""
        return cls(report.to_protobuf(), retried)


def write_partition(
    snapshot: DistributedSnapshot, batches: Iterable[Any], rejects: RejectTo | None = None
) -> ShardWritten:
    """Write the rows of the Spark partition that this task is at; those that do not fit go to `rejects`, if given."""
    context = TaskContext.get()
    extra = context.attemptNumber() > 0
    if extra:
        _leave_mark(snapshot)
    shard = f"part-{context.partitionId():05d}"
    report = write_shard(snapshot, shard, batches, attempt=context.taskAttemptId(), rejects=rejects)
    return ShardWritten.of(report, retried=extra)


def attempts_mark(snapshot: DistributedSnapshot) -> str:
    """The file that says that a task of this snapshot had a second attempt."""
    return snapshot.locations.new_metadata_location(f"{snapshot.commit_uuid}-attempts.mark")


def has_mark(snapshot: DistributedSnapshot) -> bool:
    """Whether an attempt beyond the first was begun, which may have lost and left files."""
    return bool(file_io(snapshot.storage, snapshot.location).new_input(attempts_mark(snapshot)).exists())


def _leave_mark(snapshot: DistributedSnapshot) -> None:
    # A speculative attempt that loses tells the driver nothing. Its first file is this one, so that one look is enough
    # to know whether the table's folder must be listed for files of losers.
    output = file_io(snapshot.storage, snapshot.location).new_output(attempts_mark(snapshot))
    with output.create(overwrite=True) as stream:
        stream.write(b"a task had more than one attempt\n")
