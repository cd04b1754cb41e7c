"""Commit: write a new metadata file under a name nobody else has, then move the pointer to it in the database.

The pointer moves by compare-and-swap, so a commit builds on exactly the metadata it was checked against. A crash at any point
leaves the old table or the new one. A file that lost its race is removed, best effort.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from frazil.catalog import pointers
from frazil.catalog.backend import Backend
from frazil.catalog.database_tables import TABLE
from frazil.catalog.document import Document
from frazil.catalog.errors import CatalogError, CommitFailed, CommitStateUnknown
from frazil.catalog.idempotency import KeyUsed
from frazil.catalog.locations import checked_location, folders_of, lies_in
from frazil.catalog.metadata_store import MetadataDocument, new_metadata_location
from frazil.catalog.pointers import Identifier
from frazil.steps import step

DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"

_LONGEST_WAIT_SECONDS = 0.02

InTransaction = Callable[[Connection], None]
"""What must happen in the same transaction as the move of a pointer; it raises to call the commit off."""


@dataclass(frozen=True, slots=True)
class Change:
    """One pointer's move, ready to be made. `old` is None where the name is to be registered."""

    identifier: Identifier
    kind: str
    old: MetadataDocument | None
    new: MetadataDocument
    also: tuple[InTransaction, ...] = ()
    then: Callable[[], object] | None = None
    """What is left to do once the change is made; nothing depends on it."""

    def followed_by(self, then: Callable[[], object]) -> Change:
        """The same change, with something to do afterwards."""
        return replace(self, then=then)

    @property
    def writes_file(self) -> bool:
        """Whether there is a new file, which must go if the change is not made."""
        return self.old is None or self.new.location != self.old.location


class LostRace(CommitFailed):
    """Another commit moved the pointer first. The requirements may hold all the same: look again."""


def prepare(
    backend: Backend,
    identifier: Identifier,
    kind: str,
    old: MetadataDocument | None,
    metadata: Document,
    also: Sequence[InTransaction] = (),
    previous: str | None = None,
) -> Change:
    """Write the metadata file of a change. Metadata that is the very same object as before needs none.

    `previous` is the file that the new one's version follows, where that is not the old one.
    """
    if old is not None and metadata is old.metadata:
        return Change(identifier, kind, old, old, tuple(also))
    check_places(backend, metadata, old.metadata if old else None)
    location = new_metadata_location(metadata, old.location if old else previous)
    document = backend.store.write(location, metadata, old)
    step("catalog:metadata-written")
    return Change(identifier, kind, old, document, tuple(also))


def check_places(backend: Backend, metadata: Document, old: Document | None) -> None:
    """Refuse metadata that leads out of the warehouse; what a table had before it may keep."""
    before = set(folders_of(old)) if old else set()
    for place in folders_of(metadata):
        if place not in before:
            checked_location(place, backend.settings.roots)


def apply(connection: Connection, changes: Sequence[Change]) -> None:
    """Move the pointers of all changes, in a transaction that the caller holds. Raises if one cannot be moved.

    The order of the names is the same for everybody, so that two transactions never wait for each other.
    """
    for change in sorted(changes, key=lambda change: str(change.identifier)):
        for work in change.also:  # before the move: a table that is registered would make its own namespace exist
            work(connection)
        if change.old is None:
            pointers.register(connection, change.identifier, change.kind, change.new.location)
        elif not _move(connection, change, change.old.location):
            raise LostRace(
                f"Cannot commit to {change.kind.lower()} {change.identifier}: metadata location "
                f"{change.old.location} has changed"
            )
    step("catalog:pointer-moved")


def _move(connection: Connection, change: Change, old: str) -> bool:
    if change.writes_file:
        return pointers.swap(connection, change.identifier, change.kind, old, change.new.location)
    return pointers.hold(connection, change.identifier, change.kind, old)


def commit(backend: Backend, changes: Sequence[Change], write: Callable[[Callable[[Connection], None]], None]) -> None:
    """Make the changes, all of them or none. `write` runs its argument in one transaction.

    Files of changes that were proven not to be made are removed. Where nobody can tell, they stay, and the error says so.
    """
    try:
        write(lambda connection: apply(connection, changes))
    except (CatalogError, KeyUsed):
        discard(backend, changes)
        raise
    except Exception as error:
        made = _were_made(backend, changes, error)
        if made is False:
            discard(backend, changes)
            raise
        if made is None:
            names = ", ".join(str(change.identifier) for change in changes)
            raise CommitStateUnknown(f"Cannot tell whether the commit to {names} was made") from error
    step("catalog:committed")
    for change in changes:
        if change.then is not None:
            change.then()
        _tidy(backend, change)


def discard(backend: Backend, changes: Sequence[Change]) -> None:
    """Remove the files of changes that were not made."""
    for change in changes:
        if change.writes_file:
            backend.store.forget(change.new.location)


def _were_made(backend: Backend, changes: Sequence[Change], error: Exception) -> bool | None:
    """Whether the pointers moved although the transaction ended in `error`; None if nobody can tell.

    A pointer that still stands proves nothing when the connection broke: the server may be about to commit.
    """
    written = [change for change in changes if change.writes_file]
    try:
        with backend.database.read() as connection:
            found = [pointers.find(connection, change.identifier, change.kind) for change in written]
    except Exception:  # noqa: BLE001  cannot look, so nobody can tell; the caller raises what it has
        return None
    if written and all(location == change.new.location for location, change in zip(found, written, strict=True)):
        return True
    return None if getattr(error, "connection_invalidated", False) else False


def _tidy(backend: Backend, change: Change) -> None:
    """After a commit: the old document will hardly be asked for again, and a table may ask to be rid of old files."""
    if change.old is None or not change.writes_file:
        return
    backend.store.release(change.old.location)
    properties = change.new.metadata.get("properties") or {}
    if change.kind == TABLE and str(properties.get(DELETE_AFTER_COMMIT, "false")).lower() == "true":
        own = folders_of(change.new.metadata)
        for location in _logged(change.old.metadata) - _logged(change.new.metadata):
            if lies_in(location, own):  # metadata that was registered may name anybody's files
                backend.store.forget(location)


def _logged(metadata: Document) -> set[str]:
    return {str(entry["metadata-file"]) for entry in metadata.get("metadata-log") or ()}


def retried(backend: Backend, attempt: Callable[[], Any]) -> Any:
    """Run `attempt` again when another commit was first, as long as its requirements hold on what it then finds."""
    for remaining in reversed(range(backend.settings.commit_tries)):
        try:
            return attempt()
        except LostRace:
            if not remaining:
                raise
            time.sleep(random.uniform(0, _LONGEST_WAIT_SECONDS))
    raise AssertionError("unreachable")
