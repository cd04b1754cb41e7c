"""`frazil ingest`, whole: from sources to one snapshot, resumable at any point.

The order keeps a crash harmless: first look at everything that can be wrong, then reserve, then declare the job on disk,
then write, then publish once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from frazil.errors import (
    AlreadyConsumed,
    BadInput,
    CommitConflict,
    CommitRefused,
    FrazilError,
    Interrupted,
    OutcomeUnknown,
    ReservationGone,
    StorageFailed,
)
from frazil.jobs.job import Plan
from frazil.jobs.log import JobLog, JobStore, new_job_id
from frazil.jobs.states import Event, State
from frazil.settings import IngestSettings, RejectLimit
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.outcome import Landed
from frazil.snapshot.publish_snapshot import Publisher, publish_snapshot, publisher_of
from frazil.snapshot.publish_together import publish_together
from frazil.snapshot.reservation import begin_snapshot, cancel, renew
from frazil.snapshot.transaction import commits_together
from frazil.snapshot.warehouse import find_table, open_catalog
from frazil.sources.open import open_source, shard_from_document
from frazil.sources.source import Shard, Source
from frazil.spark.ingest_result import IngestResult, Progress
from frazil.spark.pipeline import ShardTasks
from frazil.spark.register_publish import publish_registered, registered_paths
from frazil.spark.rejects import Rejects
from frazil.spark.session import start_session, stop_session
from frazil.spark.stop import OnStop, Stop
from frazil.spark.target import Target, taken_back
from frazil.steps import step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESERVED_FOR = timedelta(days=7)
_MEBIBYTE = 1024 * 1024
# A shard is what is redone after a crash, and it writes a file to each partition it meets: small ones for plain tables,
# large ones for partitioned ones.
_PLAIN_SHARD_BYTES = 128 * _MEBIBYTE
_PARTITIONED_SHARD_BYTES = 1024 * _MEBIBYTE


@dataclass(slots=True)
class Run:
    """One run of a job in this process."""

    settings: IngestSettings
    progress: Progress
    stop: Stop
    catalog: Catalog
    spark: SparkSession | None = None
    session_seconds: float = 0.0
    created: bool = False
    began: float = 0.0
    publish_seconds: float = 0.0
    commit_attempts: int = 0
    done_before: int = 0
    leftovers: bool = False
    publishing: bool = False
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    rejects: Rejects | None = None
    notes: list[str] = field(default_factory=list)

    def session(self) -> SparkSession:
        """Spark, started when it is first asked for: nothing that can be wrong with the input needs it."""
        if self.spark is None:
            self.progress.phase("starting Spark")
            began = time.monotonic()
            app = f"frazil ingest {self.settings.table}"
            with self.stop.at_once():
                self.spark = start_session(self.settings.master, app, self.settings.spark_conf)
            self.began = time.monotonic()
            self.session_seconds = self.began - began
        return self.spark

    def stop_spark(self) -> None:
        """End Spark and its worker processes."""
        if self.spark is not None:
            stop_session(self.spark)


def ingest(settings: IngestSettings, store: JobStore, progress: Progress, on_stop: OnStop) -> IngestResult:
    """Run a new job to its end. `on_stop` is given the function to call when the user wants to stop."""
    with running(settings, progress, on_stop) as run:
        progress.phase("looking at the sources")
        with run.stop.at_once():
            source = open_source(settings.sources, run.catalog.properties, settings.format, settings.options)
            target = Target(run.catalog, settings, source)
            source = target.source
        cores = run.session().sparkContext.defaultParallelism
        shards = source.shards(shard_count(settings, source, target, cores))
        with target.table() as table:
            run.created = target.created
            run.stop.check()
            snapshot = begin_snapshot(table, settings.summary, settings.branch, RESERVED_FOR)
            with leaving_nothing(run, table, snapshot), _rejecting(run, table), store.create(new_job_id()) as log:
                request = {**settings.to_document(), "table-created": run.created, **_noted(run.rejects)}
                documents = {shard.name: shard.to_document() for shard in shards}
                log.record(
                    Event.PLANNED, Plan(snapshot, documents, request, run.rejects.snapshot if run.rejects else None)
                )
                step("job:declared")
                return finish(run, table, log, shards)


def resume(
    job_id: str, store: JobStore, progress: Progress, on_stop: OnStop, changes: Mapping[str, Any] | None = None
) -> IngestResult:
    """Take up a job that was killed: redo the shards without an accepted report, publish once.

    `changes` to its settings may say where and how Spark runs this time.
    """
    with store.open(job_id) as log:
        if log.job.plan is None:
            raise BadInput(f"job {job_id} was stopped before it was planned and has written nothing; start it anew")
        if log.job.state in (State.FAILED, State.CANCELLED):
            raise BadInput(f"job {job_id} is over ({log.job.state}: {log.job.note}) and was cleaned up; start it anew")
        settings = replace(IngestSettings.from_document(log.job.plan.request), **(changes or {}))
        if log.job.conflicted:
            settings = replace(settings, conflict="rebase")  # as its error said a resume would do
        snapshot = log.job.plan.snapshot
        with running(settings, progress, on_stop) as run:
            table = find_table(run.catalog, snapshot.table)
            if table is None:
                raise CommitRefused(f"table {snapshot.name} of job {job_id} is not there any more; start the job anew")
            run.created = bool(log.job.plan.request["table-created"])
            run.done_before = len(log.job.accepted)
            run.leftovers = True
            run.rejects = Rejects.again(run.catalog, log.job, RejectLimit.parse(settings.max_rejected))
            if log.job.state is State.LANDED:
                return landed(run, table, log)
            log.record(Event.RESUMED)
            if not still_reserved(table, log):
                return landed(run, table, log)
            if run.rejects is not None:
                run.rejects.renew(RESERVED_FOR)
            with taken_back(run.catalog, table, run.created), leaving_nothing(run, table, snapshot):
                missing = log.job.missing
                shards = [shard_from_document(name, log.job.plan.shards[name]) for name in missing]
                return finish(run, table, log, shards)


def still_reserved(table: Table, log: JobLog) -> bool:
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


def finish(run: Run, table: Table, log: JobLog, shards: Sequence[Shard]) -> IngestResult:
    """Write the shards that are missing, then publish, then note it."""
    run.progress.planned(log.job.id, sum(s.rows for s in shards), sum(s.bytes for s in shards), len(shards))
    with _noting(run, table, log):
        if shards:
            write(run, table, log, shards)
        step("job:finished")
        run.stop.check()
        run.stop.ignore()
        run.progress.phase("publishing")
        if run.rejects is not None:
            run.rejects.check(log.job.accepted, finished=True)
        if not has_rows(run, log):
            return nothing_to_append(run, table, log)
        log.record(Event.PUBLISHING)
        publish(run, table, log)
    return landed(run, table, log)


@contextmanager
def _noting(run: Run, table: Table, log: JobLog) -> Iterator[None]:
    """Note in the job's log why the run ends, and say how it can be taken up where it can."""
    try:
        yield
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
    except Exception as error:
        if not run.publishing:
            raise
        text = f"publishing to table {'.'.join(table.name())} broke off ({type(error).__name__}: {error})"
        log.record(Event.OUTCOME_UNKNOWN, text)
        raise OutcomeUnknown(f"{text}; nothing was deleted: frazil ingest --resume {log.job.id}") from error


