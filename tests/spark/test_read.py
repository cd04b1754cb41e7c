"""`spark.read.format("frazil")` gives what independent readers give."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField, TimestampNanoType

from deletes import data_files, delete_by_vector, delete_equal, delete_positions
from frazil.snapshot.partition_by import partition_spec
from frazil.snapshot.schema import table_schema
from lakes import Lake, append, embedded, rows
from readers import comparable, count_with_duckdb, read_with_duckdb
from test_readers_agree import SCHEMA as EVERY_TYPE
from test_readers_agree import assert_same, publish
from test_readers_agree import rows as rows_of_every_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Read:
    """`spark.read.format("frazil")` on a lake in a folder."""

    def __init__(self, session: SparkSession, root: Path) -> None:
        self.session = session
        self.root = root

    def __call__(self, table: str = "db.t", **options: Any) -> DataFrame:
        reader = self.session.read.format("frazil").option("root", str(self.root))
        for name, value in options.items():
            reader = reader.option(name.replace("_", "-"), value)
        return reader.load(table)

    def ids(self, **options: Any) -> list[int]:
        return sorted(row.id for row in self(**options).select("id").collect())


@pytest.fixture
def read(spark: SparkSession, lake: Lake, tmp_path: Path) -> Read:
    return Read(spark, tmp_path / "lake")


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_every_type_is_read_as_it_was_written(read: Read, lake: Lake) -> None:
    table = lake.table(schema=EVERY_TYPE, spec=partition_spec("day(at)", EVERY_TYPE))
    publish(table, rows_of_every_type(0, 12), rows_of_every_type(12, 12))
    found = read().toArrow()
    expected = rows_of_every_type()
    at = expected.column_names.index("clock")
    expected = expected.set_column(at, "clock", expected["clock"].cast(pa.string()))
    assert_same(comparable(found), comparable(expected))
    assert read().schema["place"].dataType.simpleString() == "struct<city:string,zip:int>"
    assert not read().schema["id"].nullable


def test_deletes_of_every_kind_are_applied(read: Read, lake: Lake) -> None:
    table = lake.table()
    append(table, *range(100))
    delete_positions(table, {data_files(table)[0]: [0, 1, 2]})
    delete_equal(table, rows(50, 51), "id")
    append(table, 50)
    assert read().count() == 96
    assert comparable(read().toArrow()) == read_with_duckdb(table)
    vectors = lake.table("v", version=3)
    append(vectors, *range(100))
    delete_by_vector(vectors, {data_files(vectors)[0]: [0, 98, 99]})
    assert comparable(read("db.v").toArrow()) == read_with_duckdb(vectors)


def test_time_travel_and_increments(read: Read, lake: Lake) -> None:
    table = lake.table()
    heads = [append(table, number).snapshot_id for number in range(4)]
    table.manage_snapshots().create_tag(heads[0], "v1").commit()
    append(table, 9, ref="side")
    assert read.ids(snapshot_id=heads[1]) == [0, 1]
    assert read.ids(tag="v1") == [0]
    assert read.ids(branch="side") == [0, 1, 2, 3, 9]
    assert read.ids(as_of_timestamp=table.metadata.snapshot_log[1].timestamp_ms) == [0, 1]
    assert read.ids(start_snapshot_id=heads[0], end_snapshot_id=heads[2]) == [1, 2]


def test_a_dataframe_reads_the_same_rows_each_time(read: Read, lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    before = read()
    append(table, 2)
    assert (before.count(), read().count()) == (1, 2)


def numbered(numbers: range) -> pa.Table:
    """Rows of the types that filters are about, every fifth ratio not a number."""
    begin = dt.datetime(2026, 1, 1)
    hours = [begin + dt.timedelta(hours=n) for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": pa.array([f"row {n}" for n in numbers]),
            "ratio": pa.array([float("nan") if n % 5 == 0 else n / 4 for n in numbers], pa.float64()),
            "price": pa.array([Decimal(n * 50).scaleb(-2) for n in numbers], pa.decimal128(9, 2)),
            "day": pa.array([begin.date() + dt.timedelta(days=n) for n in numbers], pa.date32()),
            "at": pa.array(hours, pa.timestamp("us")),
            "instant": pa.array(hours, pa.timestamp("us", "UTC")),
            "flag": pa.array([n % 2 == 0 for n in numbers]),
            "place": pa.array([{"zip": n} for n in numbers], pa.struct([("zip", pa.int32())])),
            "blob": pa.array([bytes([n]) for n in numbers], pa.binary()),
        }
    )


@pytest.fixture(scope="module")
def filtered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Read:
    """100 rows in ten files, and one of nulls."""
    root = tmp_path_factory.mktemp("filtered") / "lake"
    lake = embedded(root)
    parts = [numbered(range(first, first + 10)) for first in range(0, 100, 10)]
    nulls = pa.table({field.name: pa.nulls(1, field.type) for field in parts[0].schema})
    schema = table_schema(parts[0].schema, 2, "the test")
    publish(lake.table(schema=schema, spec=partition_spec("truncate(20, id)", schema)), *parts, nulls)
    return Read(spark, root)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("id = 7", 1),
        ("id <> 7", 99),
        ("id in (1, 2, 500)", 2),
        ("not id in (1, 2)", 98),
        ("id > 90 and text like 'row 9%'", 9),
        ("text like '%9'", 10),
        ("id is null", 1),
        ("not (id <=> 7)", 100),
        ("id > 95 or id < 2", 6),
        ("ratio > 1", 96),
        ("ratio = double('nan')", 20),
        ("ratio <> 3", 99),
        ("price = 1.50", 1),
        ("price >= 0", 100),
        ("day = '2026-01-05'", 1),
        ("at >= '2026-01-01 12:00:00' and at < '2026-01-02'", 12),
        ("instant < '2026-01-01 03:00:00Z'", 3),
        ("flag", 50),
        ("not flag", 50),
        ("place.zip = 5", 1),
        ("blob = X'05'", 1),
        ("true", 101),
    ],
)
def test_filters_give_the_same_rows_pushed_down_or_not(
    spark: SparkSession,
    filtered: Read,
    where: str,
    count: int,
) -> None:
    conf = "spark.sql.python.filterPushdown.enabled"
    found = []
    for enabled in ("true", "false"):
        spark.conf.set(conf, enabled)
        found.append(sorted(map(repr, filtered().where(where).collect())))
    spark.conf.unset(conf)
    assert found[0] == found[1]
    assert len(found[0]) == count


def test_filters_that_are_pushed_down_keep_tasks_from_files(filtered: Read, pushdown: None) -> None:
    def partitions(where: str) -> int:
        return int(filtered(split_size="1").where(where).rdd.getNumPartitions())

    assert partitions("true") == 11
    assert partitions("id = 7") == 1
    assert partitions("id >= 80") == 2
    assert partitions("day = '2026-01-05'") == 1
    assert partitions("text like 'row 9%'") == 2
    assert partitions("ratio > 1000") == 10  # NaN is greater than that, to Spark


def test_a_filter_in_the_options_needs_no_setting(filtered: Read) -> None:
    assert filtered.ids(filter="id >= 95 and day < DATE '2026-04-09'") == [95, 96, 97]
    assert filtered(filter="text not in ('row 1')").count() == 99  # null is not in anything, nor out of it
    assert filtered(split_size="1", filter="id = 7").rdd.getNumPartitions() == 1


def test_columns_are_pruned_by_an_option_or_a_schema(read: Read, lake: Lake) -> None:
    append(lake.table(), 1, 2)
    assert read(columns="text").columns == ["text"]
    assert [tuple(row) for row in read(columns="text, id", filter="id = 2").collect()] == [("row 2", 2)]
    reader = read.session.read.format("frazil").option("root", str(read.root)).schema("text string")
    assert sorted(row.text for row in reader.load("db.t").collect()) == ["row 1", "row 2"]


def test_splits_are_planned_by_size(read: Read, lake: Lake) -> None:
    table = lake.table(write__parquet__row_group_limit="100")
    for first in range(0, 300, 100):
        append(table, *range(first, first + 100))
    append(table, *range(1000, 2000))
    assert read().rdd.getNumPartitions() == 1
    assert read(split_size="1").rdd.getNumPartitions() == 13
    assert read(split_size="1").count() == 1300 == count_with_duckdb(table)


def test_an_empty_table_is_an_empty_dataframe(read: Read, lake: Lake) -> None:
    lake.table()
    assert read().columns == ["id", "text"]
    assert read().collect() == []


def test_nanoseconds_are_read_as_microseconds_or_refused(read: Read, lake: Lake) -> None:
    schema = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "at", TimestampNanoType()))
    table = lake.table(schema=schema, version=3)
    publish(table, pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([1_000], pa.timestamp("ns"))}))
    assert [row.at.microsecond for row in read().collect()] == [1]
    publish(table, pa.table({"id": pa.array([2], pa.int32()), "at": pa.array([1_001], pa.timestamp("ns"))}))
    with pytest.raises(Exception, match=r"column 'at' of .* cannot be read as timestamp"):
        read().collect()
    assert read.ids(columns="id") == [1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"snapshot_id": "5"}, "has no snapshot 5"),
        ({"columns": "nope"}, "has no column 'nope'; it has id, text"),
        ({"filter": "nope = 1"}, "filter 'nope = 1' does not go with the table"),
        ({"filter": "id ="}, "filter 'id =' cannot be read"),
        ({"snapshot": "5"}, "no option 'snapshot' is known"),
        ({"split_size": "many"}, "it must be a size such as 64MB"),
        ({"start_snapshot_id": "5", "tag": "x"}, "exclude each other"),
    ],
)
def test_bad_options_are_refused_when_the_table_is_loaded(
    read: Read, lake: Lake, options: dict[str, str], said: str
) -> None:
    append(lake.table(), 1)
    with pytest.raises(Exception, match=said):
        read(**options)


def test_a_table_that_is_not_there_is_named(read: Read) -> None:
    with pytest.raises(Exception, match=r"there is no table db\.nowhere"):
        read("db.nowhere")


def test_a_schema_of_other_types_is_refused(read: Read, lake: Lake) -> None:
    append(lake.table(), 1)
    reader = read.session.read.format("frazil").option("root", str(read.root)).schema("id string")
    with pytest.raises(Exception, match=r"column 'id' of table db\.t is read as bigint, not as string"):
        reader.load("db.t").collect()
