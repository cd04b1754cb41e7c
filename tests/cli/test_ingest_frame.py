"""`frazil ingest --format …` takes whatever Spark can read, as one snapshot and with the same options and errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commands import Frazil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_behind_jdbc_is_ingested_by_sparks_reader(spark: SparkSession, frazil: Frazil) -> None:
    url = "jdbc:derby:memory:trips;create=true"  # the database that comes with Spark
    rows = spark.range(100).selectExpr("id", "string(id % 3) AS city", "decimal(id) / 4 AS fare")
    rows.write.option("createTableColumnTypes", "city VARCHAR(8)").mode("overwrite").jdbc(url, "trips")
    jdbc = ("--format", "jdbc", "--option", f"url={url}", "--option", "dbtable=trips")
    ran = frazil.here("ingest", *jdbc, "db.t", "--root", frazil.root, "--partition-by", "city", "--json")
    assert ran.code == 0, ran.err
    found = ran.document
    assert (found["rows"], found["outcome"], found["table_created"]) == (100, "landed", True)
    table = frazil.table()
    assert table.current_snapshot().snapshot_id == found["snapshot_id"]  # type: ignore[union-attr]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(100))
    assert table.inspect.files().num_rows == 3 == found["files"]
    assert frazil.orphans() == set() and frazil.reserved() == []


def test_files_of_a_format_of_sparks_replace_a_table(spark: SparkSession, frazil: Frazil, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("three\n")
    for files, mode in ((("a.txt", "b.txt"), "append"), (("b.txt",), "overwrite")):
        paths = [tmp_path / file for file in files]
        ran = frazil.here("ingest", "--format", "text", *paths, "db.t", "--root", frazil.root, "--mode", mode)
        assert ran.code == 0, ran.err
    assert "db.t: 1 rows in 1 files" in ran.out and "from" not in ran.out.splitlines()[0]
    assert frazil.table().scan().to_arrow()["value"].to_pylist() == ["three"]


def test_what_spark_cannot_read_is_one_line_and_leaves_nothing(
    spark: SparkSession, frazil: Frazil, tmp_path: Path
) -> None:
    ran = frazil.here("ingest", "--format", "nosuch", "x", "db.t", "--root", frazil.root)
    assert ran.code == 1 and "nosuch" in ran.err and "nothing was published" in ran.err
    (tmp_path / "a.txt").write_text("one\n")
    arguments = ("--format", "text", tmp_path / "a.txt", "db.t", "--root", frazil.root)
    assert frazil.here("ingest", *arguments, "--partition-by", "nope").code == 2
    assert frazil.here("ingest", *arguments).code == 0
    ran = frazil.here("ingest", *arguments, "--partition-by", "value")
    assert ran.code == 2 and "exists and is partitioned by nothing" in ran.err and "Traceback" not in ran.err
    assert frazil.rows() == 1 and frazil.orphans() == set()
