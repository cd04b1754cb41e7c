"""`frazil register`, whole: Parquet files into a table as they are, by one snapshot, resumable at any point.

Its order is that of an ingest. What differs is the shards' work, which is to read footers, and what must hold before the
commit: no file is in the table twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from frazil.errors import FrazilError
from frazil.jobs.job import Plan
from frazil.jobs.log import JobStore, new_job_id
from frazil.jobs.states import Event
from frazil.settings import IngestSettings
from frazil.snapshot.file_columns import has_field_ids
from frazil.snapshot.inferred_partition import hive_values
from frazil.snapshot.listed_files import already_listed
from frazil.snapshot.name_mapping import set_name_mapping
from frazil.snapshot.parquet_footer import PlannedFile
from frazil.snapshot.reservation import begin_snapshot, head_of
from frazil.snapshot.storage import file_io
from frazil.snapshot.warehouse import find_table, table_identifier
from frazil.sources.files import find_files
from frazil.sources.parquet import SUFFIXES
from frazil.sources.register import RegisterSource, file_schemas, planned_files
from frazil.spark.ingest import RESERVED_FOR, Run, finish, leaving_nothing, running
from frazil.spark.ingest_result import IngestResult, Progress
from frazil.spark.register_publish import refuse_listed
from frazil.spark.stop import OnStop
from frazil.spark.target import Target
from frazil.steps import step

_FILES_AT_ONCE = 500


def register(
    settings: IngestSettings, store: JobStore, progress: Progress, on_stop: OnStop, *, skip_existing: bool = False
) -> IngestResult:
    """Run a new job to its end; `frazil.spark.ingest.resume` takes up one that was killed."""
    with running(settings, progress, on_stop) as run:
        progress.phase("looking at the files")
        with run.stop.at_once():
            found = find_files(settings.sources, run.catalog.properties, SUFFIXES)
            present = find_table(run.catalog, table_identifier(settings.table))
        source = _source(run, planned_files(found, present.location() if present else "file:"), present)
        target = Target(run.catalog, settings, source)
        cores = run.session().sparkContext.defaultParallelism
        with target.table() as table:
            run.created = target.created
            files = _new_files(table, settings, planned_files(found, table.location()), skip_existing)
            if not files:
                return _nothing_new(run, table)
            if not all(has_field_ids(schema) for _, schema in source.schemas()):
                set_name_mapping(table)
            run.stop.check()
            snapshot = begin_snapshot(table, settings.summary, settings.branch, RESERVED_FOR)
            shards = RegisterSource(source.description, files, source.schemas()).shards(cores)
            with leaving_nothing(run, table, snapshot), store.create(new_job_id()) as log:
                request = {**settings.to_document(), "table-created": run.created}
                log.record(Event.PLANNED, Plan(snapshot, {s.name: s.to_document() for s in shards}, request))
                step("job:declared")
                return finish(run, table, log, shards)


def _source(run: Run, files: Sequence[PlannedFile], table: Table | None) -> RegisterSource:
    """The files with their schemas: all of them for a table to be made; for one that is there, the first shows enough."""
    description = ", ".join(run.settings.sources)
    if table is not None:
        return RegisterSource(description, files, file_schemas(files[:1], table.io))
    schemas = _every_schema(run, files)
    columns = _folder_columns(files, run.settings.partition_by, {name for _, each in schemas for name in each.names})
    return RegisterSource(description, files, schemas, columns)


def _every_schema(run: Run, files: Sequence[PlannedFile]) -> list[tuple[str, pa.Schema]]:
    """Each distinct schema, of footers read on Spark."""
    context = run.session().sparkContext
    storage = dict(run.catalog.properties)
    groups = [files[start : start + _FILES_AT_ONCE] for start in range(0, len(files), _FILES_AT_ONCE)]
    with run.stop.at_once():
        answers = context.parallelize(groups, len(groups)).map(lambda group: _schemas_of(group, storage)).collect()
    distinct: list[tuple[str, pa.Schema]] = []
    for answer in answers:
        if isinstance(answer, FrazilError):
            raise answer
        distinct += [each for each in answer if not any(each[1].equals(known) for _, known in distinct)]
    return distinct


def _schemas_of(files: Sequence[PlannedFile], storage: Mapping[str, str]) -> list[tuple[str, pa.Schema]] | FrazilError:
    """On a worker. An error of ours goes home as a value, since trying again would not mend it."""
    try:
        return file_schemas(files, file_io(storage, files[0].path))
    except FrazilError as error:
        return error


def _folder_columns(files: Sequence[PlannedFile], partition_by: str | None, names: set[str]) -> list[pa.Field]:
    """The columns of a new table that only the files' folders have: those that it is to be partitioned by."""
    wanted = [term.strip() for term in (partition_by or "").split(",")]
    said = [hive_values(file.path) for file in files]
    return [
        pa.field(name, _type_of([folders.get(name) for folders in said]))
        for name in wanted
        if name not in names and all(name in folders for folders in said)
    ]


def _type_of(texts: Sequence[str | None]) -> pa.DataType:
    """The narrowest type that holds what all these folders say."""
    values = {text for text in texts if text is not None}
    if values and all(_reads(int, text) and str(int(text)) == text for text in values):
        return pa.int64()
    return pa.date32() if values and all(_reads(date.fromisoformat, text) for text in values) else pa.string()


def _reads(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _new_files(
    table: Table, settings: IngestSettings, files: list[PlannedFile], skip_existing: bool
) -> list[PlannedFile]:
    """The files that are not in the table. BadInput if some are, unless they are to be skipped."""
    head = head_of(table.metadata, settings.branch)
    listed = already_listed(table.io, table.metadata, head, [file.path for file in files])
    if not skip_existing:
        refuse_listed(settings.table, listed)
    return [file for file in files if file.path not in listed]


def _nothing_new(run: Run, table: Table) -> IngestResult:
    return IngestResult(
        job_id="",
        table=run.settings.table,
        location=table.location(),
        metadata_location=table.metadata_location,
        snapshot_id=None,
        rows=0,
        files=0,
        bytes=0,
        source_bytes=0,
        shards=0,
        shards_done_before=0,
        commit_attempts=0,
        session_seconds=run.session_seconds,
        job_seconds=0.0,
        publish_seconds=0.0,
        table_created=run.created,
        branch=run.settings.branch,
    )
