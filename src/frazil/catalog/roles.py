"""Roles: named bundles of grants, held by principals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, insert, select

from frazil.catalog.access_tables import grants, principal_roles, principals, roles
from frazil.catalog.database import Database
from frazil.catalog.naming import namespace_from_stored, stored_namespace
from frazil.catalog.privileges import Place, Privilege
from frazil.errors import BadInput


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One privilege of one role on one place."""

    role: str
    privilege: Privilege
    place: Place


class Roles:
    """The roles of one database, and what they are granted in the catalog of this name."""

    def __init__(self, database: Database, catalog: str) -> None:
        self._database = database
        self._catalog = catalog

    def add(self, name: str) -> None:
        """Make a role."""
        if not name or len(name) > 255 or not name.isprintable():
            raise BadInput(f"{name!r} cannot be a name; use up to 255 printable signs")

        def work(connection: Connection) -> None:
            if _role_exists(connection, name):
                raise BadInput(f"there is a role {name} already")
            connection.execute(insert(roles).values(name=name))

        self._database.write(work)

    def remove(self, name: str) -> None:
        """Remove a role, with its grants in every catalog of the database; whoever held it holds it no more."""

        def work(connection: Connection) -> None:
            _require_role(connection, name)
            connection.execute(delete(grants).where(grants.c.role == name))
            connection.execute(delete(principal_roles).where(principal_roles.c.role == name))
            connection.execute(delete(roles).where(roles.c.name == name))

        self._database.write(work)

    def all(self) -> dict[str, tuple[str, ...]]:
        """Every role, with the principals that hold it."""
        with self._database.read() as connection:
            names = connection.scalars(select(roles.c.name).order_by(roles.c.name)).all()
            held = connection.execute(select(principal_roles).order_by(principal_roles.c.principal)).all()
        return {name: tuple(principal for principal, role in held if role == name) for name in names}

    def assign(self, role: str, principal: str) -> None:
        """Let a principal hold a role; one that it holds already stays held."""

        def work(connection: Connection) -> None:
            if connection.scalar(select(principals.c.name).where(principals.c.name == principal)) is None:
                raise BadInput(f"there is no principal {principal}; `frazil catalog principal list` names them")
            give_roles(connection, principal, (role,))

        self._database.write(work)

    def withdraw(self, role: str, principal: str) -> None:
        """Take a role from a principal."""
        held = (principal_roles.c.principal == principal) & (principal_roles.c.role == role)
        gone = self._database.write(lambda connection: connection.execute(delete(principal_roles).where(held)).rowcount)
        if not gone:
            raise BadInput(f"{principal} does not hold the role {role}")

    def grant(self, grant: Grant) -> None:
        """Grant it; one that is granted already stays so. The place need not exist: a grant is about a name."""
        row = self._row(grant)

        def work(connection: Connection) -> None:
            _require_role(connection, grant.role)
            if connection.execute(select(grants).filter_by(**row)).first() is None:
                connection.execute(insert(grants).values(**row))

        self._database.write(work)

    def revoke(self, grant: Grant) -> None:
        """Take it back."""
        row = self._row(grant)
        gone = self._database.write(lambda connection: connection.execute(delete(grants).filter_by(**row)).rowcount)
        if not gone:
            raise BadInput(f"the role {grant.role} is not granted {grant.privilege} on the {grant.place}")

    def grants(self) -> list[Grant]:
        """Everything granted in this catalog."""
        with self._database.read() as connection:
            rows = connection.execute(granted(self._catalog)).all()
        return [Grant(role, *granted_place(privilege, namespace, name)) for role, privilege, namespace, name in rows]

    def _row(self, grant: Grant) -> dict[str, str]:
        return {
            "role": grant.role,
            "catalog_name": self._catalog,
            "privilege": str(grant.privilege),
            "namespace": stored_namespace(grant.place.namespace),
            "object_name": grant.place.name or "",
        }


def give_roles(connection: Connection, principal: str, names: Iterable[str]) -> None:
    """Within a transaction: let a principal hold these roles, which must exist."""
    held = set(connection.scalars(select(principal_roles.c.role).where(principal_roles.c.principal == principal)))
    for name in dict.fromkeys(names):
        _require_role(connection, name)
        if name not in held:
            connection.execute(insert(principal_roles).values(principal=principal, role=name))


def granted(catalog: str) -> Select[str, str, str, str]:
    """The query for the grants of a catalog: role, privilege, namespace, name of a table or view."""
    columns = grants.c
    chosen = select(columns.role, columns.privilege, columns.namespace, columns.object_name)
    return chosen.where(columns.catalog_name == catalog).order_by(*chosen.selected_columns)


def granted_place(privilege: str, namespace: str, name: str) -> tuple[Privilege, Place]:
    """What a row of that query means."""
    return Privilege(privilege), Place(namespace_from_stored(namespace) if namespace else (), name or None)


def _role_exists(connection: Connection, name: str) -> bool:
    return connection.scalar(select(roles.c.name).where(roles.c.name == name)) is not None


def _require_role(connection: Connection, name: str) -> None:
    if not _role_exists(connection, name):
        raise BadInput(f"there is no role {name}; make it with `frazil catalog role add {name}`")
