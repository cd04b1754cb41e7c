"""The same write on executors of their own, which may die in the middle of it, and by attempts that race each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from frames import FrameLake

_PROGRAM = """
import json, os, pathlib, signal, sys, time
from pyspark.sql import SparkSession

root, marks, what = sys.argv[1:4]
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
builder = builder.config("spark.executor.memory", "512m").config("spark.driver.bindAddress", "127.0.0.1")
if what == "slow":
    builder = builder.config("spark.speculation", "true").config("spark.speculation.interval", "100ms")
    builder = builder.config("spark.speculation.quantile", "0.25").config("spark.speculation.multiplier", "1.1")
    builder = builder.config("spark.speculation.minTaskRuntime", "100ms")
spark = builder.getOrCreate()


def once(name):
    try:
        os.close(os.open(os.path.join(marks, name), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def rows(batches):
    for batch in batches:
        yield batch
        ids = batch["id"].to_pylist()
        if what == "dies" and max(ids) > 90_000 and once("died"):
            java = os.getppid()  # the daemon of workers
            while "CoarseGrainedExecutorBackend" not in open(f"/proc/{java}/cmdline").read():
                java = int(open(f"/proc/{java}/stat").read().rpartition(")")[2].split()[1])
            os.kill(java, signal.SIGKILL)
            time.sleep(60)
        if what == "slow" and max(ids) > 90_000 and once("slept"):
            time.sleep(6)


df = spark.range(0, 100_000, 1, 4).selectExpr("id", "string(id % 3) AS city").mapInArrow(rows, "id long, city string")
df.write.format("frazil").mode("append").options(**{"root": root, "partition-by": "city"}).save("db.t")
print(json.dumps(sorted(os.listdir(marks))))
spark.stop()
"""


@pytest.mark.parametrize(("what", "mark"), [("dies", "died"), ("slow", "slept")])
def test_an_executor_that_dies_and_an_attempt_that_is_overtaken_double_no_row_and_leave_no_file(
    tmp_path: Path, what: str, mark: str
) -> None:
    lake, marks = FrameLake(tmp_path / "lake"), tmp_path / "marks"
    marks.mkdir()
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "TMPDIR": str(tmp_path),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment |= {"SPARK_LOCAL_DIRS": str(tmp_path), "SPARK_WORKER_DIR": str(tmp_path / "work")}
    driver = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(lake.root), str(marks), what],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert driver.returncode == 0, driver.stderr[-4000:]
    assert json.loads(driver.stdout.splitlines()[-1]) == [mark]
    assert lake.ids() == list(range(100_000))
    assert lake.leftovers() == set()
