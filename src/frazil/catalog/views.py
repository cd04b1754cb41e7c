"""The routes of views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from starlette.responses import Response

from frazil.catalog import namespace_rows, pointers, staged
from frazil.catalog.call import Call, no_content
from frazil.catalog.commit import Change, LostRace, check_places, commit, prepare, retried
from frazil.catalog.database_tables import VIEW
from frazil.catalog.document import read_list, read_string
from frazil.catalog.idempotency import Recorded
from frazil.catalog.locations import checked_location, default_location
from frazil.catalog.naming import checked_name
from frazil.catalog.places import authorize_places
from frazil.catalog.pointers import Identifier
from frazil.catalog.requirements import check_view_requirements
from frazil.catalog.table_reply import load_view_result
from frazil.catalog.tables import NotInMemory, list_of_kind, recording, rename_of_kind
from frazil.catalog.view_metadata import check_create_view_request, check_view_metadata, new_view_metadata
from frazil.catalog.view_updates import apply_view_updates


def list_views(call: Call) -> Response:
    """The views in a namespace."""
    return list_of_kind(call, VIEW)


def load_view(call: Call) -> Response:
    """A view's metadata."""
    identifier = call.identifier("view")
    call.authorize(identifier.namespace, identifier.name)
    with call.backend.database.read() as connection:
        location = pointers.get(connection, identifier, VIEW)
    document = call.backend.store.cached(location)
    if document is None and call.inline:
        raise NotInMemory
    return load_view_result(document or call.backend.store.load(location))


def view_exists(call: Call) -> Response:
    """204 or 404."""
    identifier = call.identifier("view")
    call.authorize(identifier.namespace, identifier.name)
    with call.backend.database.read() as connection:
        pointers.get(connection, identifier, VIEW)
    return no_content()


def create_view(call: Call) -> Response:
    """Create a view."""
    backend, request = call.backend, check_create_view_request(call.document)
    identifier = call.identify(call.namespace, checked_name(request["name"], "view"))
    call.authorize(identifier.namespace, identifier.name)
    with backend.database.read() as connection:
        parents = namespace_rows.load(connection, identifier.catalog, identifier.namespace)
        pointers.refuse_taken(connection, identifier, VIEW)
    uuid = backend.new_uuid()
    location = checked_location(
        request.get("location")
        or default_location(backend.settings.warehouse, parents, identifier.namespace, identifier.name, uuid),
        backend.settings.roots,
    )
    metadata = new_view_metadata(request, view_uuid=uuid, location=location, now_ms=backend.clock_ms())
    authorize_places(call, identifier, metadata, {} if request.get("location") else {"location": location})
    change = prepare(backend, identifier, VIEW, None, metadata, (staged.holding_namespace(identifier),))
    commit(backend, [change], recording(call, change.new.location))
    return load_view_result(change.new)


def replace_view(call: Call) -> Response:
    """Commit to a view."""
    identifier, request = call.identifier("view"), call.document
    requirements = [] if request.get("requirements") is None else read_list(request, "requirements")
    updates = read_list(request, "updates")
    call.authorize(identifier.namespace, identifier.name)
    change: Change = retried(call.backend, lambda: _replace(call, identifier, requirements, updates))
    return load_view_result(change.new)


def _replace(call: Call, identifier: Identifier, requirements: Sequence[Any], updates: Sequence[Any]) -> Change:
    backend = call.backend
    with backend.turns.turn(str(identifier)):
        with backend.database.read() as connection:
            location = pointers.get(connection, identifier, VIEW)
        old = backend.store.load(location)
        check_view_requirements(old.metadata, requirements)
        metadata = apply_view_updates(old.metadata, updates, now_ms=backend.clock_ms())
        authorize_places(call, identifier, metadata, old.metadata)
        change = prepare(backend, identifier, VIEW, old, metadata)
        commit(backend, [change], recording(call, change.new.location))
        return change


def drop_view(call: Call) -> Response:
    """Take a view away."""
    identifier = call.identifier("view")
    call.authorize(identifier.namespace, identifier.name)

    def work(connection: Connection) -> None:
        location = pointers.get(connection, identifier, VIEW)
        if not pointers.remove(connection, identifier, VIEW, location):
            raise LostRace(f"Cannot drop view {identifier}: it was changed at the same time")

    retried(call.backend, lambda: call.write(work, Recorded(204)))
    return no_content()


def rename_view(call: Call) -> Response:
    """Give a view another name, in any namespace."""
    return rename_of_kind(call, VIEW, "createView")


def register_view(call: Call) -> Response:
    """Register metadata that is there already."""
    request = call.document
    identifier = call.identify(call.namespace, checked_name(read_string(request, "name"), "view"))
    call.authorize(identifier.namespace, identifier.name)
    call.authorize(identifier.namespace, identifier.name, "createView")
    location = checked_location(read_string(request, "metadata-location"), call.backend.settings.roots)
    with call.backend.database.read() as connection:
        namespace_rows.require(connection, identifier.catalog, identifier.namespace)
        pointers.refuse_taken(connection, identifier, VIEW)
    document = call.backend.store.load_foreign(location)
    check_view_metadata(document.metadata)
    check_places(call.backend, document.metadata, None)

    def work(connection: Connection) -> None:
        staged.holding_namespace(identifier)(connection)
        pointers.register(connection, identifier, VIEW, location)

    call.write(work, Recorded(200, metadata_location=location))
    return load_view_result(document)
