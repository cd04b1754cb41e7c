"""`writeStream.format("frazil")`: each batch one snapshot, exactly once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from frazil.snapshot.batch_progress import last_batch
from frazil.snapshot.reservation import ended, reservations
from frazil.snapshot.warehouse import EmbeddedCatalog
from frazil.testing import crash_environment
from lakes import Lake, append, ids
from readers import count_with_duckdb
from streams import stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROGRAM = Path(__file__).parent.parent / "streams.py"


def arrive(home: Path, *numbers: int, name: str | None = None) -> None:
    """A file with these ids comes in, whole."""
    (home / "in").mkdir(exist_ok=True)
    table = pa.table({"id": pa.array(numbers, pa.int64()), "text": pa.array([f"row {n}" for n in numbers])})
    count = len(list((home / "in").iterdir()))
    pq.write_table(table, home / "file.tmp", row_group_size=max(1, len(numbers) // 2))
    moment = time.time() - 1000 + count  # the source takes files by their age
    os.utime(home / "file.tmp", (moment, moment))
    (home / "file.tmp").rename(home / "in" / (name or f"{count:03d}.parquet"))


def loaded(home: Path) -> Table:
    return EmbeddedCatalog(home / "lake").load_table("db.t")


def batches(table: Table) -> list[str | None]:
    """The batch of each snapshot, by its summary."""
    ordered = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
    return [snapshot.summary["frazil.batch-id"] if snapshot.summary else None for snapshot in ordered]


def assert_clean(lake: Lake, table: Table) -> None:
    """No file, reservation or mark of a batch that did not land is left."""
    assert lake.orphans(table) == set()
    assert not reservations(table.metadata) and not ended(table.metadata)


def replay_last(home: Path) -> None:
    """As if the driver had been killed after the last batch's commit, before Spark noted it."""
    commits = sorted((home / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    (commits[-1].parent / f".{commits[-1].name}.crc").unlink(missing_ok=True)


def test_each_batch_is_a_snapshot_that_names_query_and_batch(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    arrive(tmp_path, 1, 2, 3)
    arrive(tmp_path, 4)
    query = stream(spark, tmp_path)
    table = loaded(tmp_path)  # made by the first batch
    assert ids(table) == [1, 2, 3, 4] and count_with_duckdb(table) == 4
    assert batches(table) == ["0", "1"]
    assert {s.summary["frazil.query-id"] for s in table.metadata.snapshots if s.summary} == {str(query.id)}
    assert last_batch(table.metadata, str(query.id)) == 1
    assert_clean(lake, table)


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    arrive(tmp_path, 1)
    stream(spark, tmp_path)
    stream(spark, tmp_path)
    arrive(tmp_path, 2)
    stream(spark, tmp_path)
    assert ids(loaded(tmp_path)) == [1, 2] and batches(loaded(tmp_path)) == ["0", "1"]


def test_a_replayed_batch_is_recognised_and_leaves_nothing(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    arrive(tmp_path, 1)
    arrive(tmp_path, 2)
    stream(spark, tmp_path)
    before = loaded(tmp_path).metadata.current_snapshot_id
    replay_last(tmp_path)
    stream(spark, tmp_path)
    table = loaded(tmp_path)
    assert ids(table) == [1, 2] and table.metadata.current_snapshot_id == before
    assert_clean(lake, table)


def test_a_replayed_batch_is_recognised_when_its_snapshot_is_expired(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    arrive(tmp_path, 1)
    stream(spark, tmp_path)
    table = loaded(tmp_path)
    first = table.metadata.current_snapshot_id
    append(table, 50)
    table.maintenance.expire_snapshots().by_id(first or 0).commit()
    replay_last(tmp_path)
    stream(spark, tmp_path)
    assert ids(loaded(tmp_path)) == [1, 50]


def test_a_batch_without_rows_makes_no_snapshot(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    arrive(tmp_path, 1, 2)
    arrive(tmp_path, 3)
    arrive(tmp_path, 4)
    stream(spark, tmp_path, made=lambda events: events.where("id <> 3"))
    table = loaded(tmp_path)
    assert ids(table) == [1, 2, 4] and batches(table) == ["0", "2"]
    assert_clean(lake, table)


def test_complete_mode_replaces_the_table_with_every_batch(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    arrive(tmp_path, 1, 2)
    arrive(tmp_path, 3)

    def counted(events: DataFrame) -> DataFrame:
        return events.groupBy("text").count().selectExpr("count as id", "text")

    shuffles = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        stream(spark, tmp_path, made=counted, mode="complete")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", shuffles or "200")
    assert ids(loaded(tmp_path)) == [1, 1, 1]
    assert [s.summary.operation.value for s in loaded(tmp_path).metadata.snapshots if s.summary][-1] == "overwrite"


def test_other_writers_and_streams_may_write_to_the_same_branch(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    table = lake.table()
    append(table, 100)
    arrive(tmp_path, 1)
    stream(spark, tmp_path)
    append(lake.again(table), 101)
    arrive(tmp_path, 2)
    stream(spark, tmp_path)
    shutil.move(tmp_path / "checkpoint", tmp_path / "other")
    stream(spark, tmp_path)  # another query, which begins anew
    assert ids(loaded(tmp_path)) == [1, 1, 2, 2, 100, 101]


def test_a_batch_whose_tasks_fail_leaves_nothing_and_is_done_again(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    arrive(tmp_path, 1)
    stream(spark, tmp_path)
    arrive(tmp_path, *range(10, 50))
    broken = "case when id = 49 then raise_error('broken') else text end as text"
    with pytest.raises(Exception, match="broken"):
        stream(spark, tmp_path, made=lambda events: events.repartition(4, "id").selectExpr("id", broken))
    assert ids(loaded(tmp_path)) == [1]
    stream(spark, tmp_path)
    assert ids(loaded(tmp_path)) == [1, *range(10, 50)]
    assert_clean(lake, loaded(tmp_path))


def test_branch_partition_and_summary_are_options_of_a_stream_too(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    arrive(tmp_path, *range(20))
    stream(spark, tmp_path, partition_by="bucket(4, id)", **{"summary.made-by": "a test"})
    table = loaded(tmp_path)
    assert len(list(table.scan().plan_files())) == 4
    assert table.metadata.snapshots[0].summary["made-by"] == "a test"  # type: ignore[index]
    shutil.rmtree(tmp_path / "checkpoint")
    stream(spark, tmp_path, branch="side")
    assert len(ids(loaded(tmp_path))) == 20
    assert loaded(tmp_path).scan().use_ref("side").to_arrow().num_rows == 40


def test_a_table_may_be_named_by_path_for_to_table(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    arrive(tmp_path, 1)
    events = spark.readStream.schema("id bigint").parquet(f"{tmp_path}/in").writeStream.format("frazil")
    events = events.option("root", f"{tmp_path}/lake").option("checkpointLocation", f"{tmp_path}/checkpoint")
    try:
        events.option("path", "db.t").trigger(availableNow=True).toTable("of_spark").awaitTermination()
        assert ids(loaded(tmp_path)) == [1]
    finally:
        spark.sql("drop table if exists of_spark")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"overwrite": "table"}, "does not go with a stream"), ({"brunch": "x"}, "no option 'brunch' is known")],
)
def test_bad_options_end_the_query_before_anything_is_written(
    spark: SparkSession, lake: Lake, tmp_path: Path, options: dict[str, str], said: str
) -> None:
    arrive(tmp_path, 1)
    with pytest.raises(Exception, match=said):
        stream(spark, tmp_path, **options)
    assert lake.catalog.list_tables("db") == []


KILLED_AT = [
    "reserve:begun",
    "reserve:committed",
    "write:file-opened",
    "write:file-closed",
    "write:reported",
    "publish:before-list",
    "publish:list-written",
    "publish:committed",
]


@pytest.mark.slow
@pytest.mark.parametrize("step", KILLED_AT)
def test_a_driver_that_is_killed_at_any_step_goes_on_without_a_row_lost_or_doubled(
    spark: SparkSession, lake: Lake, tmp_path: Path, step: str
) -> None:
    arrive(tmp_path, *range(10))
    stream(spark, tmp_path)
    arrive(tmp_path, *range(10, 20))
    arrive(tmp_path, *range(20, 30))
    mark, companions = tmp_path / "mark", tmp_path / "companions"
    environment = crash_environment(step, mark=mark, companions=companions, base=os.environ)
    killed = subprocess.run(
        [sys.executable, PROGRAM, tmp_path], env=environment, timeout=120, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL and mark.exists(), killed.stderr.decode()[-2000:]
    wait_for_orphaned_workers(companions)
    query = stream(spark, tmp_path)
    table = loaded(tmp_path)
    assert ids(table) == list(range(30)) and count_with_duckdb(table) == 30
    assert batches(table) == ["0", "1", "2"]
    assert last_batch(table.metadata, str(query.id)) == 2
    assert_clean(lake, table)


def wait_for_orphaned_workers(companions: Path) -> None:
    """Spark's Python workers end when they find their JVM gone."""
    mark = f"FRAZIL_CRASH_WITH={companions}".encode()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        alive = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes():
                    alive.append(folder.name)
            except OSError:
                continue
        if not alive:
            return
        time.sleep(0.1)
    raise AssertionError(f"processes {alive} of the killed driver live on")


def test_the_query_s_name_is_known_from_its_checkpoint(tmp_path: Path) -> None:
    from frazil.spark.stream_query import query_of_checkpoint

    (tmp_path / "metadata").write_text(json.dumps({"id": "abc"}))
    assert query_of_checkpoint(str(tmp_path), {}) == "abc"
    assert query_of_checkpoint(tmp_path.as_uri(), {}) == "abc"
    assert query_of_checkpoint(str(tmp_path / "nowhere"), {}) is None
    assert query_of_checkpoint("hdfs://name/checkpoint", {}) is None
    assert query_of_checkpoint(None, {}) is None
    (tmp_path / "metadata").write_text("{")
    assert query_of_checkpoint(str(tmp_path), {}) is None
