"""Staged creates: a table that is described and promised, and visible to nobody until its first commit.

Staging writes the metadata and leaves a marker in the database. Finalising builds on that metadata and registers the table by
an exclusive insert; of several finalisers one is first, and the others meet a conflict. Abandoned ones are the janitor's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from frazil.catalog import counters, namespace_rows
from frazil.catalog.backend import Backend
from frazil.catalog.call import Call
from frazil.catalog.commit import Change, LostRace, check_places, prepare
from frazil.catalog.database_tables import TABLE, staged_tables
from frazil.catalog.document import Document, as_object
from frazil.catalog.errors import AlreadyExists, CatalogError, CommitFailed
from frazil.catalog.idempotency import Recorded
from frazil.catalog.locations import default_location, metadata_folder
from frazil.catalog.metadata_store import MetadataDocument
from frazil.catalog.places import authorize_places
from frazil.catalog.pointers import Identifier
from frazil.catalog.requirements import check_requirements
from frazil.catalog.table_metadata import metadata_from_updates
from frazil.catalog.updates import apply_updates
from frazil.steps import step

STAGING_FOLDER = ".frazil-staged"
_CLAIMED = 0
_COLUMNS = staged_tables.c


@dataclass(frozen=True, slots=True)
class Marker:
    """What the database remembers of a staged create."""

    table_uuid: str
    metadata_location: str
    expires_at_ms: int


def stage(call: Call, identifier: Identifier, metadata: Document) -> MetadataDocument:
    """Write the metadata of a table to be, and its marker. Nothing is registered."""
    backend, now_ms = call.backend, call.backend.clock_ms()
    check_places(backend, metadata, None)
    document = _write(backend, metadata)
    backend.store.storage.make_folder(metadata_folder(metadata))
    step("catalog:staged-written")
    row = {
        **identifier.row,
        "table_uuid": metadata["table-uuid"],
        "location": metadata["location"],
        "metadata_location": document.location,
        "created_at_ms": now_ms,
        "expires_at_ms": now_ms + int(backend.settings.staged_for * 1000),
    }

    def work(connection: Connection) -> None:
        connection.execute(insert(staged_tables).values(row))
        counters.count(connection, counters.STAGED)

    try:
        call.write(work, Recorded(200, metadata_location=document.location))
    except Exception:
        backend.store.forget(document.location)
        raise
    step("catalog:staged")
    return document


def _write(backend: Backend, metadata: Document) -> MetadataDocument:
    uuid = metadata["table-uuid"]
    if backend.settings.staging == "internal":
        return backend.store.write(
            f"{backend.settings.warehouse.rstrip('/')}/{STAGING_FOLDER}/{uuid}.metadata.json", metadata
        )
    try:
        return backend.store.write(f"{metadata_folder(metadata)}/v1.metadata.json", metadata)
    except FileExistsError:  # another client staged a table at the same location
        return backend.store.write(f"{metadata_folder(metadata)}/v1-{uuid}.metadata.json", metadata)


def finalise(call: Call, identifier: Identifier, requirements: Sequence[Any], updates: Sequence[Any]) -> Change:
    """The change that makes a table visible for the first time. Its metadata is that which was staged, or made of the updates."""
    check_requirements(None, requirements)
    backend, now_ms = call.backend, call.backend.clock_ms()
    uuid = _uuid_of(updates)
    with backend.database.read() as connection:
        namespace_rows.require(connection, identifier.catalog, identifier.namespace)
        marker = _find(connection, identifier, uuid, now_ms)
    if marker is None:
        return prepare(
            backend, identifier, TABLE, None, _synthesised(call, identifier, updates), (holding_namespace(identifier),)
        )
    try:
        base = backend.store.load(marker.metadata_location)
    except CatalogError as error:
        raise LostRace(f"Cannot commit to table {identifier}: its staged metadata was removed") from error
    keep = backend.settings.staging == "table"
    previous = base.location if keep else None
    metadata = apply_updates(base.metadata, updates, now_ms=now_ms, previous_location=previous)
    if keep and metadata is base.metadata:  # nothing was added to what was staged, but its file stays and must be known
        entry = {"metadata-file": base.location, "timestamp-ms": metadata["last-updated-ms"]}
        metadata = {**metadata, "metadata-log": [entry]}
    authorize_places(call, identifier, metadata, base.metadata)
    change = prepare(
        backend, identifier, TABLE, None, metadata, (holding_namespace(identifier), _take(marker)), previous
    )
    return change if keep else change.followed_by(lambda: _remove_staged(backend, marker))


def _synthesised(call: Call, identifier: Identifier, updates: Sequence[Any]) -> Document:
    backend = call.backend
    uuid = _uuid_of(updates) or backend.new_uuid()
    with backend.database.read() as connection:
        parents = namespace_rows.properties_of(connection, identifier.catalog, identifier.namespace)
    location = default_location(backend.settings.warehouse, parents, identifier.namespace, identifier.name, uuid)
    metadata = metadata_from_updates(updates, table_uuid=uuid, location=location, now_ms=backend.clock_ms())
    authorize_places(call, identifier, metadata, {"location": location})
    return metadata


def holding_namespace(identifier: Identifier) -> Callable[[Connection], None]:
    """Work for a transaction that registers a name: its namespace must be there, and stay until it is done."""
    return lambda connection: namespace_rows.require_and_hold(connection, identifier.catalog, identifier.namespace)


def _uuid_of(updates: Sequence[Any]) -> str | None:
    documents = (as_object(update_, "metadata update") for update_ in updates)
    return next(
        (str(each["uuid"]) for each in documents if each.get("action") == "assign-uuid" and "uuid" in each), None
    )


def _find(connection: Connection, identifier: Identifier, uuid: str | None, now_ms: int) -> Marker | None:
    """The marker of the table's uuid; without one, that of the only client that staged this name."""
    query = select(_COLUMNS.table_uuid, _COLUMNS.metadata_location, _COLUMNS.expires_at_ms).where(
        _COLUMNS.expires_at_ms > now_ms, *(_COLUMNS[name] == value for name, value in identifier.row.items())
    )
    found = [Marker(*row) for row in connection.execute(query)]
    if uuid is not None:
        return next((marker for marker in found if marker.table_uuid == uuid), None)
    return found[0] if len(found) == 1 else None


