"""A DataFrame is written as one snapshot, by nothing but `format("frazil")`, on classic Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import IdentityTransform
from pyspark import cloudpickle

import frazil
from frames import FrameLake
from frazil.snapshot.warehouse import EmbeddedCatalog
from frazil.spark import distribute
from lakes import stored_locally
from readers import read_with_duckdb, read_with_pyiceberg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no tests on their path


@pytest.fixture
def frames(tmp_path: Path) -> FrameLake:
    """An empty lake."""
    return FrameLake(tmp_path / "lake")


def numbers(spark: SparkSession, first: int, end: int, tasks: int = 2) -> DataFrame:
    """Ids with a city and a day, one of three each."""
    return spark.range(first, end, 1, tasks).selectExpr(
        "id",
        "element_at(array('Oslo', 'Bergen', 'Narvik'), int(id % 3) + 1) AS city",
        "date_add(DATE '2026-01-01', int(id % 3)) AS day",
    )


def test_an_append_makes_the_table_and_its_namespace_and_is_one_snapshot(
    spark: SparkSession, frames: FrameLake
) -> None:
    frames.save(numbers(spark, 0, 1000), "north.sea.t")
    frames.save(numbers(spark, 1000, 1500), "north.sea.t")
    table = frames.table("north.sea.t")
    assert frames.ids("north.sea.t") == list(range(1500))
    assert len(table.metadata.snapshots) == 2
    assert [str(field.field_type) for field in table.schema().fields] == ["long", "string", "date"]
    assert not any(field.required for field in table.schema().fields)
    assert frames.leftovers("north.sea.t") == set()


def test_every_type_that_spark_has_arrives_as_it_was(spark: SparkSession, frames: FrameLake) -> None:
    df = spark.sql("""
        SELECT * FROM VALUES
          (1, true, 1Y, 2S, 3L, 1.5F, 2.5D, 123.45BD, 12345678901234567890123456789012345678BD, 'ø', X'00FF',
           DATE '0001-01-01', TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP_NTZ '2026-01-01 00:00:00.000001',
           array(1, null), map('a', 1.0D), named_struct('x', 1, 'y', array(named_struct('z', 'deep')))),
          (2, null, null, null, null, float('nan'), double('-infinity'), null, null, '', X'', DATE '9999-12-31', null,
           null, array(), map(), null),
          (3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)
        AS t(i, boolean, byte, short, long, float, double, price, wide, text, octets, day, at, local, list, map, struct)
    """)
    frames.save(df)
    rows = sorted(frames.rows().to_pylist(), key=lambda row: row["i"])
    schema = {field.name: str(field.field_type) for field in frames.table().schema().fields}
    assert (schema["at"], schema["local"], schema["price"]) == ("timestamptz", "timestamp", "decimal(5, 2)")
    assert rows[0]["struct"] == {"x": 1, "y": [{"z": "deep"}]} and rows[0]["map"] == [("a", 1.0)]
    assert str(rows[0]["wide"]) == "12345678901234567890123456789012345678"
    assert rows[0]["at"].isoformat() == "1969-12-31T23:59:59.999999+00:00"
    assert all(value is None for name, value in rows[2].items() if name != "i")


def test_times_are_the_same_instants_in_any_session_time_zone(spark: SparkSession, frames: FrameLake) -> None:
    query = "SELECT TIMESTAMP '2026-03-29 00:30:00+00:00' AS at, TIMESTAMP_NTZ '2026-03-29 02:30:00' AS local"
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for name in ("UTC", "Europe/Berlin", "America/St_Johns"):
            spark.conf.set("spark.sql.session.timeZone", name)
            frames.save(spark.sql(query), partition_by="hour(at)")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert len({json.dumps(row, default=str) for row in frames.rows().to_pylist()}) == 1
    assert frames.table().inspect.partitions().num_rows == 1


def test_columns_are_found_by_name_and_what_does_not_fit_is_one_clear_error(
    spark: SparkSession, frames: FrameLake
) -> None:
    frames.save(numbers(spark, 0, 10))
    frames.save(numbers(spark, 10, 20).select("day", "id"))
    assert frames.ids() == list(range(20))
    with pytest.raises(
        Exception, match=r"the DataFrame does not fit table db.t: column 'id' is int64 in the table and string in "
    ):
        frames.save(numbers(spark, 0, 1).selectExpr("string(id) AS id"))
    with pytest.raises(Exception, match="has no column 'extra'"):
        frames.save(numbers(spark, 0, 1).selectExpr("*", "1 AS extra"))
    assert frames.leftovers() == set()


def test_a_new_table_is_partitioned_as_the_option_says(spark: SparkSession, frames: FrameLake) -> None:
    frames.save(numbers(spark, 0, 900), partition_by="city, bucket(2, id)", format_version="3")
    table = frames.table()
    assert [str(field.transform) for field in table.spec().fields] == ["identity", "bucket[2]"]
    assert table.metadata.format_version == 3 and frames.ids() == list(range(900))
    with pytest.raises(Exception, match="exists and is partitioned by"):
        frames.save(numbers(spark, 0, 1), partition_by="day")


def test_an_empty_frame_makes_the_table_but_no_snapshot(spark: SparkSession, frames: FrameLake) -> None:
    frames.save(numbers(spark, 0, 0))
    assert not frames.table().metadata.snapshots and frames.leftovers() == set()
    frames.save(numbers(spark, 0, 5))
    frames.save(numbers(spark, 0, 0), mode="overwrite", overwrite="partitions")
    assert frames.ids() == list(range(5)) and len(frames.table().metadata.snapshots) == 1


def test_mode_overwrite_replaces_the_table_its_partitions_or_what_a_filter_takes(
    spark: SparkSession, frames: FrameLake
) -> None:
    frames.save(numbers(spark, 0, 30), partition_by="city")
    frames.save(numbers(spark, 102, 105).where("city = 'Oslo'"), mode="overwrite", overwrite="partitions")
    assert frames.ids() == [*(each for each in range(30) if each % 3), 102]
    frames.save(numbers(spark, 202, 203), mode="overwrite", overwrite="city = 'Bergen' or id < 10")
    assert frames.ids() == [11, 14, 17, 20, 23, 26, 29, 102, 202]
    frames.save(numbers(spark, 7, 9), mode="overwrite")
    assert frames.ids() == [7, 8] and frames.leftovers() == set()


def test_an_overwrite_by_a_filter_takes_only_rows_that_match_it(spark: SparkSession, frames: FrameLake) -> None:
    frames.save(numbers(spark, 0, 30))
    with pytest.raises(Exception, match="rows are not among those that overwrite='id >= 25' replaces"):
        frames.save(numbers(spark, 24, 26), mode="overwrite", overwrite="id >= 25")
    with pytest.raises(Exception, match="filter 'idd >= 25' does not go with the table"):
        frames.save(numbers(spark, 24, 26), mode="overwrite", overwrite="idd >= 25")
    assert frames.ids() == list(range(30)) and frames.leftovers() == set()


def test_if_exists_leaves_a_table_alone_or_says_so(spark: SparkSession, frames: FrameLake) -> None:
    frames.save(numbers(spark, 0, 3), if_exists="error")
    frames.save(numbers(spark, 3, 9), if_exists="ignore")
    with pytest.raises(Exception, match=r"table db\.t exists already"):
        frames.save(numbers(spark, 3, 9), if_exists="error")
    assert frames.ids() == [0, 1, 2] and len(frames.table().metadata.snapshots) == 1


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_sparks_own_modes_error_and_ignore_are_refused_by_spark(
    spark: SparkSession, frames: FrameLake, mode: str
) -> None:
    with pytest.raises(Exception, match='either the "Append" or "Overwrite" mode'):
        frames.save(numbers(spark, 0, 3), mode=mode)


def test_a_branch_is_written_to(spark: SparkSession, frames: FrameLake) -> None:
    with pytest.raises(Exception, match="begins with branch main"):
        frames.save(numbers(spark, 0, 3), branch="audit")
    frames.save(numbers(spark, 0, 3))
    frames.save(numbers(spark, 3, 6), branch="audit")
    assert frames.ids() == [0, 1, 2]
    (head,) = [ref.snapshot_id for name, ref in frames.table().refs().items() if name == "audit"]
    assert sorted(read_with_pyiceberg(frames.table(), snapshot_id=head)["id"].to_pylist()) == list(range(6))


def test_an_unknown_option_is_refused_by_name(spark: SparkSession, frames: FrameLake) -> None:
    with pytest.raises(
        Exception, match="no option 'parttion-by' is known where a table is written; the known ones are"
    ):
        frames.save(numbers(spark, 0, 3), parttion_by="day")
    assert not frames.root.exists()


def fails_late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as they are, until id 900,000."""
    for batch in batches:
        if 900_000 in batch["id"].to_pylist():
            raise ZeroDivisionError("a division that nobody foresaw")
        yield batch


