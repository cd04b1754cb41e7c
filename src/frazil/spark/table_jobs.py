"""The jobs of one run over a database: one for each table, begun, begun again at another instant, or taken up as it was.

Each is a context. If the run comes to nothing, it leaves no file, no reservation and no table that the run made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.table import Table

from frazil.errors import CommitConflict, CommitRefused, FrazilError, Interrupted, OutcomeUnknown
from frazil.jobs.job import Plan
from frazil.jobs.log import JobLog, JobStore
from frazil.jobs.states import FINISHED, TRANSITIONS, Event, State
from frazil.settings import IngestSettings
from frazil.snapshot.reservation import begin_snapshot
from frazil.snapshot.warehouse import find_table
from frazil.sources.postgres import PostgresShard, PostgresSource
from frazil.spark.ingest import RESERVED_FOR, Run, landed, leaving_nothing, result_of, shard_count, still_reserved
from frazil.spark.ingest_result import IngestResult
from frazil.spark.target import Target, taken_back

_MEBIBYTE = 1024 * 1024
# As PostgreSQL stores it, which is several times as large as Parquet. No shard outlives a killed run, so small ones would
# save nothing; and each has a connection to begin and a file of its own.
_PLAIN_SHARD_BYTES = 512 * _MEBIBYTE
_PARTITIONED_SHARD_BYTES = 4096 * _MEBIBYTE
# Cutting a table for the sake of another core pays from here on.
_LEAST_SHARD_BYTES = 4 * _MEBIBYTE


@dataclass(slots=True)
class Part:
    """One table of a run, with its job."""

    source: str
    run: Run
    table: Table
    log: JobLog
    shards: Sequence[PostgresShard] = ()
    result: IngestResult | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table as it was found in the database, and where it is to go."""

    source: PostgresSource
    name: str
    target: str


@contextmanager
def begun(
    run: Run, wanted: Wanted, target: Target, store: JobStore, job_id: str, members: Sequence[Sequence[str]]
) -> Iterator[Part]:
    """A new job of this run, declared on disk. If the run comes to nothing, nothing of it is left."""
    settings = replace(run.settings, table=wanted.target)
    shards = wanted.source.shards(_shards(run, settings, wanted.source, target))
    with target.table() as table:
        own = replace(run, settings=settings, created=target.created, notes=[])
        run.stop.check()
        snapshot = begin_snapshot(table, settings.summary, settings.branch, RESERVED_FOR)
        with leaving_nothing(own, table, snapshot), store.create(job_id) as log:
            of_run = {"source": wanted.name, "target": wanted.target, "members": members, "table-created": own.created}
            request = {**run.settings.to_document(), **of_run}
            log.record(Event.PLANNED, Plan(snapshot, _documents(shards), request))
            with _noting(own, log):
                yield Part(wanted.name, own, table, log, shards)


def _shards(run: Run, settings: IngestSettings, source: PostgresSource, target: Target) -> int:
    cores = int(run.session().sparkContext.defaultParallelism)
    if settings.shard_bytes is not None:
        return shard_count(settings, source, target, cores)
    usual = _PARTITIONED_SHARD_BYTES if target.is_partitioned else _PLAIN_SHARD_BYTES
    return int(max(1, min(-(-source.bytes // (usual * cores)) * cores, source.bytes // _LEAST_SHARD_BYTES)))


def _documents(shards: Sequence[PostgresShard]) -> dict[str, Mapping[str, Any]]:
    return {shard.name: shard.to_document() for shard in shards}


@contextmanager
def begun_again(run: Run, wanted: Wanted, target: Target, log: JobLog) -> Iterator[Part]:
    """A job of the run with new shards, under the reservation that it has."""
    plan = log.job.declared
    table = _table_of(run, log)
    own = replace(
        run,
        settings=replace(run.settings, table=wanted.target),
        created=bool(plan.request["table-created"]),
        leftovers=True,
        notes=[],
    )
    log.record(Event.RESUMED)
    still_reserved(table, log)
    with taken_back(run.catalog, table, own.created), leaving_nothing(own, table, plan.snapshot), _noting(own, log):
        shards = wanted.source.shards(_shards(run, own.settings, wanted.source, target))
        log.record(Event.STARTED_OVER, _documents(shards))
        yield Part(wanted.name, own, table, log, shards)


def _table_of(run: Run, log: JobLog) -> Table:
    snapshot = log.job.declared.snapshot
    table = find_table(run.catalog, snapshot.table)
    if table is None:
        raise CommitRefused(f"table {snapshot.name} of job {log.job.id} is not there any more; start the job anew")
    return table


@contextmanager
def taken_up(run: Run, log: JobLog) -> Iterator[Part]:
    """A job of the run as it was left. One that has landed, or is over, has its result already."""
    plan = log.job.declared
    table = _table_of(run, log)
    conflict = "rebase" if log.job.conflicted else run.settings.conflict
    own = replace(
        run,
        settings=replace(run.settings, table=plan.request["target"], conflict=conflict),
        created=bool(plan.request["table-created"]),
        done_before=len(log.job.accepted),
        leftovers=True,
        notes=[],
    )
    part = Part(plan.request["source"], own, table, log)
    if log.job.state is State.LANDED:
        part.result = landed(own, table, log)
        yield part
        return
    if log.job.state in FINISHED:
        if log.job.state is State.FAILED:
            own.notes.append(f"{part.source} was not published: {log.job.note}")
        part.result = result_of(own, table, log, landed=False)
        yield part
        return
    log.record(Event.RESUMED)
    if not still_reserved(table, log):
        part.result = landed(own, table, log)
        yield part
        return
    with taken_back(run.catalog, table, own.created), leaving_nothing(own, table, plan.snapshot), _noting(own, log):
        yield part


@contextmanager
def _noting(run: Run, log: JobLog) -> Iterator[None]:
    """Note in each job's log why the run ended, as far as the job was still open."""
    try:
        yield
    except (FrazilError, KeyboardInterrupt) as error:
        event = _event_of(error, run)
        if event in TRANSITIONS[log.job.state]:
            log.record(event, str(error))
        raise


def _event_of(error: BaseException, run: Run) -> Event:
    match error:
        case OutcomeUnknown():
            return Event.OUTCOME_UNKNOWN
        case CommitConflict() if run.settings.mode == "append":
            return Event.CONFLICTED
        case Interrupted() | KeyboardInterrupt():
            return Event.CANCELLED
    return Event.FAILED
