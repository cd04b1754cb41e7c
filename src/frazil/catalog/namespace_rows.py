"""Namespaces in the database, by the rules of the JDBC catalog.

A namespace is there if it has a property, if a table or a view is in it, or if a namespace is below it. One that was made
has the property `exists`, which is nobody's business but the database's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import BindParameter, Connection, and_, bindparam, delete, func, insert, literal, select
from sqlalchemy.exc import IntegrityError

from frazil.catalog.database_tables import iceberg_tables, namespace_properties
from frazil.catalog.errors import AlreadyExists, InvalidRequest, NamespaceNotEmpty, NoSuchNamespace
from frazil.catalog.naming import Namespace, namespace_from_stored, stored_namespace, text_of

EXISTS = "exists"
_LONGEST_KEY, _LONGEST_VALUE = 255, 1000
_PROPERTIES = namespace_properties.c
_TABLES = iceberg_tables.c


# Statements are made once: to make one costs several times what it costs to run it.
_CATALOG: BindParameter[str] = bindparam("of_catalog")
_NAMESPACE: BindParameter[str] = bindparam("of_namespace")
_ITS = and_(_PROPERTIES.catalog_name == _CATALOG, _PROPERTIES.namespace == _NAMESPACE)
_LOOKS = (
    select(literal(1)).where(_ITS).limit(1),
    select(literal(1)).where(_TABLES.catalog_name == _CATALOG, _TABLES.table_namespace == _NAMESPACE).limit(1),
)
_ALL = select(_PROPERTIES.property_key, _PROPERTIES.property_value).where(_ITS)
_HELD_MARK = select(_PROPERTIES.property_key).where(_ITS, _PROPERTIES.property_key == EXISTS).with_for_update(read=True)


def _this(catalog: str, namespace: Namespace) -> dict[str, str]:
    return {"of_catalog": catalog, "of_namespace": stored_namespace(namespace)}


def exists(connection: Connection, catalog: str, namespace: Namespace) -> bool:
    """Whether the namespace is there, by the cheapest look that can tell."""
    this = _this(catalog, namespace)
    if any(connection.execute(look, this).first() for look in _LOOKS):
        return True
    return bool(_children(connection, catalog, stored_namespace(namespace)))


def require(connection: Connection, catalog: str, namespace: Namespace) -> None:
    """Raise unless the namespace is there."""
    if not exists(connection, catalog, namespace):
        raise missing(namespace)


def require_and_hold(connection: Connection, catalog: str, namespace: Namespace) -> None:
    """As `require`; and nobody drops the namespace until this transaction ends."""
    if connection.execute(_HELD_MARK, _this(catalog, namespace)).first() is None:
        require(connection, catalog, namespace)


def missing(namespace: Namespace) -> NoSuchNamespace:
    """The error that says there is none, in Iceberg's words."""
    return NoSuchNamespace(f"Namespace does not exist: {text_of(namespace)}")


def create(connection: Connection, catalog: str, namespace: Namespace, properties: Mapping[str, str]) -> None:
    """Make a namespace. Of several that try at once, one does."""
    if exists(connection, catalog, namespace):
        raise _taken(namespace)
    try:
        _insert(connection, catalog, namespace, {**properties, EXISTS: "true"})
    except IntegrityError as error:
        raise _taken(namespace) from error


def _taken(namespace: Namespace) -> AlreadyExists:
    return AlreadyExists(f"Namespace already exists: {text_of(namespace)}")


def properties_of(connection: Connection, catalog: str, namespace: Namespace) -> dict[str, str]:
    """The properties of a namespace, none where it is not there."""
    found = connection.execute(_ALL, _this(catalog, namespace))
    return {key: value for key, value in found if key != EXISTS}


def load(connection: Connection, catalog: str, namespace: Namespace) -> dict[str, str]:
    """The properties of a namespace, which must be there."""
    found = dict(connection.execute(_ALL, _this(catalog, namespace)).all())
    if not found:
        require(connection, catalog, namespace)
    found.pop(EXISTS, None)
    return found