def _take(marker: Marker) -> Callable[[Connection], None]:
    """Remove a marker that nobody has touched; the janitor may have been first."""
    untouched = (_COLUMNS.table_uuid == marker.table_uuid, _COLUMNS.expires_at_ms == marker.expires_at_ms)

    def work(connection: Connection) -> None:
        if connection.execute(delete(staged_tables).where(*untouched)).rowcount != 1:
            raise LostRace(f"The staged create of {marker.table_uuid} has ended")
        counters.count(connection, counters.FINALISED)
        step("catalog:finalised")

    return work


def _remove_staged(backend: Backend, marker: Marker) -> None:
    if not backend.store.forget(marker.metadata_location):
        backend.database.write(lambda connection: counters.count(connection, counters.CLEANUP_FAILURES))


@contextmanager
def finalising(backend: Backend, changes: Sequence[Change]) -> Iterator[None]:
    """A table that is there by now is a conflict to whoever wanted to make it, and may be met by another commit."""
    if all(change.old is not None for change in changes):
        yield
        return
    try:
        with counting_failures(backend):
            yield
    except AlreadyExists as error:
        raise CommitFailed(error.message) from error


@contextmanager
def counting_failures(backend: Backend) -> Iterator[None]:
    """Count what was to make a staged create visible, and was refused. One that is tried again is not refused yet."""
    try:
        yield
    except LostRace:
        raise
    except CatalogError:
        backend.database.write(lambda connection: counters.count(connection, counters.FAILED))
        raise


def clean(backend: Backend, limit: int = 100) -> int:
    """Remove expired staged creates and their files. Returns how many. Several processes may do it at once.

    A marker is claimed first, so that no finaliser builds on a file that is about to go; and it is removed last, so that
    after a crash another janitor finishes.
    """
    now_ms = backend.clock_ms()
    with backend.database.read() as connection:
        query = select(_COLUMNS.table_uuid, _COLUMNS.metadata_location, _COLUMNS.location)
        expired = connection.execute(query.where(_COLUMNS.expires_at_ms <= now_ms).limit(limit)).all()
    return sum(_clean_one(backend, *each) for each in expired)


def _clean_one(backend: Backend, uuid: str, metadata_location: str, location: str) -> bool:
    this = _COLUMNS.table_uuid == uuid
    now_ms = backend.clock_ms()

    def claim(connection: Connection) -> bool:
        claimed = update(staged_tables).where(this, _COLUMNS.expires_at_ms <= now_ms).values(expires_at_ms=_CLAIMED)
        return connection.execute(claimed).rowcount == 1

    def finish(connection: Connection) -> bool:
        gone = connection.execute(delete(staged_tables).where(this)).rowcount == 1
        if gone:
            counters.count(connection, counters.CLEANED)
        return gone

    if not backend.database.write(claim):
        return False
    if not _remove_files(backend, metadata_location, location):
        backend.database.write(lambda connection: counters.count(connection, counters.CLEANUP_FAILURES))
        return False
    step("catalog:cleaned")
    return backend.database.write(finish)


def _remove_files(backend: Backend, metadata_location: str, location: str) -> bool:
    """The staged metadata, and the folders that were made for the table if nobody has put anything there."""
    if not backend.store.forget(metadata_location):
        return False
    for folder in (f"{location}/metadata", location):
        backend.store.storage.remove_empty_folder(folder)
    return True


def locations(backend: Backend, identifier: Identifier) -> list[str]:
    """The metadata files of the tables that are staged under a name now."""
    query = select(_COLUMNS.metadata_location).where(
        _COLUMNS.expires_at_ms > backend.clock_ms(),
        *(_COLUMNS[name] == value for name, value in identifier.row.items()),
    )
    with backend.database.read() as connection:
        return list(connection.scalars(query))
