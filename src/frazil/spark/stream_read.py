"""Reading a table as a stream: first the rows that it holds, then what each new snapshot appends.

An offset names a snapshot, so a batch that is done again reads the same rows. Between two offsets only appended rows
can be read; a snapshot that removed rows ends the query with an error that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from frazil.errors import BadInput
from frazil.scan.choice import ChosenSnapshots, SnapshotChoice, choose_snapshots
from frazil.scan.read_split import read_split
from frazil.scan.splits import Split
from frazil.scan.table_scan import TableScan, plan_scan
from frazil.spark.options import ReadOptions
from frazil.spark.read import OpenedTable, existing_table
from frazil.spark.read_types import arrow_schema

_KEY = "snapshot-id"
_NOTHING = ""
Offset = dict[str, str]


@dataclass(frozen=True, slots=True)
class StreamSplit:
    """A split of one batch, with the storage properties of that moment: credentials may change while a stream runs."""

    split: Split
    storage: Mapping[str, str]

    def __repr__(self) -> str:
        return f"StreamSplit({self.split!r})"


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Spark keeps one on the driver for as long as the query runs, and sends a copy to the tasks."""

    def __init__(self, opened: OpenedTable, schema: StructType) -> None:
        _refuse_points(opened.options)
        self._options = opened.options
        self._scan: TableScan = opened.reader(schema).scan
        self._target = arrow_schema(schema)
        self._last: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        """Where a new query begins: before all rows, or after `start-snapshot-id`."""
        start = self._options.start_snapshot_id
        return _offset(start)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: ARG002, N802  Spark's name
        """The head of the branch, or where it was when a query that takes what is there began."""
        return self._last if self._last is not None else self._head(start)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Fix the end of the query."""
        self._last = self._head(_offset(None))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The splits of what lies between two offsets."""
        table = existing_table(self._options)
        chosen = self._between(table.metadata, _snapshot_id(start), _snapshot_id(end))
        storage = dict(table.io.properties)
        splits = plan_scan(table, chosen, self._scan, self._options.split_bytes)
        return [InputPartition(StreamSplit(split, storage)) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split."""
        part: StreamSplit = partition.value
        return read_split(replace(self._scan, storage=part.storage), part.split, self._target)

    def commit(self, end: Offset) -> None:
        """Spark is done with everything up to `end`; there is nothing to keep for it."""

    def stop(self) -> None:
        """The query has ended; nothing is held open."""

    def _head(self, start: Offset) -> Offset:
        """The newest snapshot. Where there is none, or none any more, there is nothing beyond the start."""
        table = existing_table(self._options)
        choice = SnapshotChoice(branch=self._options.branch)
        head = choose_snapshots(table.metadata, choice, self._options.table).snapshot
        return start if head is None else _offset(head.snapshot_id)

    def _between(self, metadata: Any, start: int | None, end: int | None) -> ChosenSnapshots:
        if start is None:
            choice = SnapshotChoice(snapshot_id=end)
        else:
            choice = SnapshotChoice(start_snapshot_id=start, end_snapshot_id=end)
        chosen = choose_snapshots(metadata, choice, self._options.table)
        return replace(chosen, schema=self._scan.schema)


def _refuse_points(options: ReadOptions) -> None:
    points = {
        "snapshot-id": options.snapshot_id,
        "as-of-timestamp": options.as_of_ms,
        "tag": options.tag,
        "end-snapshot-id": options.end_snapshot_id,
    }
    for name, value in points.items():
        if value is not None:
            raise BadInput(f"option {name} does not go with a stream, which has no end; begin with start-snapshot-id")


def _offset(snapshot_id: int | None) -> Offset:
    return {_KEY: _NOTHING if snapshot_id is None else str(snapshot_id)}


def _snapshot_id(offset: Offset) -> int | None:
    return None if offset[_KEY] == _NOTHING else int(offset[_KEY])
