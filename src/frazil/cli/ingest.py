"""`frazil ingest`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from frazil.cli.report_errors import Output, StopSignals, command_output
from frazil.errors import BadInput
from frazil.settings import CatalogSettings, IngestSettings, RejectLimit, state_folder
from frazil.sources.postgres_address import is_address, without_credentials

if TYPE_CHECKING:
    from frazil.spark.ingest_result import IngestResult
    from frazil.spark.tables_result import TablesResult


@click.command("ingest")
@click.argument("arguments", nargs=-1, metavar="SOURCE... TABLE")
@click.option("--root", metavar="DIR", help="Folder of an embedded catalog and warehouse.  [default: ./lake]")
@click.option("--catalog", metavar="NAME", help="A catalog configured for PyIceberg, instead of an embedded one.")
@click.option("--partition-by", metavar="TERMS", help="For a new table: 'day(ts), bucket(16, id), region'.")
@click.option("--mode", type=click.Choice(["append", "overwrite"]), default="append", show_default=True)
@click.option("--merge-schema", is_flag=True, help="Change the table's schema so that the source fits, if it can be.")
@click.option(
    "--on-bad-row",
    type=click.Choice(["fail", "reject"]),
    default="fail",
    show_default=True,
    help="A row that does not fit: fail the run, or write it to TABLE__rejected.",
)
@click.option("--max-rejected", metavar="N|P%", help="Fail if more rows than this are rejected.")
@click.option("--branch", default="main", show_default=True, help="The branch to publish to.")
@click.option("--master", default="local[*]", show_default=True, help="Spark master.")
@click.option(
    "--conflict",
    type=click.Choice(["rebase", "abort"]),
    default="rebase",
    show_default=True,
    help="When another writer publishes first: append after it, or stop with exit code 3.",
)
@click.option("--format-version", type=click.IntRange(1, 3), default=2, show_default=True, help="For a new table.")
@click.option("--shard-size", metavar="BYTES", type=click.IntRange(min=1), help="Bytes of source per shard.")
@click.option("--format", metavar="NAME", help="The sources' format, where their names do not tell it.")
@click.option("--option", multiple=True, metavar="KEY=VALUE", help="An option of the format.")
@click.option("--schema", metavar="COLUMNS", help="Types for CSV and JSON: 'id bigint, price decimal(10,2)'.")
@click.option("--tables", metavar="NAMES", help="Of a PostgreSQL database: 'public.orders', 'public.*,!public.log_*'.")
@click.option("--query", metavar="SELECT", help="Of a PostgreSQL database: the rows of a query.")
@click.option("--summary", multiple=True, metavar="KEY=VALUE", help="Goes into the snapshot's summary.")
@click.option("--spark-conf", multiple=True, metavar="KEY=VALUE", help="Spark setting; wins over Frazil's own.")
@click.option("--resume", metavar="JOB", help="Take up a job that was stopped or killed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, alone on stdout.")
def command(arguments: tuple[str, ...], resume: str | None, as_json: bool, **options: Any) -> None:
    """Load files into the Iceberg table TABLE (namespace.table), as one snapshot.

    SOURCE is a file, a folder or a glob, here or on an object store (s3://…), of Parquet, CSV, JSON lines, Avro, ORC or
    Arrow IPC; or the address of a PostgreSQL database with --tables, where TABLE may be a namespace. The table is made
    when it is missing.

    \b
    Exit codes: 0 landed, 1 failed and nothing is visible, 2 usage,
                3 conflict, 4 it is not known whether it landed.
    """
    with command_output(as_json, state_folder() / "logs" / f"ingest-{os.getpid()}.log") as output:
        if resume is None:
            result, catalog = _perform(output, settings=_settings(arguments, options))
        else:
            result, catalog = _perform(output, job_id=resume, changes=_changes(arguments, options))
        if as_json:
            output.document(result.to_document())
        else:
            output.text(_rendered(result, catalog))


def _rendered(result: IngestResult | TablesResult, catalog: CatalogSettings) -> str:
    from frazil.cli.ingest_summary import render, render_tables
    from frazil.spark.tables_result import TablesResult

    return render_tables(result, catalog) if isinstance(result, TablesResult) else render(result, catalog)


def _settings(arguments: tuple[str, ...], options: dict[str, Any]) -> IngestSettings:
    if len(arguments) < 2 and not (arguments and options["format"]):  # a format of Spark's may need no path
        raise BadInput("name at least one SOURCE and a TABLE: frazil ingest trips/*.parquet db.trips")
    arguments, credentials = without_credentials(arguments)
    _check_database(arguments[:-1], options)
    return IngestSettings(
        sources=arguments[:-1],
        table=arguments[-1],
        catalog=CatalogSettings.choose(options["root"], options["catalog"]),
        partition_by=options["partition_by"],
        mode=options["mode"],
        branch=options["branch"],
        master=options["master"],
        conflict=options["conflict"],
        format_version=options["format_version"],
        summary=pairs("--summary", options["summary"]),
        spark_conf=pairs("--spark-conf", options["spark_conf"]),
        shard_bytes=options["shard_size"],
        format=options["format"],
        options=_format_options(options),
        tables=options["tables"],
        query=options["query"],
        credentials=credentials,
        merge_schema=options["merge_schema"],
        on_bad_row=options["on_bad_row"],
        max_rejected=_limit(options["max_rejected"], options["on_bad_row"]),
    )


def _format_options(options: dict[str, Any]) -> dict[str, str]:
    """What goes to the format: `--schema` is one of its options that has a name of its own."""
    given = pairs("--option", options["option"])
    return given if options["schema"] is None else {**given, "schema": options["schema"]}


def _check_database(sources: tuple[str, ...], options: dict[str, Any]) -> None:
    """`--tables` and `--query` belong to a database, which is the only source then."""
    given = [f"--{name}" for name in ("tables", "query") if options[name] is not None]
    if not any(is_address(source) for source in sources):
        if given:
            raise BadInput(f"{given[0]} needs the address of a PostgreSQL database: postgresql://user@host/database")
        return
    if len(sources) > 1:
        raise BadInput("a PostgreSQL database is ingested by itself: name one address, and one TABLE or namespace")
    if options["on_bad_row"] == "reject" and options["tables"] is not None:
        raise BadInput(
            "--on-bad-row reject goes with one table, not with --tables; ingest tables with bad rows one by one"
        )
    if len(given) != 1:
        raise BadInput("of a PostgreSQL database, say either which tables with --tables, or a SELECT with --query")


def _limit(text: str | None, on_bad_row: str) -> str | None:
    if text is not None and on_bad_row != "reject":
        raise BadInput("--max-rejected goes with --on-bad-row reject: otherwise the first bad row fails the run")
    RejectLimit.parse(text)
    return text


def _changes(arguments: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """What a resumed job may be told anew: where and how Spark runs. Everything else is the job's own."""
    context = click.get_current_context()
    given = {name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    arguments, credentials = without_credentials(arguments)
    if len(arguments) == 1 and is_address(arguments[0]):
        arguments = ()
    if arguments or given - {"master", "spark_conf"}:
        named = sorted("--" + name.replace("_", "-") for name in given - {"master", "spark_conf"})
        raise BadInput(
            f"--resume takes its sources, table and options from the job; leave out {', '.join([*arguments, *named])} "
            "(only --master and --spark-conf may be given anew)"
        )
    changes: dict[str, Any] = {"master": options["master"]} if "master" in given else {}
    changes |= {"credentials": credentials} if credentials else {}
    return changes | ({"spark_conf": pairs("--spark-conf", options["spark_conf"])} if "spark_conf" in given else {})


def pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """What was given as KEY=VALUE, perhaps several times."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise BadInput(f"{option} {text!r} is not of the form KEY=VALUE")
        found[key] = value
    return found


def _perform(
    output: Output,
    settings: IngestSettings | None = None,
    job_id: str = "",
    changes: dict[str, Any] | None = None,
) -> tuple[IngestResult | TablesResult, CatalogSettings]:
    """Run a new job, or with no settings take up the one of that id."""
    signals = StopSignals.install()
    # Imported here because `frazil ingest --help` must not pay for PyIceberg, PyArrow and Spark.
    from frazil.cli.progress import SilentProgress, TerminalProgress
    from frazil.jobs.log import JobStore
    from frazil.spark.ingest import ingest, resume
    from frazil.spark.ingest_frame import ingest_frame, is_read_by_spark
    from frazil.spark.ingest_tables import ingest_tables, jobs_of, resume_tables

    store = JobStore(state_folder() / "jobs")
    with SilentProgress() if output.as_json else TerminalProgress(output.terminal) as progress:
        if settings is not None and is_read_by_spark(settings):
            return ingest_frame(settings, progress, signals.tell), settings.catalog
        if settings is not None:
            run = ingest if settings.tables is None and settings.query is None else ingest_tables
            return run(settings, store, progress, signals.tell), settings.catalog
        plan = store.read((jobs_of(store, job_id) or [job_id])[0]).plan
        take_up = resume if plan is None or "members" not in plan.request else resume_tables
        result = take_up(job_id, store, progress, signals.tell, changes)
        return result, CatalogSettings.from_document(store.read((jobs_of(store, job_id))[0]).declared.request)
