"""What the pages on reading and streaming show is executed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField, StringType

from frazil.scan.choice import SnapshotChoice
from frazil.spark.options import ReadOptions
from lakes import Lake, ids
from test_documents import CHECKOUT, python_blocks
from test_readers_agree import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(document: str, **names: Any) -> dict[str, Any]:
    for block in python_blocks(document):
        exec(block, names)
    return names


def test_the_page_on_reading_runs(
    spark: SparkSession, lake: Lake, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "day", DateType()), NestedField(3, "city", StringType())
    )
    table = lake.table("trips", schema=schema)
    days = pa.array(["2026-01-31", "2026-02-01"]).cast(pa.date32())
    publish(table, pa.table({"id": [1, 2], "day": days, "city": ["Reykjavík", "Akureyri"]}))
    try:
        names = run("docs/spark-read.md", spark=spark, ROOT=str(tmp_path / "lake"))
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert "Reykjavík" in capfd.readouterr().out
    assert sorted(row.id for row in names["cities"].collect()) == [1, 2]
    assert names["same"].columns == ["id", "city"]


def test_the_page_on_streaming_runs(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "in" / "a.parquet")
    events = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    run(
        "docs/streaming.md", spark=spark, events=events, ROOT=str(tmp_path / "lake"), CHECKPOINT=str(tmp_path / "check")
    )
    assert ids(lake.catalog.load_table("db.events")) == ids(lake.catalog.load_table("db.copy")) == [1, 2]


def test_every_option_of_a_read_is_documented() -> None:
    page = (CHECKOUT / "docs" / "spark-read.md").read_text()
    fields = set(SnapshotChoice.__dataclass_fields__) | set(ReadOptions.__dataclass_fields__)
    spelt = {"as_of_ms": "as-of-timestamp", "split_bytes": "split-size", "table": "load"}
    assert {name for name in fields if f"{spelt.get(name, name.replace('_', '-'))}" not in page} == set()
