"""The pointers: which metadata file is a table's or a view's newest. All that makes a commit visible happens here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from frazil.catalog.database_tables import TABLE, VIEW, iceberg_tables
from frazil.catalog.errors import AlreadyExists, NoSuchTable, NoSuchView
from frazil.catalog.naming import Namespace, stored_namespace, text_of

_COLUMNS = iceberg_tables.c
_KIND = {TABLE: "Table", VIEW: "View"}


@dataclass(frozen=True, slots=True)
class Identifier:
    """A table or a view of one catalog."""

    catalog: str
    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return text_of(self.namespace, self.name)

    @property
    def key(self) -> dict[str, str]:
        """The parameters of the statements below, which name one row."""
        return {"of_catalog": self.catalog, "of_namespace": stored_namespace(self.namespace), "of_name": self.name}

    @property
    def row(self) -> dict[str, str]:
        """The primary key's columns."""
        return {
            "catalog_name": self.catalog,
            "table_namespace": stored_namespace(self.namespace),
            "table_name": self.name,
        }


# Statements are made once: to make one costs several times what it costs to run it.
_THIS = and_(
    _COLUMNS.catalog_name == bindparam("of_catalog"),
    _COLUMNS.table_namespace == bindparam("of_namespace"),
    _COLUMNS.table_name == bindparam("of_name"),
)
# A row of PyIceberg's or Java's first layout says nothing of its type, and is a table.
_OF_KIND: Mapping[str, ColumnElement[bool]] = {
    TABLE: or_(_COLUMNS.iceberg_type == TABLE, _COLUMNS.iceberg_type.is_(None)),
    VIEW: _COLUMNS.iceberg_type == VIEW,
}
_KIND_OF = select(_COLUMNS.iceberg_type, _COLUMNS.table_name).where(_THIS)
_FIND = {kind: select(_COLUMNS.metadata_location).where(_THIS, of) for kind, of in _OF_KIND.items()}
_STANDING = {
    kind: update(iceberg_tables).where(_THIS, of, _COLUMNS.metadata_location == bindparam("old"))
    for kind, of in _OF_KIND.items()
}
_REGISTER = {
    "sqlite": sqlite.insert(iceberg_tables).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(iceberg_tables).on_conflict_do_nothing(),
}
_HOLD = {kind: row.values(metadata_location=bindparam("old")) for kind, row in _STANDING.items()}
_SWAP = {
    kind: row.values(metadata_location=bindparam("new"), previous_metadata_location=bindparam("old"))
    for kind, row in _STANDING.items()
}


def find(connection: Connection, identifier: Identifier, kind: str) -> str | None:
    """The metadata location of a table or a view, or None where there is none."""
    return connection.execute(_FIND[kind], identifier.key).scalar()


def get(connection: Connection, identifier: Identifier, kind: str) -> str:
    """The metadata location; an error where there is none."""
    location = find(connection, identifier, kind)
    if location is None:
        raise missing(identifier, kind)
    return location


def missing(identifier: Identifier, kind: str) -> NoSuchTable | NoSuchView:
    """The error that says there is none, in Iceberg's words."""
    if kind == VIEW:
        return NoSuchView(f"View does not exist: {identifier}")
    return NoSuchTable(f"Table does not exist: {identifier}")


def kind_of(connection: Connection, identifier: Identifier) -> str | None:
    """Whether a name is a table's or a view's, or free."""
    found = connection.execute(_KIND_OF, identifier.key).first()
    return None if found is None else found[0] or TABLE


def refuse_taken(connection: Connection, identifier: Identifier, asked: str) -> None:
    """Raise if the name is a table's or a view's."""
    kind = kind_of(connection, identifier)
    if kind is not None:
        raise taken(identifier, kind, asked)


def taken(identifier: Identifier, kind: str, asked: str) -> AlreadyExists:
    """The error that says the name is taken, in Iceberg's words."""
    same = "" if kind == asked else " with same name"
    return AlreadyExists(f"{_KIND[kind]}{same} already exists: {identifier}")


def register(connection: Connection, identifier: Identifier, kind: str, location: str) -> None:
    """Make a name point at its first metadata file. Of several that try at once, one does, and the others get AlreadyExists.

    This insert is the one gate through which a table becomes visible.
    """
    row = {**identifier.row, "metadata_location": location, "iceberg_type": kind}
    if connection.execute(_REGISTER[connection.dialect.name], row).rowcount != 1:
        raise taken(identifier, kind_of(connection, identifier) or kind, kind)


def swap(connection: Connection, identifier: Identifier, kind: str, old: str, new: str) -> bool:
    """Compare and swap: point at `new` if the name still points at `old`. False if another commit was first."""
    return connection.execute(_SWAP[kind], {**identifier.key, "old": old, "new": new}).rowcount == 1


def hold(connection: Connection, identifier: Identifier, kind: str, location: str) -> bool:
    """As `swap` with nothing to change: True if the name still points there, and does until this transaction ends."""
    return connection.execute(_HOLD[kind], {**identifier.key, "old": location}).rowcount == 1


def remove(connection: Connection, identifier: Identifier, kind: str, location: str | None = None) -> bool:
    """Take the name away; with `location` only if it still points there."""
    gone = delete(iceberg_tables).where(_THIS, _OF_KIND[kind])
    if location is not None:
        gone = gone.where(_COLUMNS.metadata_location == location)
    return connection.execute(gone, identifier.key).rowcount == 1


def rename(connection: Connection, source: Identifier, target: Identifier, kind: str) -> None:
    """Give a table or a view another name, in any namespace."""
    if kind_of(connection, source) not in (kind,):
        raise missing(source, kind)
    if source == target:
        return
    if (held := kind_of(connection, target)) is not None:
        raise AlreadyExists(f"Cannot rename {source} to {target}. {_KIND[held]} already exists")
    change = update(iceberg_tables).where(_THIS, _OF_KIND[kind]).values(target.row)
    try:
        if connection.execute(change, source.key).rowcount != 1:
            raise missing(source, kind)
    except IntegrityError as error:
        raise AlreadyExists(f"Cannot rename {source} to {target}. {_KIND[kind]} already exists") from error


def names(
    connection: Connection, catalog: str, namespace: Namespace, kind: str, after: str | None, limit: int | None
) -> list[str]:
    """The names in a namespace in order, those that follow `after`, `limit` of them at most."""
    query = (
        select(_COLUMNS.table_name)
        .where(
            _COLUMNS.catalog_name == catalog, _COLUMNS.table_namespace == stored_namespace(namespace), _OF_KIND[kind]
        )
        .order_by(_COLUMNS.table_name)
    )
    if after is not None:
        query = query.where(_COLUMNS.table_name > after)
    return [row[0] for row in connection.execute(query.limit(limit) if limit is not None else query)]
