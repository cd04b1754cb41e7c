"""Which Iceberg table each PostgreSQL table goes to."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import BadInput
from frazil.sources.postgres_tables import TableName, is_pattern


def target_names(tables: Sequence[TableName], asked_for: str, target: str) -> list[str]:
    """The full name of each table's target, in order.

    One plain name goes to the table `target` (`db.orders`). A pattern or a list goes to the namespace `target`, as does
    one plain name where the target has no dot or ends in `.*`; then tables are called as they are in PostgreSQL.
    """
    if not is_pattern(asked_for) and "." in target and not target.endswith(".*"):
        return [target]
    namespace = target.removesuffix(".*")
    names = [f"{namespace}.{_unambiguous(table)}" for table in tables]
    _check_distinct(tables, names)
    return names


def _unambiguous(table: TableName) -> str:
    if "." in table.name:
        raise BadInput(
            f"table {table} has a dot in its name, which would divide it in Iceberg; leave it out with '!', and ingest it "
            "by itself into a table of another name"
        )
    return table.name


def _check_distinct(tables: Sequence[TableName], names: Sequence[str]) -> None:
    first: dict[str, TableName] = {}
    for table, name in zip(tables, names, strict=True):
        other = first.setdefault(name, table)
        if other is not table:
            raise BadInput(
                f"{other} and {table} would both become {name}; ingest them in two runs, into two namespaces"
            )
