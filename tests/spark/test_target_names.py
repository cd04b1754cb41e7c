"""Where each PostgreSQL table goes, by what the user typed."""

from __future__ import annotations

import pytest

from frazil.errors import BadInput
from frazil.sources.postgres_tables import TableName
from frazil.spark.target_names import target_names

ORDERS, LINES, OTHER = TableName("public", "orders"), TableName("public", "lines"), TableName("sales", "orders")


@pytest.mark.parametrize(
    ("tables", "asked_for", "target", "names"),
    [
        ([ORDERS], "public.orders", "db.mine", ["db.mine"]),
        ([ORDERS], "orders", "a.b.mine", ["a.b.mine"]),
        ([ORDERS], "public.orders", "db", ["db.orders"]),
        ([ORDERS], "public.orders", "a.b.*", ["a.b.orders"]),
        ([ORDERS], "public.order*", "a.b", ["a.b.orders"]),
        ([LINES, ORDERS], "public.*", "db", ["db.lines", "db.orders"]),
        ([LINES, ORDERS], "lines,orders", "db", ["db.lines", "db.orders"]),
    ],
)
def test_one_plain_name_goes_to_a_table_and_everything_else_to_a_namespace(
    tables: list[TableName], asked_for: str, target: str, names: list[str]
) -> None:
    assert target_names(tables, asked_for, target) == names


def test_two_tables_that_would_become_one_are_refused() -> None:
    with pytest.raises(BadInput, match=r"public\.orders and sales\.orders would both become db\.orders"):
        target_names([ORDERS, OTHER], "*.orders", "db")


def test_a_name_with_a_dot_needs_a_name_of_its_own() -> None:
    dotted = TableName("public", "a.b")
    assert target_names([dotted], "public.a_b", "db.a_b") == ["db.a_b"]
    with pytest.raises(BadInput, match="has a dot in its name"):
        target_names([dotted], "public.*", "db")
