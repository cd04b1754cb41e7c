"""Principals: who may get a token, kept in the database with a hash of their secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from frazil.catalog.access_tables import principal_roles, principals
from frazil.catalog.client_secrets import hash_secret, new_client_id, new_secret, secret_matches
from frazil.catalog.database import Database
from frazil.catalog.roles import give_roles
from frazil.errors import BadInput


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody: with a client id of ours, or known by the subject of another issuer's tokens."""

    name: str
    client_id: str | None
    subject: str | None
    secret_version: int
    created_at_ms: int
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Credential:
    """What a client is configured with. The secret is shown when it is made and cannot be read again."""

    client_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Credential(client_id={self.client_id!r})"

    def __str__(self) -> str:
        return f"{self.client_id}:{self.secret}"


class Principals:
    """The principals of one database. Every change is one transaction."""

    def __init__(self, database: Database, clock_ms: Callable[[], int]) -> None:
        self._database = database
        self._clock_ms = clock_ms

    def add(self, name: str, roles: tuple[str, ...] = ()) -> Credential:
        """Make a principal that gets its tokens here."""
        credential = Credential(new_client_id(), new_secret())
        row = {"client_id": credential.client_id, "secret_hash": hash_secret(credential.secret)}
        self._database.write(lambda connection: self._insert(connection, name, roles, row))
        return credential

    def add_external(self, name: str, subject: str, roles: tuple[str, ...] = ()) -> None:
        """Make a principal whose tokens come from the external issuer, under this subject."""

        def work(connection: Connection) -> None:
            taken = connection.scalar(select(principals.c.name).where(principals.c.subject == subject))
            if taken is not None:
                raise BadInput(f"the subject {subject} is the principal {taken} already")
            self._insert(connection, name, roles, {"subject": subject})

        self._database.write(work)

    def rotate(self, name: str) -> Credential:
        """Give a principal a new secret. The old one and every token made for it are void from now on."""
        secret = new_secret()
        hashed = hash_secret(secret)

        def work(connection: Connection) -> str:
            client_id = _row(connection, name)["client_id"]
            if client_id is None:
                raise BadInput(f"the principal {name} gets its tokens from the external issuer: it has no secret here")
            version = principals.c.secret_version + 1
            changed = update(principals).where(principals.c.name == name)
            connection.execute(changed.values(secret_hash=hashed, secret_version=version))
            return str(client_id)

        return Credential(self._database.write(work), secret)

    def remove(self, name: str) -> None:
        """Remove a principal; its tokens are void."""

        def work(connection: Connection) -> None:
            _row(connection, name)
            connection.execute(delete(principal_roles).where(principal_roles.c.principal == name))
            connection.execute(delete(principals).where(principals.c.name == name))

        self._database.write(work)

    def all(self) -> list[Principal]:
        """All of them, by name."""
        with self._database.read() as connection:
            found = connection.execute(select(principals).order_by(principals.c.name)).mappings().all()
            held = connection.execute(select(principal_roles).order_by(principal_roles.c.role)).all()
        by_name: dict[str, list[str]] = {}
        for name, role in held:
            by_name.setdefault(name, []).append(role)
        return [_principal(row, tuple(by_name.get(row["name"], ()))) for row in found]

    def authenticate(self, client_id: str, secret: str) -> Principal | None:
        """The principal with this client id, if this is its secret."""
        with self._database.read() as connection:
            row = connection.execute(select(principals).where(principals.c.client_id == client_id)).mappings().first()
        matches = secret_matches(secret, row["secret_hash"] if row else None)
        return _principal(row) if row and matches else None

    def _insert(self, connection: Connection, name: str, roles: tuple[str, ...], row: dict[str, str]) -> None:
        _check_name(name)
        if connection.scalar(select(principals.c.name).where(principals.c.name == name)) is not None:
            raise BadInput(f"there is a principal {name} already; remove it, or rotate its secret")
        connection.execute(
            insert(principals).values(name=name, secret_version=1, created_at_ms=self._clock_ms(), **row)
        )
        give_roles(connection, name, roles)


def _check_name(name: str) -> None:
    if not name or len(name) > 255 or not name.isprintable():
        raise BadInput(f"{name!r} cannot be a name; use up to 255 printable signs")


def _row(connection: Connection, name: str) -> RowMapping:
    row = connection.execute(select(principals).where(principals.c.name == name)).mappings().first()
    if row is None:
        raise BadInput(f"there is no principal {name}; `frazil catalog principal list` names them")
    return row


def _principal(row: RowMapping, roles: tuple[str, ...] = ()) -> Principal:
    return Principal(
        name=row["name"],
        client_id=row["client_id"],
        subject=row["subject"],
        secret_version=row["secret_version"],
        created_at_ms=row["created_at_ms"],
        roles=roles,
    )
