"""The same reads and streams on Spark Connect, and on executors in JVMs of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deletes import data_files, delete_positions
from lakes import Lake, append, ids

_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession

where, home, first = sys.argv[1:4]
if where == "connect":
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
else:
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executor.memory", "512m").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.getOrCreate()
spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def ids(**options):
    return sorted(row.id for row in read(**options).collect())


def read(**options):
    return spark.read.format("frazil").options(root=f"{home}/lake", **options).load("db.t")


found = {
    "all": ids(**{"split-size": "1"}),
    "where": sorted(row.id for row in read().where("id > 195 and text <> 'row 198'").collect()),
    "first": ids(**{"snapshot-id": first, "columns": "id"})[:3],
}
try:
    read(tag="nowhere")
    read(tag="nowhere").schema
except Exception as error:
    found["error"] = str(error)
events = spark.readStream.schema("id bigint").parquet(f"{home}/in")
for source, table in ((events, "db.events"), (None, "db.copy")):
    rows = source or spark.readStream.format("frazil").option("root", f"{home}/lake").load("db.events")
    writer = rows.writeStream.format("frazil").option("root", f"{home}/lake").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{home}/{table}.checkpoint").start(table).awaitTermination()
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["connect", "cluster"])
def test_tables_are_read_and_streamed_elsewhere_as_here(lake: Lake, tmp_path: Path, where: str) -> None:
    table = lake.table()
    first = append(table, *range(100)).snapshot_id
    append(table, *range(100, 200))
    delete_positions(table, {data_files(table)[0]: [0]})
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "in" / "a.parquet")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {name: str(tmp_path / "spark") for name in ("TMPDIR", "SPARK_LOCAL_DIRS", "SPARK_WORKER_DIR")}
    environment.pop("FRAZIL_STATE", None)
    (tmp_path / "spark").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, where, str(tmp_path), str(first)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["all"] == ids(table) and len(found["all"]) == 199
    assert found["where"] == [196, 197, 199]
    assert found["first"] == [0, 1, 2]
    assert "no tag 'nowhere'" in found["error"]
    assert ids(lake.catalog.load_table("db.events")) == ids(lake.catalog.load_table("db.copy")) == [1, 2, 3]
    assert lake.orphans(lake.catalog.load_table("db.events")) == set()
