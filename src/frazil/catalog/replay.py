"""Run a request once: one that comes again under its idempotency key hears what it heard before."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from frazil.catalog import idempotency
from frazil.catalog.call import Call, JsonReply, no_content
from frazil.catalog.errors import CatalogError, CommitStateUnknown
from frazil.catalog.idempotency import KeyUsed, Recorded
from frazil.catalog.table_reply import commit_table_response, load_table_result, load_view_result, snapshots_asked


def run_once(call: Call, handler: Callable[[Call], Response]) -> Response:
    """The handler's reply, or the one noted under the request's key."""
    if call.idempotency_key is None:
        return handler(call)
    earlier = _find(call, call.idempotency_key)
    if earlier is not None:
        return _again(call, earlier)
    try:
        return handler(call)
    except KeyUsed as error:  # the same request ran at the same time and was first
        earlier = _find(call, call.idempotency_key)
        if earlier is None:
            raise CommitStateUnknown("The same request runs at the same time; try again") from error
        return _again(call, earlier)
    except CatalogError as error:
        _note_refusal(call, error)
        raise


def _find(call: Call, key: str) -> Recorded | None:
    with call.backend.database.read() as connection:
        return idempotency.find(connection, call.backend.settings.name, key, call.fingerprint)


def _note_refusal(call: Call, error: CatalogError) -> None:
    try:
        call.note_error(error)
    except KeyUsed:
        return  # the same request was refused, or served, at the same time; either reply is as good as this one


def _again(call: Call, earlier: Recorded) -> Response:
    if earlier.metadata_location is not None:
        document = call.backend.store.load(earlier.metadata_location)
        if "View" in call.operation:
            return load_view_result(document)
        if call.operation == "updateTable":
            return commit_table_response(call, document, snapshots_asked(call))
        return load_table_result(call, document)
    return no_content() if earlier.content is None else JsonReply(earlier.content, earlier.status)