def has_rows(run: Run, log: JobLog) -> bool:
    """Whether there is anything to publish: an overwrite always has the rows that it takes out."""
    return run.settings.mode != "append" or any(report.manifests for report in log.job.accepted.values())


def nothing_to_append(run: Run, table: Table, log: JobLog) -> IngestResult:
    """End a job without a snapshot."""
    _publish_rejected(run, log)
    cancel(table, log.job.declared.snapshot)
    if run.rejects is not None:
        run.rejects.close(log.job, leftovers=run.leftovers)
    log.record(Event.CANCELLED, "there was no row to append")
    return result_of(run, table, log, landed=False)


def write(run: Run, table: Table, log: JobLog, shards: Sequence[Shard], phase: str = "writing") -> None:
    """Run these shards on Spark; each report is on disk before it counts."""
    tasks = ShardTasks(run.session().sparkContext, run.stop.check)
    run.progress.phase(phase)
    sizes = {shard.name: shard.bytes for shard in shards}
    # The table's own storage properties may hold credentials that the catalog lent for this table alone.
    snapshot = log.job.declared.snapshot.with_storage(table.io.properties)
    rejects = run.rejects.to(snapshot, log.job.id) if run.rejects else None
    storage = {**run.catalog.properties, **run.credentials}
    for report in tasks.reports(snapshot, shards, storage, log.job.runs, rejects):
        log.record(Event.SHARD_ACCEPTED, report)
        step("job:report-stored")
        if run.rejects is not None:
            run.rejects.check(log.job.accepted, finished=False)
        run.progress.accepted(report.rows, sizes[report.shard])
    run.leftovers = run.leftovers or tasks.some_failed


