"""`frazil register`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from frazil.cli.ingest import pairs
from frazil.cli.report_errors import Output, StopSignals, command_output
from frazil.errors import BadInput
from frazil.settings import CatalogSettings, IngestSettings, state_folder

if TYPE_CHECKING:
    from frazil.spark.ingest_result import IngestResult


@click.command("register")
@click.argument("arguments", nargs=-1, metavar="FILES... TABLE")
@click.option("--root", metavar="DIR", help="Folder of an embedded catalog and warehouse.  [default: ./lake]")
@click.option("--catalog", metavar="NAME", help="A catalog configured for PyIceberg, instead of an embedded one.")
@click.option("--partition-by", metavar="TERMS", help="For a new table: 'day(ts), bucket(16, id), region'.")
@click.option("--skip-existing", is_flag=True, help="Leave out files that are in the table already.")
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
@click.option("--summary", multiple=True, metavar="KEY=VALUE", help="Goes into the snapshot's summary.")
@click.option("--spark-conf", multiple=True, metavar="KEY=VALUE", help="Spark setting; wins over Frazil's own.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, alone on stdout.")
def command(arguments: tuple[str, ...], as_json: bool, skip_existing: bool, **options: Any) -> None:
    """Add Parquet files to the Iceberg table TABLE (namespace.table) as they are, as one snapshot.

    FILES are files, folders or globs, where the table's readers can reach them. Nothing is copied, moved or rewritten,
    and no failure deletes any of them. The table is made when it is missing.

    A run that was killed is taken up by: frazil ingest --resume JOB

    \b
    Exit codes: 0 landed, 1 failed and nothing is visible, 2 usage,
                3 conflict, 4 it is not known whether it landed.
    """
    with command_output(as_json, state_folder() / "logs" / f"register-{os.getpid()}.log") as output:
        settings = _settings(arguments, options)
        result = _perform(output, settings, skip_existing)
        if as_json:
            output.document(result.to_document())
        else:
            output.text(_rendered(result, settings.catalog))


def _rendered(result: IngestResult, catalog: CatalogSettings) -> str:
    from frazil.cli.ingest_summary import render

    if not result.job_id:
        return f"{result.table}: every file is in the table already, so there was nothing to register."
    return render(replace(result, source_bytes=0), catalog)


def _settings(arguments: tuple[str, ...], options: dict[str, Any]) -> IngestSettings:
    if len(arguments) < 2:
        raise BadInput("name at least one file and a TABLE: frazil register trips/*.parquet db.trips")
    return IngestSettings(
        sources=arguments[:-1],
        table=arguments[-1],
        catalog=CatalogSettings.choose(options["root"], options["catalog"]),
        partition_by=options["partition_by"],
        branch=options["branch"],
        master=options["master"],
        conflict=options["conflict"],
        format_version=options["format_version"],
        summary=pairs("--summary", options["summary"]),
        spark_conf=pairs("--spark-conf", options["spark_conf"]),
    )


def _perform(output: Output, settings: IngestSettings, skip_existing: bool) -> IngestResult:
    signals = StopSignals.install()
    # Imported here because `frazil register --help` must not pay for PyIceberg, PyArrow and Spark.
    from frazil.cli.progress import SilentProgress, TerminalProgress
    from frazil.jobs.log import JobStore
    from frazil.spark.register import register

    with SilentProgress() if output.as_json else TerminalProgress(output.terminal) as progress:
        store = JobStore(state_folder() / "jobs")
        return register(settings, store, progress, signals.tell, skip_existing=skip_existing)
