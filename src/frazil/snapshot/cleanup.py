"""Finding and removing what a dead job left, from its commit uuid alone.

A file goes only when it carries the commit uuid in its name, the reservation is over (released here first, so that no
coordinator can still publish it), the grace period has passed, and no live snapshot references it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from frazil.errors import AlreadyConsumed, BadInput
from frazil.snapshot.manifest import read_manifest_entries
from frazil.snapshot.manifest_file import ManifestFile
from frazil.snapshot.manifest_list import read_manifest_list
from frazil.snapshot.reservation import now_ms, release, reservations
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
    """Remove the orphans of one commit, or of every commit whose reservation expired more than `grace` ago.

    A reservation that is still held protects its files: with a `commit_uuid` that is an error, unless `force` says that
    its job is known to be dead; without one it is passed over and listed in `held`. A file that any live snapshot
    references is never touched.
    """
    if commit_uuid is not None and not _UUID.fullmatch(commit_uuid):
        raise BadInput(f"{commit_uuid!r} is not a commit uuid; it looks like 6f1c2f6e-0f0c-4b0e-9d0c-1a2b3c4d5e6f")
    target = CatalogTable(table)
    metadata = target.refresh()
    deadline = clock_ms() - int(grace.total_seconds() * 1000)
    found = [r for r in reservations(metadata) if commit_uuid in (None, r.commit_uuid)]
    over = [r for r in found if force or r.expires_at_ms <= deadline]
    held = tuple(r.commit_uuid for r in found if r not in over)
    if commit_uuid is not None and held:
        raise BadInput(
            f"commit {commit_uuid} of table {target.name} is still reserved (or within its grace period of {grace}); "
            "cancel it first, or force the sweep if its job is dead"
        )
    uuids = {r.commit_uuid for r in over} | ({commit_uuid} if commit_uuid else set())
    if not dry_run:
        for reservation in over:
            _release(target, reservation.snapshot_id, str(metadata.table_uuid))
        metadata = target.refresh(str(metadata.table_uuid))
    newest_ms = None if force or over else deadline
    orphans = tuple(_orphans(target, metadata, uuids, newest_ms)) if uuids else ()
    step("sweep:listed")
    if not dry_run:
        for orphan in orphans:
            delete_files(target.io, [orphan.path])
            step("sweep:deleted")
    return Sweep(files=orphans, commit_uuids=tuple(sorted(uuids)), held=held)


def _release(target: CatalogTable, snapshot_id: int, table_uuid: str) -> None:
    try:
        release(target, snapshot_id, table_uuid)
    except AlreadyConsumed:
        return  # published between two looks; its referenced files are protected below


def _orphans(
    target: CatalogTable, metadata: TableMetadata, uuids: set[str], newest_ms: int | None
) -> Iterator[StoredFile]:
    """Files of these commits that nothing references; with `newest_ms`, only those written before it."""
    candidates = [
        file
        for folder in _folders(target)
        for file in list_files(target.io, folder)
        if _belongs(file.path, uuids) and (newest_ms is None or file.modified_ms <= newest_ms)
    ]
    losers = list(_lost_metadata(target, metadata, uuids))
    if candidates:
        referenced = {same_file(path) for path in referenced_files(target, metadata)}
        candidates = [file for file in candidates if same_file(file.path) not in referenced]
    yield from candidates
    yield from losers


def _folders(target: CatalogTable) -> tuple[str, ...]:
    locations = target.table.location_provider()
    return tuple(dict.fromkeys((locations.metadata_path, locations.data_path)))


def _belongs(path: str, uuids: set[str]) -> bool:
    return any(found in uuids for found in _UUID.findall(path.rsplit("/", 1)[-1]))


def referenced_files(target: CatalogTable, metadata: TableMetadata) -> Iterator[str]:
    """Every manifest list, manifest and data or delete file that a live snapshot of the table references."""
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
