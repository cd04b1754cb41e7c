"""The keys that sign Frazil's own tokens, kept in the database so that every process accepts what another has signed.

The newest key signs. Each still verifies until every token it may have signed is over; then it is removed.
"""

from __future__ import annotations

import secrets
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from frazil.catalog.access_tables import signing_keys
from frazil.catalog.database import Database


@dataclass(frozen=True, slots=True)
class SigningKey:
    """One key of HMAC-SHA-256."""

    key_id: str
    secret: bytes
    created_at_ms: int

    def __repr__(self) -> str:
        return f"SigningKey(key_id={self.key_id!r})"


class SigningKeys:
    """The keys as this process knows them. Thread-safe.

    A key signs for `signs_for_ms`. It verifies for that long and `tokens_last_ms` more.
    """

    def __init__(
        self, database: Database, clock_ms: Callable[[], int], *, signs_for_ms: int, tokens_last_ms: int
    ) -> None:
        self._database = database
        self._clock_ms = clock_ms
        self._signs_for_ms = signs_for_ms
        self._verifies_for_ms = signs_for_ms + tokens_last_ms
        self._lock = threading.Lock()
        self._known: dict[str, SigningKey] = {}

    def current(self) -> SigningKey:
        """The key to sign with; made if there is none that is young enough."""
        with self._lock:
            found = self._young_key()
            if found is None:
                self._load()
                found = self._young_key() or self._make()
            return found

    def find(self, key_id: str) -> SigningKey | None:
        """The key of this id, if tokens signed with it may still count."""
        with self._lock:
            if key_id not in self._known:
                self._load()
            key = self._known.get(key_id)
        return key if key and self._clock_ms() < key.created_at_ms + self._verifies_for_ms else None

    def _young_key(self) -> SigningKey | None:
        oldest = self._clock_ms() - self._signs_for_ms
        young = [key for key in self._known.values() if key.created_at_ms > oldest]
        return max(young, key=lambda key: (key.created_at_ms, key.key_id), default=None)

    def _load(self) -> None:
        with self._database.read() as connection:
            rows = connection.execute(select(signing_keys)).all()
        self._known = {row.key_id: SigningKey(row.key_id, row.secret, row.created_at_ms) for row in rows}

    def _make(self) -> SigningKey:
        """Two processes may do so at once: then there are two keys, and both count."""
        now = self._clock_ms()
        key = SigningKey(str(uuid.uuid4()), secrets.token_bytes(32), now)

        def work(connection: Connection) -> None:
            over = signing_keys.c.created_at_ms <= now - self._verifies_for_ms
            connection.execute(delete(signing_keys).where(over))
            connection.execute(
                insert(signing_keys).values(key_id=key.key_id, secret=key.secret, created_at_ms=key.created_at_ms)
            )

        self._database.write(work)
        self._known = {**self._known, key.key_id: key}
        return key
