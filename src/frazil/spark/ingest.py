"""`frazil ingest`, whole: from sources to one snapshot, resumable at any point.

The order keeps a crash harmless: first look at everything that can be wrong, then reserve, then declare the job on disk,
then write, then publish once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from frazil.errors import (
    AlreadyConsumed,
    BadInput,
    CommitConflict,
    FrazilError,
    Interrupted,
    OutcomeUnknown,
    ReservationGone,
)
from frazil.jobs.job import Plan
from frazil.jobs.log import JobLog, JobStore, new_job_id
from frazil.jobs.states import Event, State
from frazil.settings import IngestSettings
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.publish_snapshot import publish_snapshot
from frazil.snapshot.reservation import begin_snapshot, cancel, renew
from frazil.snapshot.warehouse import open_catalog
from frazil.sources.parquet import ParquetShard, ParquetSource
from frazil.spark.ingest_result import IngestResult, Progress
from frazil.spark.pipeline import ShardTasks
from frazil.spark.session import start_session
from frazil.spark.target import Target, taken_back
from frazil.steps import step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnStop = Callable[[Callable[[], None]], None]

RESERVED_FOR = timedelta(days=7)
_MEBIBYTE = 1024 * 1024
# A shard is what is redone after a crash, and it writes a file to each partition it meets: small ones for plain tables,
# large ones for partitioned ones.
_PLAIN_SHARD_BYTES = 128 * _MEBIBYTE
_PARTITIONED_SHARD_BYTES = 1024 * _MEBIBYTE


@dataclass(slots=True)
class _Run:
    """One run of a job in this process."""

    settings: IngestSettings
    progress: Progress
    on_stop: OnStop
    catalog: Catalog
    spark: SparkSession | None = None
    session_seconds: float = 0.0
    created: bool = False
    began: float = 0.0
    publish_seconds: float = 0.0
    commit_attempts: int = 0
    done_before: int = 0
    leftovers: bool = False

    def session(self) -> SparkSession:
        """Spark, started when it is first asked for: nothing that can be wrong with the input needs it."""
        if self.spark is None:
            self.progress.phase("starting Spark")
            began = time.monotonic()
            app = f"frazil ingest {self.settings.table}"
            self.spark = start_session(self.settings.master, app, self.settings.spark_conf)
            self.began = time.monotonic()
            self.session_seconds = self.began - began
        return self.spark

    def stop_spark(self) -> None:
        """End Spark and its worker processes."""
        if self.spark is not None:
            self.spark.stop()


def ingest(settings: IngestSettings, store: JobStore, progress: Progress, on_stop: OnStop) -> IngestResult:
    """Run a new job to its end. `on_stop` is given the function to call when the user wants to stop."""
    with _run(settings, progress, on_stop) as run:
        progress.phase("reading footers")
        source = ParquetSource(settings.sources, run.catalog.properties)
        target = Target(run.catalog, settings, source)
        cores = run.session().sparkContext.defaultParallelism
        shards = source.shards(_shard_count(settings, source, target, cores))
        with target.table() as table:
            run.created = target.created
            snapshot = begin_snapshot(table, settings.summary, settings.branch, RESERVED_FOR)
            with _leaving_nothing(run, table, snapshot), store.create(new_job_id()) as log:
                request = {**settings.to_document(), "table-created": run.created}
                log.record(Event.PLANNED, Plan(snapshot, {s.name: s.to_document() for s in shards}, request))
                step("job:declared")
                return _finish(run, table, log, shards)


def resume(job_id: str, store: JobStore, progress: Progress, on_stop: OnStop) -> IngestResult:
    """Take up a job that was stopped or killed: redo the shards without an accepted report, publish once."""
    with store.open(job_id) as log:
        if log.job.plan is None:
            raise BadInput(f"job {job_id} was stopped before it was planned and has written nothing; start it anew")
        if log.job.state in (State.FAILED, State.CANCELLED):
            raise BadInput(f"job {job_id} is over ({log.job.state}: {log.job.note}) and was cleaned up; start it anew")
        settings = IngestSettings.from_document(log.job.plan.request)
        snapshot = log.job.plan.snapshot
        with _run(settings, progress, on_stop) as run:
            table = run.catalog.load_table(snapshot.table)
            run.created = bool(log.job.plan.request["table-created"])
            run.done_before = len(log.job.accepted)
            run.leftovers = True
            if log.job.state is State.LANDED:
                return _result(run, table, log)
            log.record(Event.RESUMED)
            if not _still_reserved(table, log):
                return _landed(run, table, log)
            with taken_back(run.catalog, table, run.created), _leaving_nothing(run, table, snapshot):
                missing = log.job.missing
                shards = [ParquetShard.from_document(name, log.job.plan.shards[name]) for name in missing]
                return _finish(run, table, log, shards)


def _still_reserved(table: Table, log: JobLog) -> bool:
    """Whether there is still something to publish. If it landed before the crash could be noted, there is not."""
    try:
        renew(table, log.job.declared.snapshot, RESERVED_FOR)
    except AlreadyConsumed:
        log.record(Event.PUBLISHING)  # nobody else publishes this job's reservation
        return False
    except ReservationGone as error:
        log.record(Event.FAILED, str(error))
        raise
    return True


def _finish(run: _Run, table: Table, log: JobLog, shards: Sequence[ParquetShard]) -> IngestResult:
    """Write the shards that are missing, then publish, then note it."""
    run.progress.planned(log.job.id, sum(s.rows for s in shards), sum(s.bytes for s in shards), len(shards))
    try:
        if shards:
            _write(run, log, shards)
        step("job:finished")
        run.on_stop(lambda: None)  # from here on, finishing is quicker than undoing
        run.progress.phase("publishing")
        if run.settings.mode == "append" and not any(report.manifests for report in log.job.accepted.values()):
            cancel(table, log.job.declared.snapshot)
            log.record(Event.CANCELLED, "there was no row to append")
            return _result(run, table, log)
        log.record(Event.PUBLISHING)
        _publish(run, table, log)
    except Interrupted as error:
        log.record(Event.CANCELLED, str(error))
        raise
    except OutcomeUnknown as error:
        log.record(Event.OUTCOME_UNKNOWN, str(error))
        raise OutcomeUnknown(f"{error}: frazil ingest --resume {log.job.id}") from error
    except CommitConflict as error:
        if run.settings.mode == "overwrite":
            log.record(Event.FAILED, str(error))
            raise
        log.record(Event.CONFLICTED, str(error))
        raise CommitConflict(f"{error}. To publish on the new head: frazil ingest --resume {log.job.id}") from error
    except FrazilError as error:
        log.record(Event.FAILED, str(error))
        raise
    return _landed(run, table, log)


def _write(run: _Run, log: JobLog, shards: Sequence[ParquetShard]) -> None:
    tasks = ShardTasks(run.session().sparkContext)
    run.on_stop(tasks.stop)
    run.progress.phase("writing")
    sizes = {shard.name: shard.bytes for shard in shards}
    for report in tasks.reports(log.job.declared.snapshot, shards, run.catalog.properties, log.job.runs):
        log.record(Event.SHARD_ACCEPTED, report)
        step("job:report-stored")
        run.progress.accepted(report.rows, sizes[report.shard])
    run.leftovers = run.leftovers or tasks.some_failed


def _publish(run: _Run, table: Table, log: JobLog) -> None:
    began = time.monotonic()
    try:
        landed = publish_snapshot(
            table,
            log.job.declared.snapshot,
            log.job.accepted.values(),
            summary={"frazil.job": log.job.id},
            overwrite=run.settings.mode == "overwrite",
            conflict="abort" if run.settings.conflict == "abort" else "rebase",
        )
        run.commit_attempts = landed.attempts
    except AlreadyConsumed:
        return  # nobody else publishes this job's reservation, so an earlier run of it did
    finally:
        run.publish_seconds = time.monotonic() - began


def _landed(run: _Run, table: Table, log: JobLog) -> IngestResult:
    log.record(Event.LANDED)
    step("publish:noted")
    table.refresh()
    if run.leftovers:
        sweep(table, log.job.declared.snapshot.commit_uuid, force=True)
    return _result(run, table, log)


def _result(run: _Run, table: Table, log: JobLog) -> IngestResult:
    job = log.job
    reports = job.accepted.values()
    landed = job.state is State.LANDED
    return IngestResult(
        job_id=job.id,
        table=".".join(table.name()),
        location=table.location(),
        metadata_location=table.metadata_location,
        snapshot_id=job.declared.snapshot.snapshot_id if landed else None,
        rows=sum(report.rows for report in reports),
        files=sum(report.files for report in reports),
        bytes=sum(report.size for report in reports),
        source_bytes=sum(
            ParquetShard.from_document(name, document).bytes for name, document in job.declared.shards.items()
        ),
        shards=len(job.declared.shards),
        shards_done_before=run.done_before,
        commit_attempts=run.commit_attempts,
        session_seconds=run.session_seconds,
        job_seconds=time.monotonic() - run.began if run.began else 0.0,
        publish_seconds=run.publish_seconds,
        table_created=run.created,
    )


@contextmanager
def _run(settings: IngestSettings, progress: Progress, on_stop: OnStop) -> Iterator[_Run]:
    """A run with its catalog open; Spark is stopped at the end."""
    run = _Run(settings, progress, on_stop, open_catalog(settings.catalog))
    try:
        yield run
    finally:
        run.stop_spark()


def _shard_count(settings: IngestSettings, source: ParquetSource, target: Target, cores: int) -> int:
    """As many shards as cores, times as often as keeps them near their size."""
    usual = _PARTITIONED_SHARD_BYTES if target.is_partitioned else _PLAIN_SHARD_BYTES
    rounds = -(-source.bytes // ((settings.shard_bytes or usual) * cores))
    return int(max(1, rounds) * cores)


@contextmanager
def _leaving_nothing(run: _Run, table: Table, snapshot: DistributedSnapshot) -> Iterator[None]:
    """Where it is proven that nothing landed and nothing can be resumed, leave no file and no reservation behind."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except BaseException as error:
        if isinstance(error, CommitConflict) and run.settings.mode == "append":
            raise
        run.on_stop(lambda: None)
        run.progress.phase("cleaning up")
        run.stop_spark()  # no task may write on while its files are removed
        sweep(table, snapshot.commit_uuid, force=True)
        raise
