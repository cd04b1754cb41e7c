"""`frazil ingest postgresql://…`, whole: tables of a database as of one instant, a job and a snapshot for each.

All shards of all tables are written before the first snapshot is published. The instant is held by this process alone:
a run that is resumed without a report of every shard reads everything anew, at another instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from frazil.errors import BadInput, CommitConflict, FrazilError, OutcomeUnknown, SourceNotFound
from frazil.jobs.log import JobLog, JobStore, new_job_id
from frazil.jobs.states import FINISHED, Event, State
from frazil.settings import IngestSettings
from frazil.snapshot.transaction import commits_together
from frazil.sources.postgres import PostgresSource
from frazil.sources.postgres_address import PostgresAddress
from frazil.sources.postgres_snapshot import HeldSnapshot, held_snapshot
from frazil.sources.postgres_types import OPTIONS, TypeOptions
from frazil.spark.ingest import Run, has_rows, landed, nothing_to_append, publish, publish_all, running, write
from frazil.spark.ingest_result import IngestResult, Progress
from frazil.spark.stop import OnStop
from frazil.spark.table_jobs import Part, Wanted, begun, begun_again, taken_up
from frazil.spark.tables_result import TablesResult
from frazil.spark.target import Target
from frazil.spark.target_names import target_names
from frazil.steps import step

_QUERY = "query"
_WORKERS = {"spark.python.daemon.module": "frazil.spark.postgres_daemon"}


def ingest_tables(settings: IngestSettings, store: JobStore, progress: Progress, on_stop: OnStop) -> TablesResult:
    """Run a new job for each table that the settings name to its end. See `frazil.spark.ingest.ingest`."""
    options = _type_options(settings)
    settings = replace(settings, spark_conf={**_WORKERS, **settings.spark_conf})
    with running(settings, progress, on_stop) as run, ExitStack() as parts_open:
        progress.phase("looking at the database")
        with run.stop.at_once():
            held = parts_open.enter_context(_held(run, settings))
            wanted = _wanted(held, settings, options)
            targets = [Target(run.catalog, replace(settings, table=each.target), each.source) for each in wanted]
        run.session()
        run_id, parts = new_job_id(), []
        for number, (each, target) in enumerate(zip(wanted, targets, strict=True)):
            job_id = run_id if len(wanted) == 1 else f"{run_id}.{number:04d}"
            # The first job is declared first, and knows them all.
            members = [[other.name, other.target] for other in wanted] if number == 0 else []
            parts.append(parts_open.enter_context(begun(run, each, target, store, job_id, members)))
        step("job:declared")
        return _finish(run, run_id, parts)


def resume_tables(
    run_id: str, store: JobStore, progress: Progress, on_stop: OnStop, changes: Mapping[str, Any] | None = None
) -> TablesResult:
    """Take up a run that was killed: publish what has all its reports, else read every table anew at a new instant."""
    run_id = run_id.partition(".")[0]
    with ExitStack() as logs_open:
        logs = [logs_open.enter_context(store.open(name)) for name in jobs_of(store, run_id) or [run_id]]
        logs = [log for log in logs if log.job.plan is not None]
        if not logs:
            raise BadInput(f"job {run_id} was stopped before it was planned and has written nothing; start it anew")
        request = logs[0].job.declared.request
        settings = replace(IngestSettings.from_document(request), **(changes or {}))
        _check_not_over(run_id, logs)
        with running(settings, progress, on_stop) as run, ExitStack() as parts_open:
            if len(logs) < len(request["members"]) or any(log.job.missing for log in logs):
                parts = _started_over(run, run_id, store, logs, parts_open)
                return _finish(run, run_id, parts, started_over=True)
            parts = [parts_open.enter_context(taken_up(run, log)) for log in logs]
            return _finish(run, run_id, parts)


def jobs_of(store: JobStore, job_id: str) -> list[str]:
    """The jobs of the run that a job is of: one of the run's own name, or one for each table, named after it."""
    run_id, names = job_id.partition(".")[0], store.names()
    return [name for name in names if name == run_id] or [name for name in names if name.startswith(f"{run_id}.")]


def _type_options(settings: IngestSettings) -> TypeOptions:
    unknown = sorted(set(settings.options) - OPTIONS)
    if unknown:
        raise BadInput(f"a postgres source has no option {', '.join(unknown)}; it has {', '.join(sorted(OPTIONS))}")
    return TypeOptions.parse(settings.options)


@contextmanager
def _held(run: Run, settings: IngestSettings) -> Iterator[HeldSnapshot]:
    address = PostgresAddress.parse(settings.sources[0]).with_credentials(settings.credentials)
    with held_snapshot(address, settings.tables) as held:
        run.credentials = held.address.credentials
        yield held


def _wanted(held: HeldSnapshot, settings: IngestSettings, options: TypeOptions) -> list[Wanted]:
    if settings.query is not None:
        return [Wanted(PostgresSource.query(held, settings.query, options), _QUERY, settings.table)]
    names = target_names(held.tables, settings.tables or "", settings.table)
    return [
        Wanted(PostgresSource.table(held, table, options), str(table), name)
        for table, name in zip(held.tables, names, strict=True)
    ]


def _instant(parts: Sequence[Part]) -> str:
    """The instant that all shards of all tables were read at."""
    shards = (shard for part in parts for shard in part.log.job.declared.shards.values())
    return str(next(shards)["instant"])


