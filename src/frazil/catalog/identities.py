"""Who is calling, and what they hold. Looked up in the database, and remembered for a moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from frazil.catalog.access_tables import principal_roles, principals
from frazil.catalog.database import Database
from frazil.catalog.errors import NotAuthorized
from frazil.catalog.oidc import ExternalClaims
from frazil.catalog.privileges import EVERYTHING, Privileges
from frazil.catalog.roles import granted, granted_place
from frazil.catalog.tokens import Claims

_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller of a request. Two requests of one caller have the same `name`, and nobody else has it."""

    name: str
    privileges: Privileges

    def __repr__(self) -> str:
        return self.name


ANONYMOUS: Final = Identity("anonymous", EVERYTHING)
"""Everybody, on a server without authentication."""


class Identities:
    """Turns what a token says into an identity. A change in the database counts after `remember_ms` at the latest."""

    def __init__(self, database: Database, catalog: str, clock_ms: Callable[[], int], *, remember_ms: int) -> None:
        self._database = database
        self._catalog = catalog
        self._clock_ms = clock_ms
        self._remember_ms = remember_ms
        self._lock = threading.Lock()
        self._remembered: dict[Claims | ExternalClaims, tuple[int, Identity]] = {}

    def remembered(self, claims: Claims | ExternalClaims) -> Identity | None:
        """The identity if it has been looked up just now; never waits."""
        known = self._remembered.get(claims)
        return known[1] if known and 0 <= self._clock_ms() - known[0] < self._remember_ms else None

    def find(self, claims: Claims | ExternalClaims) -> Identity:
        """The identity. Raises `NotAuthorized` when the principal is gone or its secret has changed since."""
        found = self.remembered(claims)
        if found is None:
            looked_at = self._clock_ms()
            with self._database.read() as connection:
                found = (
                    self._own(connection, claims) if isinstance(claims, Claims) else self._external(connection, claims)
                )
            with self._lock:
                if len(self._remembered) >= _MOST:
                    self._remembered.clear()
                self._remembered[claims] = (looked_at, found)
        return found

    def _own(self, connection: Connection, claims: Claims) -> Identity:
        version = select(principals.c.secret_version).where(principals.c.name == claims.principal)
        if connection.scalar(version) != claims.secret_version:
            raise NotAuthorized("The token is void: its principal was removed, or has a new secret")
        return Identity(claims.principal, self._privileges(connection, _roles_of(connection, claims.principal)))

    def _external(self, connection: Connection, claims: ExternalClaims) -> Identity:
        """The principal kept for this subject, if there is one, and the roles that the token itself names."""
        name = connection.scalar(select(principals.c.name).where(principals.c.subject == claims.subject))
        roles = {*claims.roles, *(_roles_of(connection, name) if name else ())}
        return Identity(name or f"external:{claims.subject}", self._privileges(connection, roles))

    def _privileges(self, connection: Connection, roles: Iterable[str]) -> Privileges:
        query = granted(self._catalog)
        rows = connection.execute(query.where(query.selected_columns.role.in_(list(roles)))).all()
        return Privileges(granted_place(privilege, namespace, name) for _, privilege, namespace, name in rows)


def _roles_of(connection: Connection, principal: str) -> list[str]:
    return list(connection.scalars(select(principal_roles.c.role).where(principal_roles.c.principal == principal)))
