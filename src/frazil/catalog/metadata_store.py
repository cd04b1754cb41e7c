"""Metadata documents by location. A metadata file never changes, so what was read once need not be read again."""

from __future__ import annotations

import gzip
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import orjson

from frazil.catalog.document import Document
from frazil.catalog.errors import CatalogError, InvalidRequest, Missing
from frazil.catalog.locations import metadata_folder
from frazil.catalog.metadata_text import MetadataText
from frazil.catalog.storage import Storage

# A parsed document takes about this many times the memory of its text.
_PARSED_COST = 6
# A table of more snapshots than this has its metadata files packed, unless its properties say otherwise.
_PACKED_BEYOND = 1000
_VERSION = re.compile(r"(?:^|/)v?(\d+)[-.][^/]*$")


class MetadataDocument:
    """A metadata file: its JSON, and parsed when somebody asks. Nobody may change what it gives."""

    def __init__(self, location: str, content: bytes | None, text: MetadataText | None = None) -> None:
        self.location = location
        self.parts: dict[str, bytes] = {}
        if content is not None:
            self.content = content
        if text is not None:
            self.text = text

    @cached_property
    def content(self) -> bytes:
        """The JSON, in one piece."""
        return self.text.json()

    @cached_property
    def text(self) -> MetadataText:
        """The document in blocks, of which the text of the next one is made."""
        return MetadataText.of(_parse(self.location, self.content))

    @property
    def metadata(self) -> Document:
        """The document."""
        return self.text.metadata

    def part(self, name: str, make: Callable[[Document], Any]) -> bytes:
        """A smaller document made of this one, as JSON; made once."""
        if name not in self.parts:
            self.parts[name] = orjson.dumps(make(self.metadata))
        return self.parts[name]

    @property
    def size(self) -> int:
        """About how long the JSON is."""
        return len(self.content) if "content" in vars(self) else self.text.size

    @cached_property
    def cost(self) -> int:
        """Roughly how much memory it takes, whatever of it has been asked for."""
        return self.size * (2 + _PARSED_COST) + 1024


class MetadataStore:
    """Reads through a cache bounded by memory; writes under names nobody else has. Thread-safe."""

    def __init__(self, storage: Storage, cache_bytes: int) -> None:
        self.storage = storage
        self._limit = cache_bytes
        self._held = 0
        self._cache: OrderedDict[str, MetadataDocument] = OrderedDict()
        self._lock = threading.Lock()

    def cached(self, location: str) -> MetadataDocument | None:
        """The document if it is in memory."""
        with self._lock:
            found = self._cache.get(location)
            if found is not None:
                self._cache.move_to_end(location)
            return found

    def load(self, location: str) -> MetadataDocument:
        """The document at a location the database names. `Missing` if somebody has taken it away."""
        found = self.cached(location)
        if found is not None:
            return found
        try:
            document = MetadataDocument(location, _unpacked(location, self.storage.read(location)))
        except FileNotFoundError as error:
            raise Missing(f"Failed to open input stream for file: {location}") from error
        self._keep(document)
        return document

    def load_foreign(self, location: str) -> MetadataDocument:
        """The document at a location that a client names: all that can be wrong with it is the client's mistake."""
        try:
            document = MetadataDocument(location, _unpacked(location, self.storage.read(location)))
            _ = document.metadata
        except (OSError, CatalogError, EOFError) as error:
            raise InvalidRequest(f"Cannot read metadata file {location}: it is not there, or is no metadata") from error
        return document

    def write(self, location: str, metadata: Document, previous: MetadataDocument | None = None) -> MetadataDocument:
        """Write a new file and keep it in memory. What it shares with the previous one is not serialised again."""
        text = MetadataText.of(metadata, previous.text if previous else None)
        document = MetadataDocument(location, None, text)
        self.storage.write(location, text.gzip() if _is_packed(location) else document.content)
        self._keep(document)
        return document

    def release(self, location: str) -> None:
        """Drop a document from memory; the file stays."""
        with self._lock:
            gone = self._cache.pop(location, None)
            self._held -= gone.cost if gone else 0

    def forget(self, location: str) -> bool:
        """Remove a file that no pointer names, best effort: False if it stays, an orphan that harms nobody."""
        self.release(location)
        try:
            self.storage.delete(location)
        except OSError:
            return False
        return True

    def _keep(self, document: MetadataDocument) -> None:
        with self._lock:
            old = self._cache.pop(document.location, None)
            self._held += document.cost - (old.cost if old else 0)
            self._cache[document.location] = document
            while self._held > self._limit and len(self._cache) > 1:
                self._held -= self._cache.popitem(last=False)[1].cost


def new_metadata_location(metadata: Document, previous: str | None = None) -> str:
    """A name nobody else has for the metadata file that follows `previous`. Its ending says whether the file is packed."""
    match = _VERSION.search(previous) if previous else None
    version = int(match[1]) + 1 if match else 0
    ending = ".gz.metadata.json" if _shall_be_packed(metadata) else ".metadata.json"
    return f"{metadata_folder(metadata)}/{version:05d}-{uuid.uuid4()}{ending}"


def _shall_be_packed(metadata: Document) -> bool:
    """As the table says; one that says nothing is packed when it is long, since packing costs less than writing then."""
    codec = (metadata.get("properties") or {}).get("write.metadata.compression-codec")
    if codec is None:
        return len(metadata.get("snapshots") or ()) > _PACKED_BEYOND
    return str(codec).lower() == "gzip"


def _is_packed(location: str) -> bool:
    return location.endswith((".gz.metadata.json", ".metadata.json.gz"))


def _unpacked(location: str, content: bytes) -> bytes:
    return gzip.decompress(content) if _is_packed(location) else content


def _parse(location: str, content: bytes) -> Document:
    try:
        metadata = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise CatalogError(f"Metadata file is damaged: {location}") from error
    if not isinstance(metadata, dict):
        raise CatalogError(f"Metadata file is damaged: {location}")
    return metadata