def test_a_write_that_fails_leaves_no_file_and_no_table_that_it_made(spark: SparkSession, frames: FrameLake) -> None:
    df = numbers(spark, 0, 1_000_000, 4).mapInArrow(fails_late, "id long, city string, day date")
    with pytest.raises(Exception, match="a division that nobody foresaw"):
        frames.save(df, partition_by="city")
    assert not EmbeddedCatalog(frames.root).table_exists("db.t")
    assert frames.stored() == set()
    frames.save(numbers(spark, 0, 10))
    with pytest.raises(Exception, match="a division that nobody foresaw"):
        frames.save(df)
    assert frames.ids() == list(range(10)) and frames.leftovers() == set()


def test_a_conflict_that_may_not_be_solved_leaves_nothing(
    spark: SparkSession, frames: FrameLake, tmp_path: Path
) -> None:
    frames.save(numbers(spark, 0, 10))
    root, mark = str(frames.root), tmp_path / "done"

    def meanwhile(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not mark.exists():
            mark.touch()
            table = EmbeddedCatalog(Path(root)).load_table("db.t")
            snapshot = frazil.begin_snapshot(table)
            rows = pa.table({"id": pa.array([77])})
            report = frazil.write_shard(snapshot, "s", [rows])
            frazil.publish_snapshot(table, snapshot, [report])
        yield from batches

    df = numbers(spark, 10, 20, 1).mapInArrow(meanwhile, "id long, city string, day date")
    with pytest.raises(Exception, match="rows that it has not seen"):
        frames.save(df, mode="overwrite")
    assert frames.ids() == [*range(10), 77] and frames.leftovers() == set()
    mark.unlink()
    frames.save(df)
    assert frames.ids() == sorted([*range(20), 77, 77]) and frames.leftovers() == set()


@pytest.mark.parametrize("mode", ["hash", "range"])
def test_distributed_rows_come_to_few_files_each_of_one_partition_and_sorted(
    spark: SparkSession, frames: FrameLake, mode: str
) -> None:
    df = numbers(spark, 0, 3000, 4).repartition(4)
    options = {"partition_by": "city, bucket(2, id), day(day)", "root": str(frames.root)}
    frames.save(distribute(df, "db.t", mode, **options), partition_by=options["partition_by"])
    partitions = frames.table().inspect.partitions().num_rows
    assert partitions == 6 and frames.ids() == list(range(3000))
    assert frames.table().inspect.files().num_rows == partitions
    assert set(distribute(df, "db.t", mode, root=str(frames.root)).columns) == {"id", "city", "day"}


@pytest.mark.parametrize(
    "terms",
    ["hour(at), truncate(2, text)", "day(local), truncate(10, id)", "month(at), year(local)", "truncate(50, price)"],
)
def test_rows_are_distributed_by_the_partition_they_are_written_to(
    spark: SparkSession, frames: FrameLake, terms: str
) -> None:
    df = spark.range(0, 400, 1, 4).selectExpr(
        "id - 200 AS id", "string(id % 7) || 'abc' AS text", "decimal(id - 200) AS price",
        "timestamp_seconds((id - 200) * 86399) AS at", "CAST(timestamp_seconds((id - 200) * 86399) AS TIMESTAMP_NTZ) AS local",
    )  # fmt: skip
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        frames.save(
            distribute(df, "db.t", "hash", root=str(frames.root), partition_by=terms, partitions=3), partition_by=terms
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    files = frames.table().inspect.files()
    assert files.num_rows == frames.table().inspect.partitions().num_rows
    assert frames.rows().num_rows == 400


def test_a_sorted_table_gets_sorted_files(spark: SparkSession, frames: FrameLake) -> None:
    frames.save(numbers(spark, 0, 0))
    with frames.table().update_sort_order() as order:
        order.desc("id", IdentityTransform())
    shuffled = numbers(spark, 0, 2000).repartition(5)
    frames.save(distribute(shuffled, "db.t", root=str(frames.root), partitions=2))
    found = [ids_of_file(path) for path in stored_locally(str(frames.root / "warehouse")) if path.endswith(".parquet")]
    assert len(found) == 2 and all(ids == sorted(ids, reverse=True) for ids in found)
    assert frames.ids() == list(range(2000))


def ids_of_file(path: str) -> list[Any]:
    return pq.read_table(path)["id"].to_pylist()


def test_distribution_by_option_is_refused_with_what_to_write_instead(spark: SparkSession, frames: FrameLake) -> None:
    with pytest.raises(Exception, match=r"frazil.spark.distribute\(df, 'db.t', 'hash'\)"):
        frames.save(numbers(spark, 0, 3), distribution="hash")


def test_both_readers_agree_with_spark_on_the_rows(spark: SparkSession, frames: FrameLake) -> None:
    df = numbers(spark, 0, 10_000, 3)
    frames.save(df, partition_by="day")
    told = df.toArrow().sort_by("id")
    assert (
        read_with_duckdb(frames.table())
        .sort_by("id")
        .equals(
            told.select(sorted(told.column_names)).cast(
                pa.schema([("city", pa.string()), ("day", pa.date32()), ("id", pa.int64())])
            )
        )
    )


def test_fewer_tasks_make_fewer_files_without_a_shuffle(spark: SparkSession, frames: FrameLake) -> None:
    rows = distribute(
        numbers(spark, 0, 300, 4), "db.t", "none", root=str(frames.root), partition_by="city", partitions=1
    )
    assert "Exchange" not in rows._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    frames.save(rows, partition_by="city")
    assert frames.table().inspect.files().num_rows == 3 and frames.ids() == list(range(300))
