"""Finding and removing what a dead job left, from its commit uuid alone.

A file goes only when it carries the commit uuid in its name, the reservation is over (ended here first, so that no
coordinator begins to publish it), the grace period has passed, and no live snapshot references it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from frazil.errors import AlreadyConsumed, BadInput
from frazil.snapshot.manifest import read_manifest_entries
from frazil.snapshot.manifest_file import ManifestFile
from frazil.snapshot.manifest_list import read_manifest_list
from frazil.snapshot.reservation import Ended, Reservation, ended, forget, now_ms, release, reservations
from frazil.snapshot.storage import StoredFile, delete_files, list_files, same_file
from frazil.snapshot.table import CatalogTable
from frazil.steps import step

DEFAULT_GRACE = timedelta(hours=1)

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_METADATA_VERSION = re.compile(r"(\d+)-[^/]*\.metadata\.json(?:\.gz)?$")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found: files removed (or, in a dry run, to be removed), and reservations ended."""

    files: tuple[StoredFile, ...]
    commit_uuids: tuple[str, ...]
    held: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes freed."""
        return sum(file.size for file in self.files)


def sweep(
    table: Table,
    commit_uuid: str | None = None,
    *,
    grace: timedelta = DEFAULT_GRACE,
    force: bool = False,
    dry_run: bool = False,
    clock_ms: Callable[[], int] = now_ms,
) -> Sweep:
    """Remove the orphans of one commit, or of every commit whose reservation expired or was cancelled `grace` ago.

    A reservation that is still held, or ended only just now, protects its files: with a `commit_uuid` that is an error,
    unless `force` says that its job is known to be dead; without one it is passed over and listed in `held`. A file
    that any live snapshot references is never touched. The grace period must be longer than clocks differ and requests
    last.
    """
    if commit_uuid is not None and not _UUID.fullmatch(commit_uuid):
        raise BadInput(f"{commit_uuid!r} is not a commit uuid; it looks like 6f1c2f6e-0f0c-4b0e-9d0c-1a2b3c4d5e6f")
    target = CatalogTable(table)
    now = clock_ms()
    deadline = now - int(grace.total_seconds() * 1000)
    plan = _Plan.of(target.refresh(), commit_uuid, None if force else deadline)
    if commit_uuid is not None and plan.held:
        raise BadInput(
            f"commit {commit_uuid} of table {target.name} is still reserved (or within its grace period of {grace}); "
            "cancel it first and wait, or force the sweep if its job is dead"
        )
    table_uuid = str(target.metadata.table_uuid)
    if not dry_run:
        for reservation in plan.over:
            _end(target, Ended(reservation.snapshot_id, reservation.commit_uuid, now), table_uuid, leave_mark=not force)
        plan = plan.without_revived(target.refresh(table_uuid))
    uuids = plan.commit_uuids
    newest_ms = None if force or plan.over or plan.marks else deadline
    orphans = tuple(_orphans(target, target.metadata, uuids, newest_ms)) if uuids else ()
    step("sweep:listed")
    if not dry_run:
        for orphan in orphans:
            delete_files(target.io, [orphan.path])
            step("sweep:deleted")
        if plan.marks:
            forget(target, plan.marks, table_uuid)
    return Sweep(files=orphans, commit_uuids=tuple(sorted(uuids)), held=plan.held)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to sweep: reservations to end, marks of those that ended long ago, and the one commit that was asked for."""

    over: tuple[Reservation, ...]
    marks: tuple[Ended, ...]
    held: tuple[str, ...]
    asked_for: str | None

    @classmethod
    def of(cls, metadata: TableMetadata, commit_uuid: str | None, deadline: int | None) -> _Plan:
        """By the table's reservations and marks. Without a deadline none of them is held."""
        marks = [m for m in ended(metadata) if commit_uuid in (None, m.commit_uuid)]
        marked = {mark.snapshot_id for mark in marks}
        found = [
            r for r in reservations(metadata) if commit_uuid in (None, r.commit_uuid) and r.snapshot_id not in marked
        ]
        over = [r for r in found if deadline is None or r.expires_at_ms <= deadline]
        old = [m for m in marks if deadline is None or m.ended_at_ms <= deadline]
        held = [r.commit_uuid for r in found if r not in over] + [m.commit_uuid for m in marks if m not in old]
        return cls(tuple(over), tuple(old), tuple(held), commit_uuid)

    @property
    def commit_uuids(self) -> set[str]:
        """The commits whose files are looked for."""
        ended_ones = {r.commit_uuid for r in self.over} | {mark.commit_uuid for mark in self.marks}
        return ended_ones | ({self.asked_for} if self.asked_for else set())

    def without_revived(self, metadata: TableMetadata) -> _Plan:
        """Without the reservations that were renewed between the look that found them over and their end."""
        marked = {mark.snapshot_id for mark in ended(metadata)}
        alive = {r.commit_uuid for r in reservations(metadata) if r.snapshot_id not in marked}
        return replace(
            self,
            over=tuple(r for r in self.over if r.commit_uuid not in alive),
            held=(*self.held, *sorted(alive & {r.commit_uuid for r in self.over})),
            asked_for=None if self.asked_for in alive else self.asked_for,
        )


