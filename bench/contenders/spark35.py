"""PySpark 3.5 with Iceberg's Java runtime: three loads in one session, the first of them cold.

The runtime is the one inside `sagemaker-feature-store-pyspark`: Iceberg 1.9.0, all of it under `smfs.shaded.`.
By month Spark needs no hint: Iceberg asks for a hash distribution, and Spark shuffles the rows by partition itself.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import feature_store_pyspark
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.functions import months

from bench.contenders.protocol import PROCESSES, Run, Task, answer, timed

LOADS = 3
ICEBERG = "smfs.shaded.org.apache.iceberg"
JAR = Path(feature_store_pyspark.__file__).parent / "jars" / "sagemaker-feature-store-spark-sdk-3.5.jar"
DRIVER_MEMORY = "8g"


def session(warehouse: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": str(JAR),
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": f"{warehouse}/scratch",
        "spark.sql.extensions": f"{ICEBERG}.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": f"{ICEBERG}.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"file://{warehouse}",
    }
    builder = SparkSession.builder.master(f"local[{PROCESSES}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def load(spark: SparkSession, task: Task, name: str) -> None:
    rows = spark.read.parquet(*task.sources)
    writer = rows.writeTo(f"lake.bench.{name}").using("iceberg")
    if task.by_month:
        writer = writer.partitionedBy(months("l_shipdate"))
    writer.create()


def main() -> None:
    task = Task.from_arguments()
    started = time.perf_counter()
    spark = session(task.warehouse)
    spark.range(1).count()
    session_seconds = time.perf_counter() - started
    runs: list[Run] = []
    for number in range(LOADS):
        name = f"lineitem_{number}"
        kind = "warm" if number else "cold"
        run = timed(lambda name=name: load(spark, task, name), Path(task.warehouse) / "bench" / name, kind)
        runs.append(replace(run, session_seconds=session_seconds))
    answer(runs, {"pyspark": pyspark.__version__, "iceberg": "1.9.0"})
    spark.stop()


if __name__ == "__main__":
    main()
