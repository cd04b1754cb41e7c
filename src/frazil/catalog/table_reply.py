"""Replies that hold metadata. The metadata file's own bytes go into them, so nothing is serialised again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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
PACKED_BEYOND: Final = 256 * 1024
"""How long a document is sent packed to whoever takes it so."""

DELEGATION: Final = "x-iceberg-access-delegation"


def snapshots_asked(call: Call) -> str:
    """Which snapshots the query asks for."""
    value = call.query.get("snapshots", ALL).lower()
    if value not in (ALL, REFS):
        raise InvalidRequest(f"Invalid query parameter snapshots: {value[:40]}; it is all or refs")
    return value


def etag_of(location: str, snapshots: str = ALL, told: Mapping[str, str] | None = None) -> str:
    """A metadata file never changes, so its location is its version; with what is told beside it, if anything is."""
    version = f"{location} {snapshots} {sorted(told.items()) if told else ''}"
    return f'"{hashlib.sha256(version.encode()).hexdigest()[:32]}"'


def is_held(call: Call, etag: str) -> bool:
    """Whether the client says that it has this version. With credentials, which end, a reply is never the same."""
    if call.backend.vendor.waits and DELEGATION in call.headers:
        return False
    given = call.headers.get("if-none-match", "")
    return etag in [each.strip().removeprefix("W/") for each in given.split(",")]


def load_table_result(
    call: Call, document: MetadataDocument, snapshots: str = ALL, told: Mapping[str, str] | None = None
) -> Response:
    """A LoadTableResult. `told`: what its configuration holds beside access to the files."""
    delegation = call.headers.get(DELEGATION)
    access = call.backend.vendor.access(call.principal, delegation, document.location, document.metadata)
    extra = access.to_document()
    etag = etag_of(document.location, snapshots, told)
    if told:
        extra["config"] |= told
    if snapshots == ALL:
        return _whole(call, document, extra, etag)
    return _reply(document.location, document.part(REFS, referenced_snapshots), extra, etag)


def commit_table_response(call: Call, document: MetadataDocument, snapshots: str = ALL) -> Response:
    """A CommitTableResponse. `snapshots`: as for a load, which of them the client wants to see."""
    etag = etag_of(document.location, snapshots)
    if snapshots == ALL:
        return _whole(call, document, {}, etag)
    return _reply(document.location, document.part(REFS, referenced_snapshots), {}, etag)


def load_view_result(document: MetadataDocument) -> Response:
    """A LoadViewResult."""
    return _reply(document.location, document.content, {"config": {}}, None)


def _whole(call: Call, document: MetadataDocument, extra: Document, etag: str) -> Response:
    """All of the document; packed if it is long and the client takes that, since its blocks are packed already."""
    if document.size < PACKED_BEYOND or not _takes_packed(call):
        return _reply(document.location, document.content, extra, etag)
    before, after = _around(document.location, extra)
    headers = {"ETag": etag, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return JsonReply(document.text.within(before, after), headers=headers)


def _takes_packed(call: Call) -> bool:
    """Whether the client takes gzip."""
    offers = [each.replace(" ", "").lower() for each in call.headers.get("accept-encoding", "").split(",")]
    return any(each.split(";")[0] in ("gzip", "*") and not each.endswith((";q=0", ";q=0.0")) for each in offers)


def _reply(location: str, metadata: bytes, extra: Document, etag: str | None) -> Response:
    before, after = _around(location, extra)
    return JsonReply(before + metadata + after, headers={"ETag": etag} if etag else None)


def _around(location: str, extra: Document) -> tuple[bytes, bytes]:
    """What stands before and after the metadata."""
    after = b"," + orjson.dumps(extra)[1:] if extra else b"}"
    return b'{"metadata-location":' + orjson.dumps(location) + b',"metadata":', after
