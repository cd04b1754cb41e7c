"""How clients reach the files of a table without keys of their own: vended credentials, or requests signed by the server.

Both are given for what this request was authorised for, and for no more: to write only to those who may write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from frazil.catalog import pointers, staged
from frazil.catalog.access import NOTHING, StorageAccess
from frazil.catalog.authorization import Grants
from frazil.catalog.call import Call, reply
from frazil.catalog.caller import Caller, Touch
from frazil.catalog.database_tables import TABLE
from frazil.catalog.document import Document
from frazil.catalog.endpoints import Endpoint
from frazil.catalog.errors import Forbidden, NoSuchTable
from frazil.catalog.locations import lies_in
from frazil.catalog.naming import Namespace
from frazil.catalog.s3_credentials import CredentialSource, S3Store
from frazil.catalog.s3_places import S3Place, folders_of
from frazil.catalog.s3_signing import Signer, SignRequest

VENDED: Final = "vended-credentials"
SIGNING: Final = "remote-signing"
_TABLE: Final = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"


@dataclass(frozen=True, slots=True)
class Delegation:
    """The server's `Vendor`, and the endpoints that go with it. What is not configured is not offered."""

    prefix: str
    roots: tuple[str, ...]
    store: S3Store
    source: CredentialSource | None = None
    signer: Signer | None = None
    grants: Grants = field(default_factory=Grants)

    @property
    def waits(self) -> bool:
        """STS is far away."""
        return self.source is not None

    def access(self, principal: Any, delegation: str | None, _location: str, metadata: Document) -> StorageAccess:
        """What goes into a reply with this metadata: of the ways that the client asks for, the first that is offered."""
        if delegation is None or (self.source is None and self.signer is None):
            return NOTHING
        asked = [each.strip().lower() for each in delegation.split(",")]
        folders = self._folders(metadata)
        touch = _first_touch(principal)
        if not folders or touch is None or touch.place.name is None:
            return NOTHING
        if self.source is not None and VENDED in asked:
            return self._vended(self.source, principal, touch, folders)
        if self.signer is not None and SIGNING in asked:
            return self._signing(touch)
        return NOTHING

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints that are served, each only where it can do its work."""
        offered = []
        if self.source is not None:
            offered.append(Endpoint("GET", f"{_TABLE}/credentials", "loadCredentials", self.load_credentials))
        if self.signer is not None:
            offered.append(Endpoint("POST", f"{_TABLE}/sign", "signRequest", self.sign_request))
        return tuple(offered)

    def load_credentials(self, call: Call) -> Response:
        """Fresh credentials for a table that was loaded before."""
        identifier = call.identifier("table")
        call.authorize(identifier.namespace, identifier.name)
        (metadata,) = _documents(call, staged_too=False)
        access = self.access(call.principal, VENDED, "", metadata)
        return reply({"storage-credentials": list(access.credentials)}, headers={"cache-control": "no-store"})

    def sign_request(self, call: Call) -> Response:
        """One request to the object store, signed. To change files is to write; before a table is there, to create it."""
        assert self.signer is not None
        identifier, request = call.identifier("table"), SignRequest.parse(call.document)
        if request.writes and not self.grants.may_write(call.principal, identifier.namespace, identifier.name):
            call.authorize(identifier.namespace, identifier.name, "createTable")
            documents = _staged_documents(call)
        else:
            call.authorize(identifier.namespace, identifier.name)
            documents = _documents(call, staged_too=True)
        folders = [folder for document in documents for folder in self._folders(document)]
        return reply(self.signer.sign(request, folders))

    def _folders(self, metadata: Document) -> tuple[S3Place, ...]:
        """The table's own. One that another program has put outside the warehouse is not ours to give."""
        return tuple(each for each in folders_of(metadata) if lies_in(each.location, self.roots))

    def _vended(
        self, source: CredentialSource, principal: Any, touch: Touch, folders: tuple[S3Place, ...]
    ) -> StorageAccess:
        place = touch.place
        writes = touch.operation == "createTable" or self.grants.may_write(principal, place.namespace, str(place.name))
        found = source.credentials(repr(principal), folders, writes=writes).to_config()
        refresh = {"client.refresh-credentials-endpoint": self._path(touch, "credentials")}
        return StorageAccess(
            config={**self._client(), **found, **refresh},
            credentials=tuple({"prefix": each.location, "config": {**found, **refresh}} for each in folders),
        )

    def _signing(self, touch: Touch) -> StorageAccess:
        """In the words of the document, and in those of clients that are older than it."""
        path = self._path(touch, "sign")
        config = {
            "s3.remote-signing-enabled": "true",
            "s3.signer": "S3V4RestSigner",
            "s3.signer.endpoint": path,
            "signer.endpoint": path,
        }
        return StorageAccess(config={**self._client(), **config}, remote_signing={"properties": {}, "headers": {}})

    def _client(self) -> dict[str, str]:
        """How a client finds the store."""
        found = {"client.region": self.store.region, "s3.region": self.store.region}
        return found | (
            {"s3.endpoint": self.store.endpoint, "s3.path-style-access": "true"} if self.store.endpoint else {}
        )

    def _path(self, touch: Touch, verb: str) -> str:
        """A path that clients resolve against the address of the catalog."""
        name = quote(str(touch.place.name), safe="")
        return f"v1/{quote(self.prefix, safe='')}/namespaces/{_in_path(touch.place.namespace)}/tables/{name}/{verb}"


def _in_path(namespace: Namespace) -> str:
    return "%1F".join(quote(level, safe="") for level in namespace)


def _first_touch(principal: Any) -> Touch | None:
    """What the request was authorised for. A reply that is replayed was authorised for nothing, and gives nothing out."""
    return principal.touched[0] if isinstance(principal, Caller) and principal.touched else None


def _documents(call: Call, *, staged_too: bool) -> list[Document]:
    """The metadata of the table in the path; where there is none, of what is staged under its name."""
    identifier = call.identifier("table")
    with call.backend.database.read() as connection:
        location = pointers.find(connection, identifier, TABLE)
    if location is not None:
        return [call.backend.store.load(location).metadata]
    if staged_too:
        return _staged_documents(call)
    raise NoSuchTable(f"Table does not exist: {identifier}")


def _staged_documents(call: Call) -> list[Document]:
    identifier = call.identifier("table")
    found = staged.locations(call.backend, identifier)
    if not found:
        raise Forbidden(f"Cannot sign the request: {call.principal!r} may not write files of {identifier}")
    return [call.backend.store.load(location).metadata for location in found]
