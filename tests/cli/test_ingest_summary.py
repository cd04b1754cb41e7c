"""The lines that a run ends with are true, and those that query the table work as they stand."""

from __future__ import annotations

import re

import pytest
from pyiceberg.catalog import load_catalog

from commands import Frazil, parquet
from frazil.cli.ingest_summary import render
from frazil.settings import CatalogSettings
from frazil.spark.ingest_result import IngestResult
from readers import duckdb_connection


def line(text: str, name: str) -> str:
    """What the summary says after `name`."""
    (found,) = re.findall(rf"^  {name} +(.*)$", text, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("branch", ["main", "audit"])
def test_the_lines_for_duckdb_and_pyiceberg_give_the_rows(frazil: Frazil, branch: str) -> None:
    root = frazil.home / "it's a lake"
    source = parquet(frazil.home / "a.parquet", 100)
    assert frazil.here("ingest", source, "db.t", "--root", root).code == 0
    out = frazil.here("ingest", source, "db.t", "--root", root, "--branch", branch).out
    assert duckdb_connection().cursor().execute(line(out, "DuckDB")).fetchall() == [(200,)]
    assert eval(line(out, "PyIceberg"), {"load_catalog": load_catalog}).num_rows == 200


def test_every_figure_is_told(frazil: Frazil) -> None:
    out = frazil.here("ingest", parquet(frazil.home / "a.parquet", 100), "db.t", "--root", frazil.root).out
    table = frazil.table()
    assert out.startswith("db.t: 100 rows in 1 files")
    assert "table created" in out
    assert line(out, "snapshot") == f"{table.current_snapshot().snapshot_id}, committed in 1 attempt"
    assert line(out, "at") == table.location()
    assert line(out, "job") == frazil.job()
    assert re.fullmatch(r"\d+\.\d s \([\d,]+ rows/s\), and \d+\.\d s to start Spark", line(out, "time"))


def result(**changes: object) -> IngestResult:
    values: dict[str, object] = {
        "job_id": "j",
        "table": "db.t",
        "location": "s3://b/t",
        "metadata_location": "s3://b/t/metadata/1.metadata.json",
        "snapshot_id": 7,
        "rows": 10,
        "files": 2,
        "bytes": 100,
        "source_bytes": 100,
        "shards": 2,
        "shards_done_before": 0,
        "commit_attempts": 2,
        "session_seconds": 1.0,
        "job_seconds": 2.0,
        "publish_seconds": 0.1,
        "table_created": False,
    }
    return IngestResult(**{**values, **changes})  # type: ignore[arg-type]


def test_a_configured_catalog_is_named_and_retries_and_notes_are_told() -> None:
    text = render(result(notes=("mind this",), shards_done_before=1), CatalogSettings(name="weed"))
    assert line(text, "snapshot") == "7, committed in 2 attempts"
    assert line(text, "shards") == "2 (1 of them before this run)"
    assert line(text, "note") == "mind this"
    assert line(text, "PyIceberg") == "load_catalog('weed').load_table('db.t').scan().to_arrow()"
    assert line(text, "Spark") == "spark.table('weed.db.t')"


def test_what_an_earlier_run_committed_is_told_as_such() -> None:
    assert "committed by an earlier run" in render(result(commit_attempts=0), CatalogSettings(name="weed"))
