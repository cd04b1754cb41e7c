"""What the server asks of whoever guards it: who is calling, may they, and with which credentials for the storage.

The defaults are the server without authentication: everybody may do everything and brings credentials of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from frazil.catalog.document import Document
from frazil.catalog.naming import Namespace

PRINCIPAL = "frazil.principal"
"""The key of the ASGI scope under which a middleware leaves the principal it has authenticated."""


class Authorizer(Protocol):
    """Decides over every request, before anything is read or changed for it."""

    def check(self, principal: Any, operation: str, namespace: Namespace | None, name: str | None) -> None:
        """Return if allowed, raise `Forbidden` otherwise.

        `operation` is the operationId of the OpenAPI document. A request that touches several things (a rename, a
        transaction, the finalising of a staged create) is checked once for each, under the operation it amounts to.
        """

    def may_see(self, principal: Any, namespace: Namespace, name: str | None = None) -> bool:
        """Whether a list holds this namespace, table or view."""


class AllowAll:
    """No authentication: everybody may do everything."""

    def check(self, *_: Any) -> None:
        """Allowed."""

    def may_see(self, *_about: object) -> bool:
        """Everything."""
        return True


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """What a client is given beside the metadata, to reach the files."""

    config: Mapping[str, str] = field(default_factory=dict)
    credentials: tuple[Document, ...] = ()
    remote_signing: Document | None = None

    def to_document(self) -> Document:
        """The fields of a LoadTableResult."""
        document: Document = {"config": dict(self.config)}
        if self.credentials:
            document["storage-credentials"] = list(self.credentials)
        if self.remote_signing is not None:
            document["remote-signing-config"] = self.remote_signing
        return document


class Vendor(Protocol):
    """Gives out access to the files of a table. `waits`: it may have to ask somebody first."""

    @property
    def waits(self) -> bool:
        """Whether `access` must not be called in the thread that serves everybody."""

    def access(self, principal: Any, delegation: str | None, location: str, metadata: Document) -> StorageAccess:
        """For a table's metadata and the value of `X-Iceberg-Access-Delegation`. Called for each reply with metadata."""


class NoVendor:
    """Clients bring credentials of their own."""

    waits = False

    def access(self, *_: Any) -> StorageAccess:
        """Nothing to add."""
        return NOTHING


NOTHING = StorageAccess()