def publish(run: Run, table: Table, log: JobLog, summary: Mapping[str, str] | None = None) -> None:
    """Publish a job whose shards all have reports."""
    began = time.monotonic()
    run.publishing = True
    try:
        together = [run.rejects.publisher(log.job)] if run.rejects and commits_together(run.catalog) else []
        answer = _publish_own(run, table, log, summary or {}, [each for each in together if each is not None])
        run.commit_attempts = answer.attempts
        run.leftovers = run.leftovers or bool(answer.leftovers)
    except AlreadyConsumed:
        return  # nobody else publishes this job's reservation, so an earlier run of it did
    finally:
        run.publish_seconds = time.monotonic() - began


def _publish_own(
    run: Run, table: Table, log: JobLog, summary: Mapping[str, str], together: Sequence[Publisher]
) -> Landed:
    """Publish the job's rows: at one instant with the rejected ones where the catalog can do that, else after them."""
    job, options = log.job, _publish_options(run, log.job.id, summary)
    reports = job.accepted.values()
    if together:
        return publish_together([publisher_of(table, job.declared.snapshot, reports, **options), *together])[0]
    if registered := registered_paths(job.declared.shards.values()):
        return publish_registered(
            table,
            job.declared.snapshot,
            reports,
            registered,
            summary=options["summary"],
            conflict=options["conflict"],
        )
    _publish_rejected(run, log)
    return publish_snapshot(table, job.declared.snapshot, reports, **options)


def _publish_options(run: Run, job_id: str, summary: Mapping[str, str]) -> dict[str, Any]:
    return {
        "summary": {"frazil.job": job_id, **summary},
        "overwrite": run.settings.mode == "overwrite",
        "conflict": "abort" if run.settings.conflict == "abort" else "rebase",
    }


def _publish_rejected(run: Run, log: JobLog) -> None:
    if run.rejects is not None:
        run.publishing = True
        run.rejects.publish(log.job)


def publish_all(jobs: Sequence[tuple[Run, Table, JobLog, Mapping[str, str]]]) -> None:
    """Publish several jobs whose shards all have reports, in one commit over all their tables."""
    began = time.monotonic()
    publishers = [
        publisher_of(
            table,
            log.job.declared.snapshot,
            log.job.accepted.values(),
            **_publish_options(run, log.job.id, summary),
        )
        for run, table, log, summary in jobs
    ]
    for run, *_ in jobs:
        run.publishing = True
    answers = publish_together(publishers)
    for (run, table, *_), answer in zip(jobs, answers, strict=True):
        table.refresh()
        run.commit_attempts = answer.attempts
        run.leftovers = run.leftovers or bool(answer.leftovers)
        run.publish_seconds = (time.monotonic() - began) / len(jobs)


def landed(run: Run, table: Table, log: JobLog) -> IngestResult:
    """What landed has landed: whatever fails from here on is told beside it, not in its place."""
    if log.job.state is not State.LANDED:
        try:
            log.record(Event.LANDED)
        except StorageFailed as error:
            run.notes.append(str(error))
    step("publish:noted")
    if run.leftovers:
        commit_uuid = log.job.declared.snapshot.commit_uuid
        try:
            sweep(table, commit_uuid, force=True)
        except Exception as error:  # noqa: BLE001
            run.notes.append(_left_behind(log.job.declared.snapshot, error))
    if run.rejects is not None:
        try:
            run.rejects.close(log.job, leftovers=run.leftovers)
        except Exception as error:  # noqa: BLE001
            run.notes.append(_left_behind(run.rejects.snapshot, error))
    return result_of(run, table, log, landed=True)


