"""Idempotency keys: a request that comes again under its key has no further effect and hears the same reply.

The key is noted in the transaction that changes the catalog, so it is known exactly when the change is. Replies that hold a
table's metadata are noted by the metadata's location, for the file at it never changes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from frazil.catalog.database_tables import idempotency_keys
from frazil.catalog.errors import InvalidRequest

TERMINAL: Final = {400, 404, 406, 409, 422}
"""The statuses of refusals that a retry would meet again."""

_COLUMNS = idempotency_keys.c


class KeyUsed(Exception):
    """Another request with this key was first; its reply is the one to give."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A reply: its body, or the metadata that its body shows."""

    status: int
    content: bytes | None = None
    metadata_location: str | None = None


def fingerprint(operation: str, path: str, principal: str) -> str:
    """What tells one use of a key from another."""
    digest = hashlib.sha256(f"{path}\n{principal}".encode()).hexdigest()[:24]
    return f"{operation[:39]}:{digest}"


def note(connection: Connection, catalog: str, key: str, operation: str, recorded: Recorded, at_ms: int) -> None:
    """Note a reply. Raises `KeyUsed` if the key has one."""
    row = {
        "catalog_name": catalog,
        "idempotency_key": key,
        "operation": operation,
        "status": recorded.status,
        "content": None if recorded.content is None else recorded.content.decode(),
        "metadata_location": recorded.metadata_location,
        "created_at_ms": at_ms,
    }
    try:
        connection.execute(insert(idempotency_keys).values(row))
    except IntegrityError as error:
        raise KeyUsed(key) from error


def find(connection: Connection, catalog: str, key: str, operation: str) -> Recorded | None:
    """The reply noted under a key; a key that was used for something else is refused."""
    query = select(_COLUMNS.operation, _COLUMNS.status, _COLUMNS.content, _COLUMNS.metadata_location)
    row = connection.execute(query.where(_COLUMNS.catalog_name == catalog, _COLUMNS.idempotency_key == key)).first()
    if row is None:
        return None
    if row[0] != operation:
        raise InvalidRequest(f"Idempotency-Key {key} was used for another request; make a new one for each")
    return Recorded(row[1], None if row[2] is None else row[2].encode(), row[3])


def forget_before(connection: Connection, at_ms: int) -> int:
    """Remove what is older. Returns how many keys were."""
    return connection.execute(delete(idempotency_keys).where(_COLUMNS.created_at_ms < at_ms)).rowcount
