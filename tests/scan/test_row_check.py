"""Filters on every type of column, and on fields of structs, take the rows that they name."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, GreaterThan, In, IsNaN, NotEqualTo, NotNull

from lakes import Lake
from scans import scanned_ids
from test_readers_agree import SCHEMA, publish, rows

RIGHT: dict[str, Any] = {
    "flag": True,
    "small": -33,
    "ratio": 0.25,
    "share": -1.5,
    "price": Decimal("-37.66"),
    "huge": Decimal("12345678901234567890123455.0123456789"),
    "day": dt.date(1969, 12, 25) + dt.timedelta(days=40),
    "clock": dt.time(1, 59, 59, 999_999),
    "at": dt.datetime(2026, 2, 1, 4, 30, 0, 1),
    "instant": dt.datetime(2026, 1, 31, 23, 55, tzinfo=dt.UTC),
    "name": "ÄÄ a/b=c1",
    "key": uuid.UUID(int=1 << 100),
    "code": bytes([1, 0, 255, 7]),
    "blob": bytes([1, 200]) * 2,
    "place.city": "c1",
    "place.zip": 1,
}


@pytest.fixture(params=["1000", "5"])
def table(request: pytest.FixtureRequest, lake: Lake) -> Any:
    """In one row group, or in several, some of which are ruled out by their statistics."""
    made = lake.table(schema=SCHEMA, write__parquet__row_group_limit=request.param)
    publish(made, rows())
    return made


@pytest.mark.parametrize("name", RIGHT)
def test_equal_values_are_found_whatever_their_type(table: Any, name: str) -> None:
    expected = [
        number
        for number, row in zip(range(24), rows().to_pylist(), strict=True)
        if value_in(row, name) is not None and plain(value_in(row, name)) == plain(RIGHT[name])
    ]
    if name != "flag":
        assert 1 in expected
    assert scanned_ids(table, EqualTo(name, RIGHT[name])) == expected
    assert scanned_ids(table, In(name, [RIGHT[name]])) == expected
    others = [n for n, row in enumerate(rows().to_pylist()) if value_in(row, name) is not None and n not in expected]
    assert scanned_ids(table, NotEqualTo(name, RIGHT[name]) & NotNull(name)) == others


def test_filters_on_several_levels_go_together(table: Any) -> None:
    assert scanned_ids(table, GreaterThan("place.zip", 20) & GreaterThan("id", 21)) == [22]
    assert scanned_ids(table, IsNaN("ratio") & GreaterThan("id", 4)) == [10, 15]


def value_in(row: dict[str, Any], name: str) -> Any:
    column, _, field = name.partition(".")
    value = row[column]
    return value[field] if field and value is not None else value


def plain(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else value
