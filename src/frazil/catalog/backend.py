"""What the handlers stand on: the settings, the database and the metadata files, handed in together."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from frazil.catalog.access import AllowAll, Authorizer, NoVendor, Vendor
from frazil.catalog.database import Database
from frazil.catalog.metadata_store import MetadataStore
from frazil.catalog.settings import ServerSettings
from frazil.catalog.storage import Storage
from frazil.catalog.turns import Turns


def now_ms() -> int:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def new_uuid() -> str:
    """A random uuid as text."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Backend:
    """One open catalog. Time and ids are handed in, so that tests need not wait for either."""

    settings: ServerSettings
    database: Database
    store: MetadataStore
    turns: Turns = field(default_factory=Turns)
    authorizer: Authorizer = field(default_factory=AllowAll)
    vendor: Vendor = field(default_factory=NoVendor)
    clock_ms: Callable[[], int] = field(default=now_ms)
    new_uuid: Callable[[], str] = field(default=new_uuid)

    @classmethod
    def open(cls, settings: ServerSettings) -> Backend:
        """Connect, bring the database to the newest schema, and give the whole."""
        storage = Storage(settings.storage)
        return cls(
            settings, Database(settings.database, settings.connections), MetadataStore(storage, settings.cache_bytes)
        )

    def close(self) -> None:
        """Finish what is under way."""
        self.database.close()