def _end(target: CatalogTable, mark: Ended, table_uuid: str, *, leave_mark: bool) -> None:
    try:
        release(target, mark, table_uuid, leave_mark=leave_mark)
    except AlreadyConsumed:
        return  # published between two looks; its referenced files are protected below


def _orphans(
    target: CatalogTable, metadata: TableMetadata, uuids: set[str], newest_ms: int | None
) -> Iterator[StoredFile]:
    """Files of these commits that nothing references; with `newest_ms`, only those written before it."""
    found = {
        same_file(file.path): file
        for folder in _folders(target)
        for file in list_files(target.io, folder)
        if _belongs(file.path, uuids) and (newest_ms is None or file.modified_ms <= newest_ms)
    }
    if found:
        for path in referenced_files(target, metadata):
            found.pop(same_file(path), None)
    yield from found.values()
    yield from _lost_metadata(target, metadata, uuids)


def _folders(target: CatalogTable) -> tuple[str, ...]:
    locations = target.table.location_provider()
    return tuple(dict.fromkeys((locations.metadata_path, locations.data_path)))


def _belongs(path: str, uuids: set[str]) -> bool:
    return any(found in uuids for found in _UUID.findall(path.rsplit("/", 1)[-1]))


def referenced_files(target: CatalogTable, metadata: TableMetadata) -> Iterator[str]:
    """Every manifest list, manifest and data or delete file that a live snapshot of the table references.

    Entries that say a file is deleted count too: a file goes with the last snapshot that knows of it, not before.
    """
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in read_manifest_list(target.io, snapshot.manifest_list):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                yield manifest.manifest_path
                yield from _files_of(target, manifest)


def _files_of(target: CatalogTable, manifest: ManifestFile) -> Iterator[str]:
    for entry in read_manifest_entries(target.io, manifest):
        yield entry.data_file.file_path


def _lost_metadata(target: CatalogTable, metadata: TableMetadata, uuids: set[str]) -> Iterator[StoredFile]:
    """Metadata files that name one of these commits and provably lost: the table's log has another of their version."""
    log = [entry.metadata_file for entry in metadata.metadata_log] + [target.table.metadata_location]
    kept = {same_file(path) for path in log}
    versions = {match.group(1) for path in log if (match := _METADATA_VERSION.search(path))}
    for file in list_files(target.io, target.table.location_provider().metadata_path):
        match = _METADATA_VERSION.search(file.path)
        if (
            match
            and match.group(1) in versions
            and same_file(file.path) not in kept
            and _names_any(target, file, uuids)
        ):
            yield file


def _names_any(target: CatalogTable, file: StoredFile, uuids: set[str]) -> bool:
    with target.io.new_input(file.path).open() as stream:
        text = stream.read().decode("utf-8", errors="replace")
    return any(commit_uuid in text for commit_uuid in uuids)
