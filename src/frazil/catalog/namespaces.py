"""The routes of namespaces."""

from __future__ import annotations

import orjson
from sqlalchemy import Connection
from starlette.responses import Response

from frazil.catalog import namespace_rows as rows
from frazil.catalog.call import Call, no_content, reply
from frazil.catalog.document import Document, read_list, read_string_map, read_strings
from frazil.catalog.errors import UnprocessableEntity
from frazil.catalog.idempotency import Recorded
from frazil.catalog.naming import Namespace, checked_namespace, namespace_from_stored, stored_namespace
from frazil.catalog.pages import Page
from frazil.catalog.places import authorize_base


def list_namespaces(call: Call) -> Response:
    """The namespaces below a parent, or the top ones."""
    parent, page = call.query_namespace("parent"), Page.of(call)
    call.authorize(parent or None)
    catalog = call.backend.settings.name
    with call.backend.database.read() as connection:
        if parent:
            rows.require(connection, catalog, parent)
        found = rows.children(connection, catalog, parent)
    following = [stored_namespace(each) for each in found if call.sees(each)]
    following = sorted(each for each in following if page.after is None or each > page.after)
    shown, token = page.cut(following)
    return reply({"namespaces": [list(namespace_from_stored(each)) for each in shown], "next-page-token": token})


def create_namespace(call: Call) -> Response:
    """Make a namespace with its properties."""
    namespace = checked_namespace(read_list(call.document, "namespace"))
    properties = rows.checked_properties(_optional_map(call.document, "properties"))
    call.authorize(namespace)
    authorize_base(call, namespace, properties)
    body = orjson.dumps({"namespace": list(namespace), "properties": properties})
    call.write(
        lambda connection: rows.create(connection, call.backend.settings.name, namespace, properties),
        Recorded(200, body),
    )
    return reply({"namespace": list(namespace), "properties": properties})


def load_namespace(call: Call) -> Response:
    """A namespace's properties."""
    namespace, catalog = call.namespace, call.backend.settings.name
    call.authorize(namespace)
    with call.backend.database.read() as connection:
        properties = rows.load(connection, catalog, namespace)
    return reply({"namespace": list(namespace), "properties": properties})


def namespace_exists(call: Call) -> Response:
    """204 or 404."""
    call.authorize(call.namespace)
    with call.backend.database.read() as connection:
        rows.require(connection, call.backend.settings.name, call.namespace)
    return no_content()


def drop_namespace(call: Call) -> Response:
    """Take an empty namespace away."""
    namespace = call.namespace
    call.authorize(namespace)
    call.write(lambda connection: rows.drop(connection, call.backend.settings.name, namespace), Recorded(204))
    return no_content()


def update_properties(call: Call) -> Response:
    """Set and remove properties of a namespace."""
    namespace = call.namespace
    updates = rows.checked_properties(_optional_map(call.document, "updates"))
    removals = [] if call.document.get("removals") is None else read_strings(call.document, "removals")
    call.authorize(namespace)
    authorize_base(call, namespace, updates)
    if both := sorted(set(updates) & set(removals)):
        raise UnprocessableEntity(f"Invalid namespace update, cannot simultaneously set and remove keys: {both}")
    found = call.write(
        lambda connection: _update(connection, call.backend.settings.name, namespace, updates, removals),
        lambda found: Recorded(200, orjson.dumps(found)),
    )
    return reply(found)


def _update(
    connection: Connection, catalog: str, namespace: Namespace, updates: dict[str, str], removals: list[str]
) -> Document:
    rows.require_and_hold(connection, catalog, namespace)
    rows.lock(connection, catalog, namespace)
    before = rows.properties_of(connection, catalog, namespace)
    wanted = list(dict.fromkeys(removals))
    rows.remove_properties(connection, catalog, namespace, [key for key in wanted if key in before])
    rows.set_properties(connection, catalog, namespace, updates)
    return {
        "updated": list(updates),
        "removed": [key for key in wanted if key in before],
        "missing": [key for key in wanted if key not in before],
    }


def _optional_map(document: Document, name: str) -> dict[str, str]:
    return {} if document.get(name) is None else read_string_map(document, name)
