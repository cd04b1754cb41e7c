"""`day(ts), bucket(16, id)` read into a partition spec, and what is wrong said in its own words."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from frazil import BadInput
from frazil.errors import UnknownColumn
from frazil.snapshot.partition_by import partition_spec

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "ts", TimestamptzType()),
    NestedField(3, "day", DateType()),
    NestedField(4, "region", StringType()),
    NestedField(5, "price", DecimalType(9, 2)),
    NestedField(6, "tags", ListType(7, StringType())),
    NestedField(8, "at", StructType(NestedField(9, "city", StringType()))),
    NestedField(10, "größe", LongType()),
)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("region", [(4, "identity", "region")]),
        ("identity(region)", [(4, "identity", "region")]),
        ("year(ts)", [(2, "year", "ts_year")]),
        ("months(ts)", [(2, "month", "ts_month")]),
        ("day(ts)", [(2, "day", "ts_day")]),
        ("days(day)", [(3, "day", "day_day")]),
        ("date(ts)", [(2, "day", "ts_day")]),
        ("hours(ts)", [(2, "hour", "ts_hour")]),
        ("bucket(16, id)", [(1, "bucket[16]", "id_bucket")]),
        ("bucket(id,16)", [(1, "bucket[16]", "id_bucket")]),
        ("truncate(4, region)", [(4, "truncate[4]", "region_trunc")]),
        ("truncate(100, price)", [(5, "truncate[100]", "price_trunc")]),
        ("void(id)", [(1, "void", "id_void")]),
        (
            "  DAY( ts ) ,bucket( 8 , id ),  region ",
            [(2, "day", "ts_day"), (1, "bucket[8]", "id_bucket"), (4, "identity", "region")],
        ),
        ("at.city", [(9, "identity", "at.city")]),
        ("größe", [(10, "identity", "größe")]),
    ],
)
def test_terms_become_fields(text: str, fields: list[tuple[int, str, str]]) -> None:
    spec = partition_spec(text, SCHEMA)
    assert [(field.source_id, str(field.transform), field.name) for field in spec.fields] == fields
    assert [field.field_id for field in spec.fields] == list(range(1000, 1000 + len(fields)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("   ", "cannot be read|is empty|not there"),
        ("day(ts", "cannot be read"),
        ("day(ts))", "cannot be read"),
        ("day(ts) region", "cannot be read"),
        ("week(ts)", "not a partition transform"),
        ("bucket(id)", "not a partition transform"),
        ("bucket(0, id)", "not a partition transform"),
        ("bucket(x, id)", "not a partition transform"),
        ("day(ts, id)", "not a partition transform"),
        ("day(region)", "column region is of type string"),
        ("hour(day)", "column day is of type date"),
        ("truncate(4, ts)", "column ts is of type timestamptz"),
        ("tags", "cannot partition"),
        ("at", "cannot partition"),
        ("region, region", "twice"),
        ("day(ts), days(ts)", "twice"),
    ],
)
def test_what_does_not_fit_is_said(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        partition_spec(text, SCHEMA)


@pytest.mark.parametrize("text", ["nowhere", "day(nowhere)", "bucket(4, nowhere)", "REGION"])
def test_an_unknown_column_is_named_beside_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownColumn, match="the columns are id, ts"):
        partition_spec(text, SCHEMA)


def test_a_comma_at_the_end_is_forgiven() -> None:
    assert len(partition_spec("region,", SCHEMA).fields) == 1
