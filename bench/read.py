"""Reading lineitem into Spark: through Frazil, and the same data files by Spark's own Parquet reader, interleaved."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import frazil
from bench.places import WAREHOUSES
from frazil.snapshot.schema import table_schema
from frazil.snapshot.warehouse import EmbeddedCatalog, create_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = WAREHOUSES / "read"
STREAM_BATCHES = 20
TWO = "l_quantity, l_shipdate"
LATE = "l_shipdate >= '1998-11-01'"


def measure_read(sources: Sequence[str], rounds: int) -> dict[str, Any]:
    """Seconds of each case and contender, and of a micro-batch, median and all. The session is warm."""
    make_table(sources)
    session = start()
    try:
        found = defaultdict(list)
        for number in range(rounds + 1):
            for name, case in cases(session).items():
                began = time.monotonic()
                case()
                if number:  # the first round warms up
                    found[name].append(time.monotonic() - began)
        return {
            "medians": {name: median(seconds) for name, seconds in found.items()},
            "seconds": found,
            "micro-batch": micro_batch(session),
        }
    finally:
        session.stop()
        shutil.rmtree(ROOT)


def make_table(sources: Sequence[str]) -> None:
    shutil.rmtree(ROOT, ignore_errors=True)
    (ROOT / "warehouse").mkdir(parents=True)
    schema = table_schema(pq.read_schema(sources[0]), 2, "lineitem")
    table, _ = create_table(EmbeddedCatalog(ROOT), ("db", "lineitem"), schema, None, {})
    snapshot = frazil.begin_snapshot(table)
    reports = [
        frazil.write_shard(snapshot, f"part-{at}", pq.ParquetFile(source).iter_batches())
        for at, source in enumerate(sources)
    ]
    frazil.publish_snapshot(table, snapshot, reports)


def start() -> SparkSession:
    """A session as users have it, and not the one that Frazil starts for its own work."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.python.daemon.module": "frazil.spark.daemon",
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark looks for data sources with it, else with python3
    session = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def cases(session: SparkSession) -> dict[str, Callable[[], Any]]:
    files = [str(path) for path in (ROOT / "warehouse").rglob("*.parquet")]

    def parquet() -> DataFrame:
        return session.read.parquet(*files)

    def ours(**options: str) -> DataFrame:
        return session.read.format("frazil").option("root", str(ROOT)).options(**options).load("db.lineitem")

    return {
        "all columns, parquet": lambda: nowhere(parquet()),
        "all columns, frazil": lambda: nowhere(ours()),
        "two of 16 columns, parquet": lambda: nowhere(parquet().select(*TWO.split(", "))),
        "two of 16 columns, frazil": lambda: nowhere(ours(columns=TWO)),
        "0.3 % of the rows, parquet": lambda: nowhere(parquet().where(LATE)),
        "0.3 % of the rows, frazil": lambda: nowhere(ours(filter=LATE)),
    }


def nowhere(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def micro_batch(session: SparkSession) -> dict[str, float]:
    """Milliseconds of a micro-batch of 1,000 rows a second, and of that in Frazil's hands; medians, the first ones left out."""
    rows = session.readStream.format("rate").option("rowsPerSecond", 1000).load()
    writer = rows.writeStream.format("frazil").option("root", str(ROOT))
    query = writer.option("checkpointLocation", str(ROOT / "checkpoint")).start("db.rate")
    while len(query.recentProgress) < STREAM_BATCHES:
        time.sleep(0.5)
    durations = [progress["durationMs"] for progress in query.recentProgress[5:] if progress["numInputRows"]]
    query.stop()
    return {key: median(each[key] for each in durations) for key in ("triggerExecution", "addBatch")}


def sources_in(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.glob("*.parquet"))
