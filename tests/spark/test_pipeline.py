"""Shards go out to Spark tasks, and their reports come back once each; errors come back as what they are."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import frazil
from frazil.errors import Interrupted, SourceUnreadable, WriteFailed
from frazil.spark.pipeline import ShardTasks
from lakes import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no tests on their path


@dataclass(frozen=True)
class Numbers:
    """A shard of ids that can go wrong in every way."""

    name: str
    first: int = 0
    rows: int = 10
    bytes: int = 10
    fault: str = ""
    folder: str = ""

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  the protocol's
        if self.folder:
            Path(self.folder, f"{self.name}-{time.time_ns()}").touch()
        if self.fault == "unreadable":
            raise SourceUnreadable("source x is damaged")
        if self.fault == "bug":
            raise ZeroDivisionError("a division that nobody foresaw")
        if self.fault == "die once" and len(list(Path(self.folder).glob(f"{self.name}-*"))) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "slow":
            time.sleep(60)
        numbers = range(self.first, self.first + self.rows)
        yield pa.record_batch({"id": pa.array(numbers, pa.int64())})

    def to_document(self) -> Mapping[str, Any]:
        return {}


def tasks(spark: SparkSession, **options: Any) -> ShardTasks:
    return ShardTasks(spark.sparkContext, **options)


def test_every_shard_gives_one_report_and_all_are_published(lake: Lake, spark: SparkSession) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    running = tasks(spark)
    shards = [Numbers(f"s{at}", 10 * at) for at in range(5)]
    reports = list(running.reports(snapshot, shards, {}, 1))
    assert sorted(report.shard for report in reports) == [shard.name for shard in shards]
    assert not running.some_failed
    frazil.publish_snapshot(table, snapshot, reports)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(50))
    assert lake.orphans(table) == set()


def test_attempts_of_another_run_have_numbers_of_their_own(lake: Lake, spark: SparkSession) -> None:
    snapshot = frazil.begin_snapshot(lake.table())
    (first,) = tasks(spark).reports(snapshot, [Numbers("s")], {}, 1)
    (second,) = tasks(spark).reports(snapshot, [Numbers("s")], {}, 2)
    assert first.attempt // 1_000_000 == 1
    assert second.attempt // 1_000_000 == 2


def test_an_error_of_ours_comes_home_as_itself_and_is_not_tried_again(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    table = lake.table()
    bad = Numbers("bad", fault="unreadable", folder=str(tmp_path))
    with pytest.raises(SourceUnreadable, match=r"^source x is damaged$"):
        list(tasks(spark).reports(frazil.begin_snapshot(table), [bad], {}, 1))
    assert len(list(tmp_path.glob("bad-*"))) == 1


def test_any_other_error_is_tried_again_and_then_told_in_one_line(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    bad = Numbers("bad", fault="bug", folder=str(tmp_path))
    with pytest.raises(WriteFailed, match="ZeroDivisionError: a division that nobody foresaw") as told:
        list(tasks(spark).reports(frazil.begin_snapshot(lake.table()), [bad], {}, 1))
    assert "\n" not in str(told.value)
    assert len(list(tmp_path.glob("bad-*"))) == 4


def test_a_worker_that_dies_is_replaced_and_its_leftovers_are_suspected(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    running = tasks(spark)
    dying = Numbers("dying", fault="die once", folder=str(tmp_path))
    reports = list(running.reports(frazil.begin_snapshot(lake.table()), [Numbers("well"), dying], {}, 1))
    assert sorted(report.shard for report in reports) == ["dying", "well"]
    assert running.some_failed


def test_a_stop_ends_the_tasks(lake: Lake, spark: SparkSession) -> None:
    asked = iter(range(1000))

    def check() -> None:
        if next(asked) > 5:
            raise Interrupted("stop")

    with pytest.raises(Interrupted):
        list(
            tasks(spark, check=check).reports(frazil.begin_snapshot(lake.table()), [Numbers("s", fault="slow")], {}, 1)
        )
    assert spark.sparkContext.statusTracker().getActiveStageIds() == []