def _left_behind(snapshot: DistributedSnapshot, error: Exception) -> str:
    return (
        f"spare files could not be removed ({error}); when the cause is mended: "
        f"frazil sweep {snapshot.name} --commit {snapshot.commit_uuid} --force"
    )


def result_of(run: Run, table: Table, log: JobLog, *, landed: bool) -> IngestResult:
    job = log.job
    reports = job.accepted.values()
    return IngestResult(
        job_id=job.id,
        table=".".join(table.name()),
        location=table.location(),
        metadata_location=table.metadata_location,
        snapshot_id=job.declared.snapshot.snapshot_id if landed else None,
        rows=sum(report.rows for report in reports),
        files=sum(report.files for report in reports),
        bytes=sum(report.size for report in reports),
        source_bytes=sum(shard_from_document(name, document).bytes for name, document in job.declared.shards.items()),
        shards=len(job.declared.shards),
        shards_done_before=run.done_before,
        commit_attempts=run.commit_attempts,
        session_seconds=run.session_seconds,
        job_seconds=time.monotonic() - run.began if run.began else 0.0,
        publish_seconds=run.publish_seconds,
        table_created=run.created,
        branch=job.declared.snapshot.ref,
        rejected=sum(report.rejected_rows for report in reports),
        rejected_table=job.declared.rejected.name if job.declared.rejected else None,
        notes=tuple(run.notes),
    )


@contextmanager
def running(settings: IngestSettings, progress: Progress, on_stop: OnStop) -> Iterator[Run]:
    """A run with its catalog open; Spark is stopped at the end."""
    run = Run(settings, progress, Stop(on_stop), open_catalog(settings.catalog))
    try:
        yield run
    finally:
        run.stop_spark()


@contextmanager
def _rejecting(run: Run, table: Table) -> Iterator[None]:
    """With a table for rows that do not fit, where they are not to fail the run."""
    if run.settings.on_bad_row == "reject":
        limit = RejectLimit.parse(run.settings.max_rejected)
        run.rejects = Rejects.begin(run.catalog, table, limit, RESERVED_FOR)
    yield


def _noted(rejects: Rejects | None) -> dict[str, Any]:
    return {} if rejects is None else {"rejected-table-created": rejects.created}


def shard_count(settings: IngestSettings, source: Source, target: Target, cores: int) -> int:
    """As many shards as cores, times as often as keeps them near their size."""
    usual = _PARTITIONED_SHARD_BYTES if target.is_partitioned else _PLAIN_SHARD_BYTES
    rounds = -(-source.bytes // ((settings.shard_bytes or usual) * cores))
    return int(max(1, rounds) * cores)


@contextmanager
def leaving_nothing(run: Run, table: Table, snapshot: DistributedSnapshot) -> Iterator[None]:
    """Where it is proven that nothing landed and nothing can be resumed, leave no file and no reservation behind."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except BaseException as error:
        resumable = isinstance(error, CommitConflict) and run.settings.mode == "append"
        if resumable or (run.publishing and not isinstance(error, FrazilError)):
            raise
        run.stop.ignore()
        run.progress.phase("cleaning up")
        run.stop_spark()  # no task may write on while its files are removed
        try:
            sweep(table, snapshot.commit_uuid, force=True)
        except Exception as failure:  # noqa: BLE001  why the run failed matters more
            error.add_note(_left_behind(snapshot, failure))
        if run.rejects is not None:
            _undo(run.rejects, error)
        raise


def _undo(rejects: Rejects, error: BaseException) -> None:
    try:
        rejects.undo()
    except Exception as failure:  # noqa: BLE001  why the run failed matters more
        error.add_note(_left_behind(rejects.snapshot, failure))
