"""Scans without Spark: what the core reads of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table

from frazil.scan.choice import SnapshotChoice
from frazil.scan.read_split import read_split
from frazil.scan.splits import Split
from frazil.scan.table_scan import TableScan, open_scan, plan_scan


def splits(
    table: Table, where: BooleanExpression | None = None, *, split_bytes: int | None = None, **choice: Any
) -> tuple[TableScan, list[Split]]:
    """A scan and its splits."""
    scan, chosen = open_scan(table, SnapshotChoice(**choice))
    scan = scan.where([where] if where is not None else [])
    return scan, plan_scan(table, chosen, scan, split_bytes)


def scanned(
    table: Table,
    where: BooleanExpression | None = None,
    *,
    columns: Sequence[str] = (),
    split_bytes: int | None = None,
    **choice: Any,
) -> pa.Table:
    """The rows that the core reads."""
    scan, parts = splits(table, where, split_bytes=split_bytes, **choice)
    scan = scan.of_columns(columns) if columns else scan
    batches = [batch for part in parts for batch in read_split(scan, part)]
    return pa.Table.from_batches(batches, schema_to_pyarrow(scan.columns, include_field_ids=False))


def scanned_ids(table: Table, where: BooleanExpression | None = None, **choice: Any) -> list[int]:
    """The ids that the core reads, in order."""
    found: list[int] = scanned(table, where, columns=["id"], **choice)["id"].to_pylist()
    return sorted(found)