def _finish(run: Run, run_id: str, parts: Sequence[Part], *, started_over: bool = False) -> TablesResult:
    """Write every shard of every table, then publish table by table."""
    shards = [shard for part in parts for shard in part.shards]
    run.progress.planned(run_id, 0, sum(shard.bytes for shard in shards), len(shards))
    for number, part in enumerate(parts, 1):
        if part.shards:
            write(part.run, part.table, part.log, part.shards, f"writing {part.source} ({number}/{len(parts)})")
    step("job:finished")
    run.stop.check()
    run.stop.ignore()
    with _telling_how_to_resume(run_id, parts):
        atomic = _publish(run, parts)
    results = {part.source: part.result for part in parts if part.result is not None}
    source = parts[0].log.job.declared.request["sources"][0]
    return TablesResult(run_id, source, results, _instant(parts), atomic, started_over)


@contextmanager
def _telling_how_to_resume(run_id: str, parts: Sequence[Part]) -> Iterator[None]:
    """What cannot be told of the outcome is one error for the whole run, and so is what has landed before it."""
    try:
        yield
    except OutcomeUnknown as error:
        raise OutcomeUnknown(f"{error}: frazil ingest --resume {run_id}") from error
    except CommitConflict as error:
        if parts[0].run.settings.mode != "append":
            raise
        raise CommitConflict(f"{error}. To publish on the new head: frazil ingest --resume {run_id}") from error
    except FrazilError as error:
        done = [part.source for part in parts if part.result is not None and part.result.snapshot_id is not None]
        if done:
            error.add_note(f"{', '.join(done)} landed before that, and stay")
        raise
    except Exception as error:
        text = f"publishing broke off ({type(error).__name__}: {error}); nothing was deleted"
        raise OutcomeUnknown(f"{text}: frazil ingest --resume {run_id}") from error


def _publish(run: Run, parts: Sequence[Part]) -> bool:
    """Publish every part that is open: at one instant if there are several and the catalog can, which is told."""
    still_open = [part for part in parts if part.result is None]
    waiting = [part for part in still_open if has_rows(part.run, part.log)]
    if len(waiting) > 1 and commits_together(run.catalog):
        _publish_together(run, waiting)
    for part in still_open:
        part.result = part.result or _published(part)
    return len(parts) == 1 or (len(parts) > 0 and commits_together(run.catalog))


def _publish_together(run: Run, parts: Sequence[Part]) -> None:
    run.progress.phase(f"publishing {len(parts)} tables at one instant")
    for part in parts:
        part.log.record(Event.PUBLISHING)
    publish_all([(part.run, part.table, part.log, _summary(part)) for part in parts])
    for part in parts:
        part.result = landed(part.run, part.table, part.log)


def _summary(part: Part) -> dict[str, str]:
    return {"frazil.source.instant": _instant([part])}


def _published(part: Part) -> IngestResult:
    part.run.progress.phase(f"publishing {part.log.job.declared.snapshot.name}")
    if not has_rows(part.run, part.log):
        return nothing_to_append(part.run, part.table, part.log)
    part.log.record(Event.PUBLISHING)
    publish(part.run, part.table, part.log, _summary(part))
    return landed(part.run, part.table, part.log)


def _check_not_over(run_id: str, logs: Sequence[JobLog]) -> None:
    over = [log for log in logs if log.job.state in (State.FAILED, State.CANCELLED)]
    if over and all(log.job.state in FINISHED for log in logs):
        raise BadInput(
            f"job {run_id} is over ({over[0].job.state}: {over[0].job.note}) and was cleaned up; start it anew"
        )


def _started_over(run: Run, run_id: str, store: JobStore, logs: Sequence[JobLog], parts_open: ExitStack) -> list[Part]:
    """Every table of the run under a new snapshot: what was read at the old instant is dropped, and swept at the end."""
    if any(log.job.state is State.LANDED for log in logs):
        raise BadInput(
            f"job {run_id} cannot be resumed: some of its tables have landed and others are not read yet, and the instant "
            "that they were read at is gone; ingest the others by a new job"
        )
    run.progress.phase("reading all anew: the snapshot in PostgreSQL ended with the process that held it")
    with run.stop.at_once():
        held = parts_open.enter_context(_held(run, run.settings))
        wanted = _wanted_again(held, run.settings, logs[0].job.declared.request["members"])
        targets = [Target(run.catalog, replace(run.settings, table=each.target), each.source) for each in wanted]
    run.session()
    known = {log.job.declared.request["source"]: log for log in logs}
    parts = []
    for number, (each, target) in enumerate(zip(wanted, targets, strict=True)):
        if each.name in known:
            part = begun_again(run, each, target, known[each.name])
        else:
            part = begun(run, each, target, store, f"{run_id}.{number:04d}", [])
        parts.append(parts_open.enter_context(part))
    return parts


def _wanted_again(held: HeldSnapshot, settings: IngestSettings, members: Sequence[Sequence[str]]) -> list[Wanted]:
    options = _type_options(settings)
    if settings.query is not None:
        return _wanted(held, settings, options)
    there = {str(table): table for table in held.tables}
    gone = [name for name, _ in members if name not in there]
    if gone:
        raise SourceNotFound(f"table {', '.join(gone)} of this job is not in the database any more; start a new job")
    return [Wanted(PostgresSource.table(held, there[name], options), name, target) for name, target in members]
