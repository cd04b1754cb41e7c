"""Frazil's DataFrame sink on PySpark 4: three loads in one session, the first of them cold.

The plan is the peer's: Spark reads the files and hands the rows to the sink. By month the rows are brought together
first by `frazil.spark.distribute`, as Iceberg's own sink has Spark do by itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

from bench.contenders.protocol import PROCESSES, Run, Task, answer, timed
from frazil.spark import RECOMMENDED_SETTINGS, distribute

LOADS = 3
DRIVER_MEMORY = "8g"
MONTHS = "month(l_shipdate)"


def session(warehouse: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": f"{warehouse}/scratch",
        **RECOMMENDED_SETTINGS,
        **json.loads(os.environ.get("FRAZIL_BENCH_CONF", "{}")),
    }
    builder = SparkSession.builder.master(f"local[{PROCESSES}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def load(spark: SparkSession, task: Task, name: str) -> None:
    rows = spark.read.parquet(*task.sources)
    options = {"root": task.warehouse}
    if task.by_month:
        options["partition-by"] = MONTHS
        mode = os.environ.get("FRAZIL_BENCH_DISTRIBUTION", "none")
        tasks = PROCESSES if mode == "none" else None
        rows = distribute(rows, name, mode, root=task.warehouse, partition_by=MONTHS, partitions=tasks)
    rows.write.format("frazil").mode("append").options(**options).save(name)


def main() -> None:
    task = Task.from_arguments()
    started = time.perf_counter()
    spark = session(task.warehouse)
    spark.range(1).count()
    session_seconds = time.perf_counter() - started
    runs: list[Run] = []
    for number in range(LOADS):
        name = f"bench.lineitem_{number}"
        kind = "warm" if number else "cold"
        folder = Path(task.warehouse, "warehouse", *name.split("."))
        run = timed(lambda name=name: load(spark, task, name), folder, kind)
        runs.append(replace(run, session_seconds=session_seconds))
    answer(runs, {name: version(name) for name in ("frazil", "pyspark", "pyarrow")})
    spark.stop()


if __name__ == "__main__":
    main()
