"""`readStream.format("frazil")`: the table as it is, then what is appended, once each."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import frazil
from deletes import data_files, delete_positions
from lakes import Lake, append, ids, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def follow(session: SparkSession, home: Path, **options: Any) -> list[int]:
    """Run a stream from `db.t` to a folder of Parquet files until it has taken all there is; what came by now."""
    events = session.readStream.format("frazil").option("root", f"{home}/lake")
    for name, value in options.items():
        events = events.option(name.replace("_", "-"), value)
    writer = events.load("db.t").writeStream.format("parquet").option("checkpointLocation", f"{home}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{home}/out")
    query.awaitTermination()
    found: list[int] = [row.id for row in session.read.schema("id bigint").parquet(f"{home}/out").collect()]
    return sorted(found)


def replay_last(home: Path) -> None:
    """As if the driver had been killed before Spark noted the last batch."""
    last = max((home / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def test_a_stream_gives_the_table_and_then_each_append_once(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.table()
    append(table, 1, 2)
    delete_positions(table, {data_files(table)[0]: [0]})
    assert follow(spark, tmp_path) == [2]
    assert follow(spark, tmp_path) == [2]
    append(table, 3)
    append(table, 4)
    assert follow(spark, tmp_path) == [2, 3, 4]


def test_a_batch_that_is_done_again_has_the_same_rows(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.table()
    append(table, 1)
    follow(spark, tmp_path)
    append(table, 2)
    assert follow(spark, tmp_path) == [1, 2]
    replay_last(tmp_path)
    append(table, 3)
    assert follow(spark, tmp_path) == [1, 2, 3]


def test_a_stream_begins_with_an_empty_table_or_after_a_snapshot(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    table = lake.table()
    (tmp_path / "out").mkdir()
    assert follow(spark, tmp_path) == []
    first = append(table, 1).snapshot_id
    assert follow(spark, tmp_path) == [1]
    append(table, 2)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "out")
    assert follow(spark, tmp_path, start_snapshot_id=first) == [2]


def test_a_snapshot_that_removed_rows_ends_the_stream_and_is_named(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    table = lake.table()
    append(table, 1)
    follow(spark, tmp_path)
    snapshot = frazil.begin_snapshot(table)
    report = frazil.write_shard(snapshot, "a", [rows(2)], io=table.io)
    frazil.publish_snapshot(table, snapshot, [report], overwrite=True)
    with pytest.raises(Exception, match=f"snapshot {snapshot.snapshot_id} removed rows"):
        follow(spark, tmp_path)


def test_a_stream_from_one_table_to_another_is_exact(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.table()
    for number in range(3):
        append(table, number)
        events = spark.readStream.format("frazil").option("root", f"{tmp_path}/lake").load("db.t")
        writer = events.writeStream.format("frazil").option("root", f"{tmp_path}/lake")
        writer = writer.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True)
        writer.start("db.copy").awaitTermination()
    assert ids(lake.catalog.load_table("db.copy")) == [0, 1, 2]


def test_an_end_does_not_go_with_a_stream(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    snapshot_id = append(lake.table(), 1).snapshot_id
    with pytest.raises(Exception, match="option snapshot-id does not go with a stream"):
        follow(spark, tmp_path, snapshot_id=snapshot_id)
