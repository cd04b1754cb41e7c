"""A table's reader: what Spark asks on the driver, and what runs in the tasks.

The tasks import this module, so it knows nothing of catalogs, whose imports take longer than reading a small table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from frazil.scan.read_split import read_split
from frazil.scan.splits import Split
from frazil.scan.table_scan import TableScan
from frazil.spark.read_filters import push_filters
from frazil.spark.read_types import arrow_schema


class TableReader(DataSourceReader):  # type: ignore[misc]  # PySpark has no types that mypy knows
    """Spark makes one on the driver, asks it for filters and partitions, and sends a copy to each task.

    `scan` is what it reads, narrower once filters were pushed.
    """

    def __init__(self, scan: TableScan, schema: StructType, plan: Callable[[TableScan], list[Split]]) -> None:
        self.scan = scan
        self._target = arrow_schema(schema)
        self._plan: Callable[[TableScan], list[Split]] | None = plan

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
        assert self._plan is not None, "only the driver plans"
        return [InputPartition(split) for split in self._plan(self.scan)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split. (Spark makes up a partition without one where there is nothing to read.)"""
        split: Split | None = partition.value
        return iter(()) if split is None else read_split(self.scan, split, self._target)

    def __getstate__(self) -> dict[str, Any]:
        """Without what only planning needs."""
        return {**self.__dict__, "_plan": None}


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
