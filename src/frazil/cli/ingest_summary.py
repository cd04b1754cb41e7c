"""What `frazil ingest` prints when it is done."""

from __future__ import annotations

from frazil.cli.progress import human_bytes
from frazil.settings import EMBEDDED_CATALOG, CatalogSettings
from frazil.spark.ingest_result import IngestResult
from frazil.spark.tables_result import TablesResult


def render(result: IngestResult, catalog: CatalogSettings) -> str:
    """The summary, with the lines that query the table elsewhere."""
    if result.snapshot_id is None and result.rejected:
        return f"{result.table}: nothing to publish, as no row fits; {_rejected(result)}"
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
        *([f"  rejected  {_rejected(result)}"] if result.rejected else []),
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


def render_tables(result: TablesResult, catalog: CatalogSettings) -> str:
    """The summary of a run over a database: a line per table, then what holds for all."""
    lines = [_table_line(source, each) for source, each in result.tables.items()]
    seconds, session = (
        max(getattr(each, name) for each in result.results) for name in ("job_seconds", "session_seconds")
    )
    rows = result.total("rows")
    lines += [
        f"  source    {result.source} as of {result.instant}",
        f"  time      {seconds:.1f} s ({rows / seconds if seconds else 0:,.0f} rows/s), and {session:.1f} s to start Spark",
        f"  commit    {_commits(result)}",
        f"  job       {result.job_id}",
    ]
    if result.started_over:
        lines.append("  resumed   every shard was read anew, as the instant of the first run ended with its process")
    lines += [f"  note      {note}" for each in result.results for note in each.notes]
    first = next((each for each in result.results if each.snapshot_id is not None), None)
    if first is not None:
        lines += ["", "Query one:", f"  DuckDB     {_duckdb(first)}", f"  PyIceberg  {_pyiceberg(first, catalog)}"]
    return "\n".join(lines)


def _table_line(source: str, result: IngestResult) -> str:
    if result.snapshot_id is None:
        return f"{result.table}: nothing to publish from {source}"
    created = ", table created" if result.table_created else ""
    return f"{result.table}: {result.rows:,} rows in {result.files:,} files, {human_bytes(result.bytes)}, from {source}{created}"


def _commits(result: TablesResult) -> str:
    if len(result.tables) == 1:
        return "one snapshot"
    if result.atomic:
        return "all tables became visible at one instant"
    return "one after the other, table by table: this catalog has no commit over several tables"


def _rejected(result: IngestResult) -> str:
    rows = "1 row" if result.rejected == 1 else f"{result.rejected:,} rows"
    return f"{rows}, with reasons in {result.rejected_table} where job = '{result.job_id}'"


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
