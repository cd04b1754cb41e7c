"""The routes of tables, all but their commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection
from starlette.responses import Response

from frazil.catalog import namespace_rows, pointers, reservations, staged
from frazil.catalog.call import Call, no_content, reply
from frazil.catalog.commit import LostRace, check_places, commit, prepare, retried
from frazil.catalog.database_tables import TABLE
from frazil.catalog.document import Document, read_object, read_string
from frazil.catalog.errors import NotSupported
from frazil.catalog.idempotency import Recorded
from frazil.catalog.locations import checked_location, default_location
from frazil.catalog.metadata_check import check_table_metadata
from frazil.catalog.metadata_store import MetadataDocument
from frazil.catalog.naming import checked_name, checked_namespace
from frazil.catalog.pages import Page
from frazil.catalog.places import authorize_places
from frazil.catalog.pointers import Identifier
from frazil.catalog.purge import purge_later
from frazil.catalog.table_metadata import check_create_request, new_table_metadata
from frazil.catalog.table_reply import (
    etag_of,
    is_held,
    load_table_result,
    snapshots_asked,
)


class NotInMemory(Exception):
    """The metadata must be read from storage first, which the thread that serves everybody must not wait for."""


def list_tables(call: Call) -> Response:
    """The tables in a namespace."""
    return list_of_kind(call, TABLE)


def list_of_kind(call: Call, kind: str) -> Response:
    """The tables or the views in a namespace."""
    namespace, page, catalog = call.namespace, Page.of(call), call.backend.settings.name
    call.authorize(namespace)
    with call.backend.database.read() as connection:
        found = pointers.names(connection, catalog, namespace, kind, page.after, page.asked)
        if not found:
            namespace_rows.require(connection, catalog, namespace)
    shown, token = page.cut(found)
    levels = list(namespace)
    seen = [{"namespace": levels, "name": name} for name in shown if call.sees(namespace, name)]
    return reply({"identifiers": seen, "next-page-token": token})


def load_table(call: Call) -> Response:
    """A table's metadata, or 304 when the client has it."""
    identifier, snapshots = call.identifier("table"), snapshots_asked(call)
    call.authorize(identifier.namespace, identifier.name)
    with call.backend.database.read() as connection:
        location = pointers.get(connection, identifier, TABLE)
    document = call.backend.store.cached(location)
    if document is None:
        if call.inline:
            raise NotInMemory
        document = call.backend.store.load(location)
    with call.backend.database.read() as connection:
        told = reservations.config_of(connection, str(document.metadata.get("table-uuid")))
    etag = etag_of(location, snapshots, told)
    if is_held(call, etag):
        return Response(status_code=304, headers={"ETag": etag})
    return load_table_result(call, document, snapshots, told)


def table_exists(call: Call) -> Response:
    """204 or 404."""
    identifier = call.identifier("table")
    call.authorize(identifier.namespace, identifier.name)
    with call.backend.database.read() as connection:
        pointers.get(connection, identifier, TABLE)
    return no_content()


def create_table(call: Call) -> Response:
    """Create a table, or stage its creation."""
    request = check_create_request(call.document)
    identifier = call.identify(call.namespace, checked_name(request["name"], "table"))
    call.authorize(identifier.namespace, identifier.name)
    stage = bool(request.get("stage-create"))
    if stage and not call.backend.settings.stage_create:
        raise NotSupported(
            "Staged create is turned off on this server (FRAZIL_STAGE_CREATE=off); create the table directly"
        )
    metadata = _first_metadata(call, identifier, request)
    authorize_places(call, identifier, metadata, {} if request.get("location") else {"location": metadata["location"]})
    if stage:
        return load_table_result(call, staged.stage(call, identifier, metadata))
    change = prepare(call.backend, identifier, TABLE, None, metadata, (staged.holding_namespace(identifier),))
    commit(call.backend, [change], recording(call, change.new.location))
    return load_table_result(call, change.new)


