"""The empty table that PyIceberg, Polars and Daft append to: the same catalog, schema and spec for all three."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import MonthTransform

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from bench.contenders.protocol import Task


def create_table(task: Task) -> Table:
    """`bench.lineitem` in a SQLite catalog in the task's warehouse, with the schema of the first source."""
    catalog = SqlCatalog("bench", uri=f"sqlite:///{task.warehouse}/catalog.db", warehouse=f"file://{task.warehouse}")
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.lineitem", schema=pq.read_schema(task.sources[0]))
    if task.by_month:
        with table.update_spec() as update:
            update.add_field("l_shipdate", MonthTransform(), "l_shipdate_month")
    return table
