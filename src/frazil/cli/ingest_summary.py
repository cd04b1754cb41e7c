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
    lines = [
        f"{result.table}: {result.rows:,} rows in {result.files:,} files, {human_bytes(result.bytes)} "
        f"from {human_bytes(result.source_bytes)}{', table created' if result.table_created else ''}",
        f"  snapshot  {result.snapshot_id}, committed in {result.commit_attempts or 'an earlier run,'} "
        f"{'attempt' if result.commit_attempts == 1 else 'attempts'}"
        if result.commit_attempts
        else f"  snapshot  {result.snapshot_id}, committed by an earlier run",
        f"  time      {result.job_seconds:.1f} s ({rate:,.0f} rows/s), and {result.session_seconds:.1f} s to start Spark",
        f"  shards    {result.shards}{before}",
        f"  job       {result.job_id}",
        f"  at        {result.location}",
        "",
        "Query it:",
        f"  DuckDB     {_duckdb(result)}",
        f"  PyIceberg  {_pyiceberg(result, catalog)}",
        f"  Spark      {_spark(result, catalog)}",
    ]
    return "\n".join(lines)


def _duckdb(result: IngestResult) -> str:
    return f"SELECT count(*) FROM iceberg_scan('{result.metadata_location.removeprefix('file://')}');"


def _pyiceberg(result: IngestResult, catalog: CatalogSettings) -> str:
    if catalog.root is None:
        return f"load_catalog({catalog.name!r}).load_table({result.table!r}).scan().to_arrow()"
    return (
        f"load_catalog({EMBEDDED_CATALOG!r}, type='sql', uri='sqlite:///{catalog.root}/catalog.db')"
        f".load_table({result.table!r}).scan().to_arrow()"
    )


def _spark(result: IngestResult, catalog: CatalogSettings) -> str:
    if catalog.root is None:
        return f"spark.table('{catalog.name}.{result.table}')"
    return f"spark.read.format('iceberg').load('{result.metadata_location}')"
