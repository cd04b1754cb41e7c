"""`frazil ingest --format jdbc …`: whatever Spark itself can read, through the DataFrame sink, as one snapshot.

Such a source is Spark's to cut and to read, so a run has no shards of its own: one that is killed is started anew.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frazil import errors
from frazil.jobs.log import new_job_id
from frazil.settings import IngestSettings
from frazil.snapshot.warehouse import find_table, open_catalog, table_identifier
from frazil.sources.open import KINDS
from frazil.spark.distribution import distribute
from frazil.spark.ingest_result import IngestResult, Progress
from frazil.spark.java_error import cause_of
from frazil.spark.session import start_session, stop_session
from frazil.spark.stop import OnStop, Stop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS = re.compile(r"frazil\.errors\.(\w+): (.*)")


def is_read_by_spark(settings: IngestSettings) -> bool:
    """Whether the sources are of a format that only Spark reads."""
    return settings.format is not None and settings.format not in {kind.name for kind in KINDS}


def ingest_frame(settings: IngestSettings, progress: Progress, on_stop: OnStop) -> IngestResult:
    """Run to the end. Nothing is left of a run that fails or is stopped."""
    stop = Stop(on_stop)
    job_id = new_job_id()
    before = find_table(open_catalog(settings.catalog), table_identifier(settings.table))
    progress.phase("starting Spark")
    began = time.monotonic()
    with stop.at_once():
        spark = start_session(settings.master, f"frazil ingest {settings.table}", settings.spark_conf)
    started = time.monotonic()
    try:
        on_stop(lambda: threading.Thread(target=spark.sparkContext.cancelAllJobs).start())
        progress.phase("writing")
        _write(spark, settings, job_id)
    finally:
        stop_session(spark)
    result = _result(settings, job_id, created=before is None)
    return replace(result, session_seconds=started - began, job_seconds=time.monotonic() - started)


def _write(spark: SparkSession, settings: IngestSettings, job_id: str) -> None:
    try:
        rows = spark.read.format(str(settings.format)).options(**settings.options).load(list(settings.sources) or None)
        _save(rows, settings, job_id)
    except errors.FrazilError:
        raise
    except Exception as error:
        raise _as_ours(error, settings) from error


def _save(rows: DataFrame, settings: IngestSettings, job_id: str) -> None:
    where = {"root": settings.catalog.root} if settings.catalog.root else {"catalog": settings.catalog.name}
    options: dict[str, Any] = {
        **where,
        "branch": settings.branch,
        "conflict": settings.conflict,
        "format-version": settings.format_version,
        "merge-schema": str(settings.merge_schema).lower(),
        "on-bad-row": settings.on_bad_row,
        "summary.frazil.job": job_id,
        **{f"summary.{key}": value for key, value in settings.summary.items()},
    }
    if settings.partition_by:
        options["partition-by"] = settings.partition_by
    together = distribute(rows, settings.table, partition_by=settings.partition_by, **where)
    together.write.format("frazil").mode(settings.mode).options(**options).save(settings.table)


def _as_ours(error: Exception, settings: IngestSettings) -> errors.FrazilError:
    """An error of ours comes from Spark's Python as a text; anything else is Spark's, and nothing was published."""
    text = str(error)
    if found := _OURS.search(text):
        kind: type[errors.FrazilError] = getattr(errors, found[1], errors.WriteFailed)
        return kind(found[2])
    if "cancelled" in text.lower():
        return errors.Interrupted("the run was stopped; nothing was published")
    source = " ".join(settings.sources) or f"the {settings.format} source"
    return errors.WriteFailed(
        f"Spark could not read {source} or write its rows: {cause_of(error)}; nothing was published"
    )


def _result(settings: IngestSettings, job_id: str, *, created: bool) -> IngestResult:
    """What the table says of this run."""
    identifier = table_identifier(settings.table)
    table = open_catalog(settings.catalog).load_table(identifier)
    landed = [each for each in table.metadata.snapshots if each.summary and each.summary.get("frazil.job") == job_id]
    counts = landed[0].summary.additional_properties if landed and landed[0].summary else {}
    return IngestResult(
        job_id=job_id,
        table=settings.table,
        location=table.location(),
        metadata_location=table.metadata_location,
        snapshot_id=landed[0].snapshot_id if landed else None,
        rows=int(counts.get("added-records", 0)),
        files=int(counts.get("added-data-files", 0)),
        bytes=int(counts.get("added-files-size", 0)),
        source_bytes=0,
        shards=0,
        shards_done_before=0,
        commit_attempts=1,
        session_seconds=0.0,
        job_seconds=0.0,
        publish_seconds=0.0,
        table_created=created,
        branch=settings.branch,
    )