def _first_metadata(call: Call, identifier: Identifier, request: Document) -> Document:
    backend, uuid = call.backend, call.backend.new_uuid()
    with backend.database.read() as connection:
        parents = namespace_rows.load(connection, identifier.catalog, identifier.namespace)
        pointers.refuse_taken(connection, identifier, TABLE)
    location = request.get("location") or default_location(
        backend.settings.warehouse, parents, identifier.namespace, identifier.name, uuid
    )
    checked_location(location, backend.settings.roots)
    return new_table_metadata(request, table_uuid=uuid, location=location, now_ms=backend.clock_ms())


def recording(call: Call, location: str) -> Callable[[Callable[[Connection], None]], None]:
    """How a handler's commit runs: with its reply noted under the client's key."""
    return lambda work: call.write(work, Recorded(200, metadata_location=location))


def register_table(call: Call) -> Response:
    """Register metadata that is there already; with `overwrite` in place of what the table was."""
    request = call.document
    identifier = call.identify(call.namespace, checked_name(read_string(request, "name"), "table"))
    overwrite = request.get("overwrite") is True
    for operation in ("registerTable", "createTable", *(["updateTable"] if overwrite else [])):
        call.authorize(identifier.namespace, identifier.name, operation)
    location = checked_location(read_string(request, "metadata-location"), call.backend.settings.roots)
    with call.backend.database.read() as connection:
        namespace_rows.require(connection, identifier.catalog, identifier.namespace)
        if not overwrite:
            pointers.refuse_taken(connection, identifier, TABLE)
    document = call.backend.store.load_foreign(location)
    check_table_metadata(document.metadata)
    check_places(call.backend, document.metadata, None)

    def work(connection: Connection) -> None:
        staged.holding_namespace(identifier)(connection)
        if overwrite:
            pointers.remove(connection, identifier, TABLE)
        pointers.register(connection, identifier, TABLE, location)

    call.write(work, Recorded(200, metadata_location=location))
    return load_table_result(call, document)


def unregister_table(call: Call) -> Response:
    """Take a table away and leave every file; the reply is its last metadata."""
    identifier = call.identifier("table")
    call.authorize(identifier.namespace, identifier.name)
    return load_table_result(
        call, _take_away(call, identifier, lambda location: Recorded(200, metadata_location=location))
    )


def drop_table(call: Call) -> Response:
    """Take a table away; with `purgeRequested` its files too, after the reply."""
    identifier, purge = call.identifier("table"), call.flag("purgeRequested")
    call.authorize(identifier.namespace, identifier.name)
    document = _take_away(call, identifier, lambda _location: Recorded(204), load=purge)
    if purge:
        purge_later(call.backend, document)
    return no_content()


def _take_away(
    call: Call, identifier: Identifier, recorded: Callable[[str], Recorded], load: bool = True
) -> MetadataDocument:
    """Remove the pointer that was read: a commit that comes in between is not lost, the removal begins again."""

    def attempt() -> MetadataDocument:
        with call.backend.database.read() as connection:
            location = pointers.get(connection, identifier, TABLE)
        document = call.backend.store.load(location) if load else MetadataDocument(location, b"")

        def work(connection: Connection) -> None:
            if not pointers.remove(connection, identifier, TABLE, location):
                raise LostRace(f"Cannot drop table {identifier}: it was changed at the same time")

        call.write(work, recorded(location))
        return document

    result: MetadataDocument = retried(call.backend, attempt)
    return result


def rename_table(call: Call) -> Response:
    """Give a table another name, in any namespace."""
    return rename_of_kind(call, TABLE, "createTable")


def rename_of_kind(call: Call, kind: str, creating: str) -> Response:
    """Give a table or a view another name. To the target it is as if one were created there."""
    source = _identifier(call, read_object(call.document, "source"))
    target = _identifier(call, read_object(call.document, "destination"))
    call.authorize(source.namespace, source.name)
    call.authorize(target.namespace, target.name, creating)

    def work(connection: Connection) -> None:
        if pointers.kind_of(connection, source) != kind:
            raise pointers.missing(source, kind)
        staged.holding_namespace(target)(connection)
        pointers.rename(connection, source, target, kind)

    call.write(work, Recorded(204))
    return no_content()


def _identifier(call: Call, document: Any) -> Identifier:
    namespace = checked_namespace(document.get("namespace"))
    return call.identify(namespace, checked_name(read_string(document, "name"), "table"))
