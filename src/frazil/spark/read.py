"""Reading a table into a DataFrame: planned once on the driver, read by tasks straight to Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from frazil.errors import BadInput
from frazil.scan.choice import ChosenSnapshots, SnapshotChoice
from frazil.scan.read_split import read_split
from frazil.scan.splits import Split
from frazil.scan.table_scan import TableScan, open_scan, plan_scan
from frazil.snapshot.row_filter import RowFilter
from frazil.snapshot.warehouse import find_table, open_catalog, table_identifier
from frazil.spark.options import ReadOptions
from frazil.spark.read_filters import push_filters
from frazil.spark.read_types import arrow_schema, check_wanted, spark_schema


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """What was chosen of a table when the DataFrame was made: every use of that reads the same rows.

    A value that Spark keeps and sends from process to process on the driver.
    """

    options: ReadOptions
    scan: TableScan
    chosen: ChosenSnapshots

    @classmethod
    def open(cls, options: ReadOptions) -> OpenedTable:
        """Find the table, and in it the snapshot, the columns and the filter that the options name."""
        choice = SnapshotChoice(
            snapshot_id=options.snapshot_id,
            as_of_ms=options.as_of_ms,
            branch=options.branch,
            tag=options.tag,
            start_snapshot_id=options.start_snapshot_id,
            end_snapshot_id=options.end_snapshot_id,
        )
        scan, chosen = open_scan(existing_table(options), choice)
        if options.columns:
            scan = scan.of_columns(options.columns)
        if options.filter is not None:
            scan = scan.where([RowFilter(options.filter, scan.schema).expression])
        return cls(options, scan, chosen)

    def schema(self) -> StructType:
        """What Spark is told."""
        return spark_schema(self.scan.columns, self.scan.table)

    def reader(self, schema: StructType) -> TableReader:
        """The reader of the columns of `schema`, which is `schema()` or a part of it that the user named."""
        scan = self.scan.of_columns(schema.fieldNames())
        check_wanted(schema, scan.columns, scan.table)
        return TableReader(self, scan, schema)


def existing_table(options: ReadOptions) -> Table:
    """The table as it is now. BadInput if there is none."""
    table = find_table(open_catalog(options.catalog), table_identifier(options.table))
    if table is None:
        raise BadInput(f"there is no table {options.table} in {options.catalog}; look at its name, root and catalog")
    return table


class TableReader(DataSourceReader):  # type: ignore[misc]  # PySpark has no types that mypy knows
    """Spark makes one on the driver, asks it for filters and partitions, and sends a copy to each task.

    `scan` is what it reads, narrower once filters were pushed.
    """

    def __init__(self, opened: OpenedTable, scan: TableScan, schema: StructType) -> None:
        self._opened: OpenedTable | None = opened
        self.scan = scan
        self._target = arrow_schema(schema)

    @property
    def pushFilters(self) -> _PushFilters:  # noqa: N802  Spark's name
        """Take what filters can be taken."""
        return _PushFilters(self)

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        """Narrow the scan; returns the filters that Spark must apply itself."""
        pushed = push_filters(self.scan.schema, filters)
        self.scan = self.scan.where(pushed.exact, pushed.inexact)
        return list(pushed.left)

    def partitions(self) -> Sequence[InputPartition]:
        """The splits, planned with all the filters there are."""
        assert self._opened is not None, "only the driver plans"
        options = self._opened.options
        splits = plan_scan(existing_table(options), self._opened.chosen, self.scan, options.split_bytes)
        return [InputPartition(split) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split. (Spark makes up a partition without one where there is nothing to read.)"""
        split: Split | None = partition.value
        return iter(()) if split is None else read_split(self.scan, split, self._target)

    def __getstate__(self) -> dict[str, Any]:
        """Without what only planning needs."""
        return {**self.__dict__, "_opened": None}


class _PushFilters:
    """`TableReader.pushFilters`, as Spark wants it.

    Spark refuses a reader with a pushFilters of its own while spark.sql.python.filterPushdown.enabled is off, although
    it would not call it then. What it looks at is `__func__`, which says here that there is none.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        return self._reader.push(filters)
