"""Each of Spark's filters as the expression that says the same; none that says something else."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.expressions import (
    And,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyspark.sql import datasource as spark

from frazil.spark.read_filters import push_filters

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "text", StringType()),
    NestedField(3, "ratio", DoubleType()),
    NestedField(4, "price", DecimalType(38, 2)),
    NestedField(5, "day", DateType()),
    NestedField(6, "instant", TimestamptzType()),
    NestedField(7, "blob", BinaryType()),
    NestedField(8, "place", StructType(NestedField(20, "zip", LongType()))),
    NestedField(9, "fine", TimestampNanoType()),
    NestedField(10, "clock", TimeType()),
    NestedField(11, "key", UUIDType()),
    NestedField(12, "with.dot", LongType()),
)
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def column(name: str) -> tuple[str, ...]:
    return (name,)


@pytest.mark.parametrize(
    ("pushed", "expression"),
    [
        (spark.EqualTo(column("id"), 1), EqualTo("id", 1)),
        (spark.EqualNullSafe(column("id"), 1), EqualTo("id", 1)),
        (spark.EqualNullSafe(column("id"), None), IsNull("id")),
        (spark.GreaterThan(column("id"), 1), GreaterThan("id", 1)),
        (spark.GreaterThanOrEqual(column("id"), 1), GreaterThanOrEqual("id", 1)),
        (spark.LessThan(column("id"), 1), LessThan("id", 1)),
        (spark.LessThanOrEqual(column("id"), 1), LessThanOrEqual("id", 1)),
        (spark.In(column("id"), (1, 2, None)), In("id", [1, 2])),
        (spark.IsNull(column("id")), IsNull("id")),
        (spark.IsNotNull(column("id")), NotNull("id")),
        (spark.StringStartsWith(column("text"), "ab"), StartsWith("text", "ab")),
        (spark.Not(spark.EqualTo(column("id"), 1)), And(NotNull("id"), NotEqualTo("id", 1))),
        (spark.Not(spark.GreaterThan(column("id"), 1)), And(NotNull("id"), LessThanOrEqual("id", 1))),
        (spark.Not(spark.In(column("id"), (1, 2))), And(NotNull("id"), NotIn("id", [1, 2]))),
        (spark.Not(spark.EqualNullSafe(column("id"), 1)), Or(NotEqualTo("id", 1), IsNull("id"))),
        (spark.Not(spark.EqualNullSafe(column("id"), None)), NotNull("id")),
        (spark.Not(spark.IsNull(column("id"))), NotNull("id")),
        (spark.Not(spark.StringStartsWith(column("text"), "a")), And(NotNull("text"), NotStartsWith("text", "a"))),
        (spark.EqualTo(column("price"), Decimal("1.5")), EqualTo("price", Decimal("1.50"))),
        (spark.EqualTo(column("price"), Decimal("9" * 36)), EqualTo("price", Decimal("9" * 36 + ".00"))),
        (spark.EqualTo(column("day"), dt.date(2026, 1, 1)), EqualTo("day", dt.date(2026, 1, 1))),
        (spark.LessThan(column("instant"), NOON), LessThan("instant", NOON)),
        (spark.EqualTo(column("blob"), bytearray(b"x")), EqualTo("blob", b"x")),
    ],
)
def test_what_compares_alike_is_taken_over_whole(pushed: spark.Filter, expression: Any) -> None:
    found = push_filters(SCHEMA, [pushed])
    assert (found.exact, found.inexact, found.left) == ((expression,), (), ())


@pytest.mark.parametrize(
    ("pushed", "expression"),
    [
        (spark.LessThan(column("ratio"), 1.0), LessThan("ratio", 1.0)),
        (spark.GreaterThan(column("ratio"), 1.0), Or(GreaterThan("ratio", 1.0), IsNaN("ratio"))),
        (spark.EqualTo(("place", "zip"), 1), EqualTo("place.zip", 1)),
    ],
)
def test_what_compares_otherwise_rules_out_files_and_is_left_to_spark(pushed: spark.Filter, expression: Any) -> None:
    found = push_filters(SCHEMA, [pushed])
    assert (found.exact, found.inexact, found.left) == ((), (expression,), (pushed,))


@pytest.mark.parametrize(
    "pushed",
    [
        spark.StringEndsWith(column("text"), "a"),
        spark.StringContains(column("text"), "a"),
        spark.Not(spark.StringContains(column("text"), "a")),
        spark.EqualTo(column("ratio"), float("nan")),
        spark.In(column("ratio"), (1.0, float("nan"))),
        spark.Not(spark.EqualTo(column("ratio"), 1.0)),
        spark.Not(spark.In(column("id"), (1, None))),
        spark.EqualTo(column("id"), None),
        spark.EqualTo(column("price"), Decimal("1.555")),
        spark.EqualTo(column("fine"), NOON),
        spark.EqualTo(column("clock"), "12:00:00"),
        spark.EqualTo(column("key"), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        spark.EqualTo(column("place"), {"zip": 1}),
        spark.EqualTo(column("nowhere"), 1),
        spark.EqualTo(column("with.dot"), 1),
    ],
)
def test_what_has_no_counterpart_is_left_to_spark_as_it_is(pushed: spark.Filter) -> None:
    found = push_filters(SCHEMA, [pushed])
    assert found.exact == () and found.left == (pushed,)


def test_each_filter_is_judged_by_itself() -> None:
    filters = [spark.EqualTo(column("id"), 1), spark.StringContains(column("text"), "a"), spark.IsNull(column("day"))]
    found = push_filters(SCHEMA, filters)
    assert found.exact == (EqualTo("id", 1), IsNull("day")) and found.left == (filters[1],)
