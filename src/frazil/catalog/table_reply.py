"""Replies that hold metadata. The metadata file's own bytes go into them, so nothing is serialised again."""

from __future__ import annotations

import hashlib
from typing import Final

import orjson
from starlette.responses import Response

from frazil.catalog.call import Call, JsonReply
from frazil.catalog.document import Document
from frazil.catalog.errors import InvalidRequest
from frazil.catalog.metadata_store import MetadataDocument
from frazil.catalog.snapshot_filter import referenced_snapshots

ALL: Final = "all"
REFS: Final = "refs"
DELEGATION: Final = "x-iceberg-access-delegation"


def snapshots_asked(call: Call) -> str:
    """Which snapshots the query asks for."""
    value = call.query.get("snapshots", ALL).lower()
    if value not in (ALL, REFS):
        raise InvalidRequest(f"Invalid query parameter snapshots: {value[:40]}; it is all or refs")
    return value


def etag_of(location: str, snapshots: str = ALL) -> str:
    """A metadata file never changes, so its location is its version."""
    return f'"{hashlib.sha256(f"{location} {snapshots}".encode()).hexdigest()[:32]}"'


def is_held(call: Call, etag: str) -> bool:
    """Whether the client says that it has this version. With credentials, which end, a reply is never the same."""
    if call.backend.vendor.waits and DELEGATION in call.headers:
        return False
    given = call.headers.get("if-none-match", "")
    return etag in [each.strip().removeprefix("W/") for each in given.split(",")]


def load_table_result(call: Call, document: MetadataDocument, snapshots: str = ALL) -> Response:
    """A LoadTableResult."""
    delegation = call.headers.get(DELEGATION)
    access = call.backend.vendor.access(call.principal, delegation, document.location, document.metadata)
    extra = access.to_document()
    body = document.content if snapshots == ALL else document.part(REFS, referenced_snapshots)
    return _reply(document.location, body, extra, etag_of(document.location, snapshots))


def commit_table_response(document: MetadataDocument) -> Response:
    """A CommitTableResponse."""
    return _reply(document.location, document.content, {}, etag_of(document.location))


def load_view_result(document: MetadataDocument) -> Response:
    """A LoadViewResult."""
    return _reply(document.location, document.content, {"config": {}}, None)


def _reply(location: str, metadata: bytes, extra: Document, etag: str | None) -> Response:
    rest = b"," + orjson.dumps(extra)[1:] if extra else b"}"
    body = b'{"metadata-location":' + orjson.dumps(location) + b',"metadata":' + metadata + rest
    return JsonReply(body, headers={"ETag": etag} if etag else None)
