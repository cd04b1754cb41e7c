"""All that is needed to read a chosen snapshot, on any host: a value that travels to readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import NameMapping

from frazil.errors import UnknownColumn
from frazil.scan.choice import ChosenSnapshots, SnapshotChoice, choose_snapshots
from frazil.scan.plan import plan_files
from frazil.scan.splits import Split, SplitSize, plan_splits


@dataclass(frozen=True, slots=True)
class TableScan:
    """One snapshot (or increment) of a table, its columns, and the filters on its rows.

    `columns` are the columns to give; filters and deletes may need others of `schema`. Rows for which `row_filter` is
    not true are left out; `pruning` may only rule out whole files and row groups, so it need not be exact. `storage`
    holds the FileIO properties, credentials among them, and is never printed.
    """

    table: str
    location: str
    format_version: int
    schema: Schema
    columns: Schema
    name_mapping: NameMapping | None
    row_filter: BooleanExpression = field(default_factory=AlwaysTrue)
    pruning: BooleanExpression = field(default_factory=AlwaysTrue)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def of_columns(self, names: Iterable[str]) -> TableScan:
        """The same rows with these columns alone, in this order."""
        return replace(self, columns=_select(self.table, self.schema, list(names)))

    def where(self, exact: Sequence[BooleanExpression], inexact: Sequence[BooleanExpression] = ()) -> TableScan:
        """Fewer rows: without those that an exact filter rules out, and maybe without those that an inexact one does."""
        row_filter, pruning = self.row_filter, self.pruning
        for expression in exact:
            row_filter, pruning = row_filter & expression, pruning & expression
        for expression in inexact:
            pruning = pruning & expression
        return replace(self, row_filter=row_filter, pruning=pruning)


def open_scan(table: Table, choice: SnapshotChoice) -> tuple[TableScan, ChosenSnapshots]:
    """A scan of all columns and rows of what was chosen, and the snapshots that it is about, for planning."""
    name = ".".join(table.name())
    chosen = choose_snapshots(table.metadata, choice, name)
    scan = TableScan(
        table=name,
        location=table.location(),
        format_version=table.metadata.format_version,
        schema=chosen.schema,
        columns=chosen.schema,
        name_mapping=table.metadata.name_mapping(),
        storage=dict(table.io.properties),
    )
    return scan, chosen


def plan_scan(table: Table, chosen: ChosenSnapshots, scan: TableScan, split_bytes: int | None = None) -> list[Split]:
    """What the tasks are to read."""
    files = plan_files(table.io, table.metadata, chosen, scan.pruning)
    return plan_splits(files, SplitSize.of_table(table.metadata.properties, split_bytes))


def _select(table: str, schema: Schema, names: Sequence[str]) -> Schema:
    there = {each.name: each for each in schema.fields}
    if missing := [name for name in names if name not in there]:
        raise UnknownColumn(f"table {table} has no column {', '.join(map(repr, missing))}; it has {', '.join(there)}")
    return Schema(*(there[name] for name in names), schema_id=schema.schema_id)