def set_properties(connection: Connection, catalog: str, namespace: Namespace, properties: Mapping[str, str]) -> None:
    """Set properties, whether they were there or not."""
    remove_properties(connection, catalog, namespace, properties)
    _insert(connection, catalog, namespace, properties)


def remove_properties(connection: Connection, catalog: str, namespace: Namespace, keys: Iterable[str]) -> None:
    """Remove properties; the namespace stays."""
    if wanted := list(keys):
        connection.execute(
            delete(namespace_properties).where(
                _PROPERTIES.catalog_name == catalog,
                _PROPERTIES.namespace == stored_namespace(namespace),
                _PROPERTIES.property_key.in_(wanted),
            )
        )


def lock(connection: Connection, catalog: str, namespace: Namespace) -> None:
    """Keep others from changing the namespace, or making tables in it, until this transaction ends."""
    connection.execute(_ALL.with_for_update(), _this(catalog, namespace)).all()


def drop(connection: Connection, catalog: str, namespace: Namespace) -> None:
    """Take away an empty namespace."""
    lock(connection, catalog, namespace)
    require(connection, catalog, namespace)
    stored = stored_namespace(namespace)
    inside = select(_TABLES.table_name, _TABLES.iceberg_type).where(
        _TABLES.catalog_name == catalog, _TABLES.table_namespace == stored
    )
    held = connection.execute(inside.limit(1)).first()
    if held is not None:
        what = "views" if held[1] == "VIEW" else "tables"
        raise NamespaceNotEmpty(f"Namespace {text_of(namespace)} is not empty. Contains {what}: {held[0]}")
    if _children(connection, catalog, stored):
        raise NamespaceNotEmpty(f"Namespace {text_of(namespace)} is not empty. It has nested namespaces")
    connection.execute(
        delete(namespace_properties).where(_PROPERTIES.catalog_name == catalog, _PROPERTIES.namespace == stored)
    )


def children(connection: Connection, catalog: str, parent: Namespace) -> list[Namespace]:
    """The namespaces directly below a parent, in order; the empty parent has the top ones."""
    stored = stored_namespace(parent) if parent else None
    depth = len(parent)
    below = {namespace_from_stored(each)[: depth + 1] for each in _children(connection, catalog, stored)}
    return sorted(each for each in below if len(each) == depth + 1 and each[:depth] == parent)


def _children(connection: Connection, catalog: str, stored: str | None) -> set[str]:
    """Every stored namespace below this one. Not by LIKE, which takes `A` for `a` on SQLite."""
    found: set[str] = set()
    for table, column in ((iceberg_tables, _TABLES.table_namespace), (namespace_properties, _PROPERTIES.namespace)):
        query = select(column).where(table.c.catalog_name == catalog).distinct()
        if stored is not None:
            query = query.where(func.substr(column, 1, len(stored) + 1) == f"{stored}.")
        found.update(connection.execute(query).scalars())
    return found


def _insert(connection: Connection, catalog: str, namespace: Namespace, properties: Mapping[str, str]) -> None:
    rows = [
        {
            "catalog_name": catalog,
            "namespace": stored_namespace(namespace),
            "property_key": key,
            "property_value": value,
        }
        for key, value in properties.items()
    ]
    if rows:
        connection.execute(insert(namespace_properties), rows)


def checked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties that the database can hold, for a namespace."""
    for key, value in properties.items():
        if not key or key == EXISTS or len(key) > _LONGEST_KEY or "\0" in key:
            raise InvalidRequest(f"Invalid namespace property: {key[:80]!r} cannot be a key; choose another")
        if len(value) > _LONGEST_VALUE or "\0" in value:
            raise InvalidRequest(
                f"Invalid namespace property {key}: its value must be {_LONGEST_VALUE} characters or fewer, without NUL"
            )
    return dict(properties)
