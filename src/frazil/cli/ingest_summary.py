"""What `frazil ingest` prints when it is done."""

from __future__ import annotations

from frazil.cli.progress import human_bytes
from frazil.settings import EMBEDDED_CATALOG, CatalogSettings
from frazil.spark.ingest_result import IngestResult


def render(result: IngestResult, catalog: CatalogSettings) -> str:
    """The summary, with the lines that query the table elsewhere."""
    if result.snapshot_id is None:
        return f"{result.table}: the source has no rows, so there was nothing to publish."
    rate = result.rows / result.job_seconds if result.job_seconds else 0.0
    before = f" ({result.shards_done_before} of them before this run)" if result.shards_done_before else ""
    source = f" from {human_bytes(result.source_bytes)}" if result.source_bytes else ""
    shards = [f"  shards    {result.shards}{before}"] if result.shards else []
    lines = [
        f"{result.table}: {result.rows:,} rows in {result.files:,} files, {human_bytes(result.bytes)}"
        f"{source}{', table created' if result.table_created else ''}",
        f"  snapshot  {result.snapshot_id}, {_committed(result.commit_attempts)}",
        f"  time      {result.job_seconds:.1f} s ({rate:,.0f} rows/s), and {result.session_seconds:.1f} s to start Spark",
        *shards,
        f"  job       {result.job_id}",
        f"  at        {result.location}",
        *(f"  note      {note}" for note in result.notes),
        "",
        "Query it:",
        f"  DuckDB     {_duckdb(result)}",
        f"  PyIceberg  {_pyiceberg(result, catalog)}",
        f"  Spark      {_spark(result, catalog)}",
    ]
    return "\n".join(lines)


def _committed(attempts: int) -> str:
    if not attempts:
        return "committed by an earlier run"
    return f"committed in {attempts} {'attempt' if attempts == 1 else 'attempts'}"


def _duckdb(result: IngestResult) -> str:
    location = result.metadata_location.removeprefix("file://").replace("'", "''")
    option = "" if result.branch == "main" else f", snapshot_from_id = {result.snapshot_id}"
    return f"SELECT count(*) FROM iceberg_scan('{location}'{option});"


def _pyiceberg(result: IngestResult, catalog: CatalogSettings) -> str:
    scan = "scan()" if result.branch == "main" else f"scan(snapshot_id={result.snapshot_id})"
    if catalog.root is None:
        return f"load_catalog({catalog.name!r}).load_table({result.table!r}).{scan}.to_arrow()"
    uri = f"sqlite:///{catalog.root}/catalog.db"
    return f"load_catalog({EMBEDDED_CATALOG!r}, type='sql', uri={uri!r}).load_table({result.table!r}).{scan}.to_arrow()"


def _spark(result: IngestResult, catalog: CatalogSettings) -> str:
    if catalog.root is None:
        return f"spark.table('{catalog.name}.{result.table}')"
    return f"spark.read.format('iceberg').load('{result.metadata_location}')"
