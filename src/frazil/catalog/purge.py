"""Purge: remove all files of a table that was dropped. It runs after the reply, for it may take long.

What a crash or an unreachable store leaves behind are orphans of a table that is gone; nothing refers to them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from pyiceberg.io import FileIO
from pyiceberg.manifest import read_manifest_list

from frazil.catalog.backend import Backend
from frazil.catalog.confined_io import ConfinedFileIO
from frazil.catalog.document import Document
from frazil.catalog.errors import Forbidden, InvalidRequest
from frazil.catalog.locations import folders_of, lies_in
from frazil.catalog.metadata_store import MetadataDocument

_LOG = logging.getLogger(__name__)
_NOT_TO_BE_READ = (FileNotFoundError, Forbidden, InvalidRequest)
_GC_ENABLED = "gc.enabled"


def purge_later(backend: Backend, document: MetadataDocument) -> threading.Thread:
    """Remove the files of a dropped table in a thread of its own."""
    thread = threading.Thread(target=_purge, args=(backend, document), name="frazil-purge")
    thread.start()
    return thread


def _purge(backend: Backend, document: MetadataDocument) -> None:
    try:
        removed = sum(backend.store.forget(location) for location in files_of(backend, document))
        _LOG.info("purged %d files of %s", removed, document.metadata.get("location"))
    except Exception:
        _LOG.exception("the files of the dropped table at %s were not all removed", document.metadata.get("location"))
        raise


def files_of(backend: Backend, document: MetadataDocument) -> Iterator[str]:
    """Every file that the metadata leads to, each once, those first that others lead to.

    Files outside the table's own folders stay: a manifest may name anybody's.
    """
    own = folders_of(document.metadata)
    metadata = document.metadata
    io = ConfinedFileIO(backend.store.storage.file_io(document.location), backend.settings.roots)
    seen: set[str] = set()
    collects_garbage = str((metadata.get("properties") or {}).get(_GC_ENABLED, "true")).lower() == "true"
    for location in _found(metadata, io, data=collects_garbage):
        if location not in seen and lies_in(location, own):
            seen.add(location)
            yield location
    yield document.location


def _found(metadata: Document, io: FileIO, data: bool) -> Iterator[str]:
    for snapshot in metadata.get("snapshots") or ():
        if "manifest-list" in snapshot:
            yield from _files_of_snapshot(snapshot["manifest-list"], io, data)
            yield snapshot["manifest-list"]
    for statistics in (*(metadata.get("statistics") or ()), *(metadata.get("partition-statistics") or ())):
        yield statistics["statistics-path"]
    for entry in metadata.get("metadata-log") or ():
        yield entry["metadata-file"]


def _files_of_snapshot(manifest_list: str, io: FileIO, data: bool) -> Iterator[str]:
    try:
        manifests = list(read_manifest_list(io.new_input(manifest_list)))
    except _NOT_TO_BE_READ:
        return
    for manifest in manifests:
        try:
            entries = manifest.fetch_manifest_entry(io, discard_deleted=False) if data else []
        except _NOT_TO_BE_READ:
            continue
        for entry in entries:
            yield entry.data_file.file_path
        yield manifest.manifest_path
