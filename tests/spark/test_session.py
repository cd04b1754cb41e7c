"""Spark starts with this interpreter, gives a failed task another try, and leaves signals alone."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from frazil.errors import BadInput
from frazil.spark.session import _set_worker_environment, start_session, with_task_retries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[8]", "local[8,4]"),
        ("local[8,2]", "local[8,2]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_master_is_given_the_retries_that_it_lacks(master: str, expected: str) -> None:
    assert with_task_retries(master) == expected


def test_what_is_no_master_is_refused() -> None:
    with pytest.raises(BadInput, match="'mesos:5050' is not a Spark master"):
        start_session("mesos:5050", "test", {})


def test_a_java_home_without_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadInput, match="point it at a Java 17"):
        start_session("local[*]", "test", {})


def test_no_java_at_all_is_told_with_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="apt-get install openjdk-17-jre-headless"):
        start_session("local[*]", "test", {})


def test_workers_run_this_interpreter_and_ctrl_c_stays_ours(spark: SparkSession) -> None:
    def interpreter(_: int) -> str:
        import sys

        return sys.executable

    assert set(spark.sparkContext.parallelize(range(2), 2).map(interpreter).collect()) == {sys.executable}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_workers_keep_the_memory_they_have(spark: SparkSession) -> None:
    def purge_delay(_: int) -> str | None:
        return os.environ.get("MIMALLOC_PURGE_DELAY")

    assert set(spark.sparkContext.parallelize(range(2), 2).map(purge_delay).collect()) == {"-1"}


def test_a_users_own_settings_of_the_allocator_stay(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "environment", {"MIMALLOC_PURGE_DELAY": "10"})
    monkeypatch.setenv("MIMALLOC_ALLOW_LARGE_OS_PAGES", "0")
    _set_worker_environment(spark)
    assert spark.sparkContext.environment == {"MIMALLOC_PURGE_DELAY": "10", "MIMALLOC_ALLOW_LARGE_OS_PAGES": "0"}
