"""Every type, every transform and every format version, as independent readers see them."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import frazil
from frazil.snapshot.partition_by import partition_spec
from frazil.snapshot.warehouse import EmbeddedCatalog
from readers import comparable, files_scanned_by_duckdb, read_with_chdb, read_with_duckdb, read_with_pyiceberg

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "flag", BooleanType()),
    NestedField(3, "small", IntegerType()),
    NestedField(4, "ratio", FloatType()),
    NestedField(5, "share", DoubleType()),
    NestedField(6, "price", DecimalType(9, 2)),
    NestedField(7, "huge", DecimalType(38, 10)),
    NestedField(8, "day", DateType()),
    NestedField(9, "clock", TimeType()),
    NestedField(10, "at", TimestampType()),
    NestedField(11, "instant", TimestamptzType()),
    NestedField(12, "name", StringType()),
    NestedField(13, "key", UUIDType()),
    NestedField(14, "code", FixedType(4)),
    NestedField(15, "blob", BinaryType()),
    NestedField(16, "place", StructType(NestedField(20, "city", StringType()), NestedField(21, "zip", IntegerType()))),
    NestedField(17, "tags", ListType(22, StringType(), element_required=False)),
    NestedField(18, "scores", MapType(23, StringType(), 24, LongType(), value_required=False)),
)

ROWS = 24

TRANSFORMS = [
    "flag",
    "small",
    "price",
    "day",
    "at",
    "name",
    "key",
    "code",
    "blob",
    "place.city",
    "year(day)",
    "month(at)",
    "day(instant)",
    "hour(instant)",
    "bucket(4, id)",
    "bucket(4, price)",
    "bucket(4, name)",
    "bucket(4, key)",
    "bucket(4, instant)",
    "bucket(4, blob)",
    "truncate(10, small)",
    "truncate(50, price)",
    "truncate(3, name)",
    "truncate(2, blob)",
    "void(name)",
    "day(at), bucket(2, id), truncate(2, name)",
    "day(instant), hour(instant)",
]


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    """Rows in which every third value of each optional column is null, with values at the edges of their types."""
    numbers = range(first, first + count)

    def some(value):  # type: ignore[no-untyped-def]
        return [None if number % 3 == 2 else value(number) for number in numbers]

    begin = dt.datetime(2026, 1, 31, 23, 30)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "flag": pa.array(some(lambda n: n % 2 == 0)),
            "small": pa.array(some(lambda n: n * 7 - 40), pa.int32()),
            "ratio": pa.array(some(lambda n: float("nan") if n % 5 == 0 else n / 4), pa.float32()),
            "share": pa.array(some(lambda n: n * -1.5), pa.float64()),
            "price": pa.array(some(lambda n: Decimal(n * 1234 - 5000).scaleb(-2)), pa.decimal128(9, 2)),
            "huge": pa.array(
                some(lambda n: Decimal(f"{12345678901234567890123456 - n}.0123456789")), pa.decimal128(38, 10)
            ),
            "day": pa.array(some(lambda n: dt.date(1969, 12, 25) + dt.timedelta(days=n * 40))),
            "clock": pa.array(some(lambda n: dt.time(n % 24, 59, 59, 999_999)), pa.time64("us")),
            "at": pa.array(some(lambda n: begin + dt.timedelta(hours=n * 5, microseconds=n)), pa.timestamp("us")),
            "instant": pa.array(
                some(lambda n: begin.replace(tzinfo=dt.UTC) + dt.timedelta(minutes=n * 25)), pa.timestamp("us", "UTC")
            ),
            "name": pa.array(some(lambda n: "ÅÄÖ漢字"[n % 5] * (n % 4 + 1) + f" a/b=c{n % 3}")),
            "key": pa.array(some(lambda n: uuid.UUID(int=n % 4 << 100).bytes), pa.binary(16)),
            "code": pa.array(some(lambda n: bytes([n % 3, 0, 255, 7])), pa.binary(4)),
            "blob": pa.array(some(lambda n: bytes([n % 3, 200]) * 2), pa.binary()),
            "place": pa.array(
                some(lambda n: {"city": f"c{n % 3}" if n % 2 else None, "zip": n}),
                pa.struct({"city": pa.string(), "zip": pa.int32()}),
            ),
            "tags": pa.array(some(lambda n: ["x", None, str(n)][: n % 4]), pa.list_(pa.string())),
            "scores": pa.array(some(lambda n: [("a", n), ("b", None)][: n % 3]), pa.map_(pa.string(), pa.int64())),
        }
    )


@pytest.fixture
def lake(tmp_path: Path) -> EmbeddedCatalog:
    (tmp_path / "warehouse").mkdir()
    catalog = EmbeddedCatalog(tmp_path)
    catalog.create_namespace("db")
    return catalog


def publish(table: Table, *parts: pa.Table) -> None:
    snapshot = frazil.begin_snapshot(table)
    reports = [frazil.write_shard(snapshot, f"part-{number}", [part]) for number, part in enumerate(parts)]
    frazil.publish_snapshot(table, snapshot, reports)


def make(lake: EmbeddedCatalog, partition_by: str, version: int) -> Table:
    properties = {"format-version": str(version)}
    if not partition_by:
        return lake.create_table("db.t", SCHEMA, properties=properties)
    return lake.create_table("db.t", SCHEMA, partition_spec=partition_spec(partition_by, SCHEMA), properties=properties)


def without(table: pa.Table, *columns: str) -> pa.Table:
    return table.drop_columns([column for column in columns if column in table.column_names])


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """The same rows, by value: NaN equals NaN, an instant is an instant in any zone, and a UUID its bytes or its text."""

    def plain(table: pa.Table) -> list[str]:
        return sorted(repr([_plain(name, row[name]) for name in sorted(row)]) for row in table.to_pylist())

    assert plain(found) == plain(expected)


def _plain(name: str, value: object) -> object:
    if name == "key" and value is not None:
        return value.hex() if isinstance(value, bytes) else str(value).replace("-", "")
    if isinstance(value, dt.datetime) and value.tzinfo:
        return value.astimezone(dt.UTC)
    return value


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("partition_by", ["", *TRANSFORMS])
def test_duckdb_and_pyiceberg_read_what_was_written(lake: EmbeddedCatalog, partition_by: str, version: int) -> None:
    table = make(lake, partition_by, version)
    publish(table, rows(0, 12), rows(12, 12))
    publish(table, rows(24, 6))
    expected = comparable(rows(0, 30))
    assert_same(read_with_pyiceberg(table), expected)
    assert_same(read_with_duckdb(table), expected)


def test_clickhouse_reads_what_was_written(lake: EmbeddedCatalog, tmp_path: Path) -> None:
    table = make(lake, "day(instant), bucket(2, id)", 2)
    publish(table, rows())
    dropped = ("place", "tags", "scores", "clock", "key", "code", "blob")  # types that it returns under others
    assert_same(without(read_with_chdb(table, tmp_path), *dropped), without(comparable(rows()), *dropped))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_partition_values_prune_files(lake: EmbeddedCatalog, version: int) -> None:
    table = make(lake, "day(at)", version)
    publish(table, rows())
    where = GreaterThanOrEqual("at", "2026-02-04T00:00:00")
    whole, pruned = len(list(table.scan().plan_files())), len(list(table.scan(where).plan_files()))
    assert 0 < pruned < whole
    assert 0 < files_scanned_by_duckdb(table, "\"at\" >= TIMESTAMP '2026-02-04 00:00:00'") < whole


@pytest.mark.parametrize("version", [1, 2, 3])
def test_column_bounds_prune_files(lake: EmbeddedCatalog, version: int) -> None:
    table = make(lake, "", version)
    publish(table, *(rows(first, 6) for first in range(0, 24, 6)))
    assert [
        len(list(table.scan(where).plan_files())) for where in (EqualTo("id", 7), GreaterThanOrEqual("id", 18))
    ] == [1, 1]
    assert files_scanned_by_duckdb(table, "id = 7") == 1
    assert files_scanned_by_duckdb(table, "id >= 12") == 2


def test_a_schema_that_evolved_between_snapshots_is_read_whole(lake: EmbeddedCatalog) -> None:
    table = lake.create_table("db.t", Schema(NestedField(1, "id", IntegerType()), NestedField(2, "old", StringType())))
    publish(table, pa.table({"id": pa.array([1, 2], pa.int32()), "old": ["a", "b"]}))
    with table.update_schema() as change:
        change.add_column("added", DoubleType())
        change.update_column("id", LongType())
        change.rename_column("old", "new")
    publish(table, pa.table({"id": [2**40], "new": ["c"], "added": [0.5]}))
    expected = pa.table({"id": [1, 2, 2**40], "new": ["a", "b", "c"], "added": [None, None, 0.5]})
    assert_same(read_with_pyiceberg(table), expected)
    assert_same(read_with_duckdb(table), expected)


def test_a_spec_that_evolved_between_snapshots_is_read_whole(lake: EmbeddedCatalog) -> None:
    table = make(lake, "day(at)", 2)
    publish(table, rows(0, 6))
    with table.update_spec() as change:
        change.remove_field("at_day")
        change.add_identity("small")
    publish(table, rows(6, 6))
    assert_same(read_with_pyiceberg(table), comparable(rows(0, 12)))
    assert_same(read_with_duckdb(table), comparable(rows(0, 12)))
