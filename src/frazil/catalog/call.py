"""One request as the handlers see it, and the replies they give."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import orjson
from sqlalchemy import Connection
from starlette.datastructures import Headers
from starlette.responses import Response

from frazil.catalog import idempotency
from frazil.catalog.backend import Backend
from frazil.catalog.document import Document, as_object
from frazil.catalog.errors import CatalogError, InvalidRequest
from frazil.catalog.idempotency import Recorded
from frazil.catalog.naming import (
    Namespace,
    checked_name,
    decode_namespace,
    decode_segment,
    namespace_from_query,
)
from frazil.catalog.pointers import Identifier

Result = TypeVar("Result")

IDEMPOTENCY_KEY = "idempotency-key"


@dataclass
class Call:
    """A request, read completely. Handlers run in threads, so nothing here awaits."""

    backend: Backend
    operation: str
    raw_path: str
    segments: Mapping[str, str]
    raw_query: str
    headers: Headers
    body: bytes
    principal: Any = None
    endpoints: tuple[str, ...] = ()
    inline: bool = False
    """Whether the handler runs in the thread that serves everybody, and so must not wait for storage."""

    @cached_property
    def namespace(self) -> Namespace:
        """The namespace in the path."""
        return decode_namespace(self.segments["namespace"], self.backend.settings.namespace_separator)

    def name(self, what: str) -> str:
        """The name of a table or a view in the path."""
        return checked_name(decode_segment(self.segments[what]), what)

    def identifier(self, what: str) -> Identifier:
        """The table or view in the path."""
        return self.identify(self.namespace, self.name(what))

    def identify(self, namespace: Namespace, name: str) -> Identifier:
        """A table or view of this catalog."""
        return Identifier(self.backend.settings.name, namespace, name)

    @cached_property
    def query(self) -> dict[str, str]:
        """The query parameters; of one that comes twice the first counts."""
        try:
            pairs = parse_qsl(self.raw_query, keep_blank_values=True, errors="strict")
        except ValueError as error:
            raise InvalidRequest("Cannot decode the query: it is not UTF-8") from error
        return dict(reversed(pairs))

    def query_namespace(self, name: str) -> Namespace:
        """A query parameter that is a namespace; empty or missing is the root."""
        value = self.query.get(name)
        return namespace_from_query(value, self.backend.settings.namespace_separator) if value else ()

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false, and false when missing."""
        value = self.query.get(name, "false").lower()
        if value not in ("true", "false"):
            raise InvalidRequest(f"Invalid query parameter {name}: {value} is neither true nor false")
        return value == "true"

    @cached_property
    def document(self) -> Document:
        """The body, which must be a JSON object."""
        try:
            parsed = orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise InvalidRequest(f"Cannot parse the request body as JSON: {error}") from error
        return as_object(parsed, "request body")

    def authorize(
        self, namespace: Namespace | None = None, name: str | None = None, operation: str | None = None
    ) -> None:
        """Raise `Forbidden` unless the caller may do this to that."""
        self.backend.authorizer.check(self.principal, operation or self.operation, namespace, name)

    def sees(self, namespace: Namespace, name: str | None = None) -> bool:
        """Whether a list for the caller holds this."""
        return self.backend.authorizer.may_see(self.principal, namespace, name)

    @cached_property
    def idempotency_key(self) -> str | None:
        """The client's key for this request, or None."""
        value = self.headers.get(IDEMPOTENCY_KEY)
        if value is None:
            return None
        try:
            return str(uuid.UUID(value)) if len(value) == 36 else _not_a_key(value)
        except ValueError:
            return _not_a_key(value)

    @property
    def fingerprint(self) -> str:
        """What a key was first used for: it must not come again for anything else, or from anybody else."""
        return idempotency.fingerprint(self.operation, self.raw_path, repr(self.principal))

    def write(self, work: Callable[[Connection], Result], recorded: Recorded | Callable[[Result], Recorded]) -> Result:
        """Run `work` in one transaction, and with it note the reply under the client's key, if it sent one."""

        def noted(connection: Connection) -> Result:
            result = work(connection)
            if self.idempotency_key is not None:
                reply = recorded(result) if callable(recorded) else recorded
                self._note(connection, self.idempotency_key, reply)
            return result

        return self.backend.database.write(noted)

    def note_error(self, error: CatalogError) -> None:
        """Note a refusal under the client's key, so that a retry hears the same."""
        if self.idempotency_key is not None and error.status in idempotency.TERMINAL:
            recorded = Recorded(error.status, orjson.dumps(error.to_document()))
            key = self.idempotency_key
            self.backend.database.write(lambda connection: self._note(connection, key, recorded))

    def _note(self, connection: Connection, key: str, recorded: Recorded) -> None:
        catalog, now = self.backend.settings.name, self.backend.clock_ms()
        idempotency.note(connection, catalog, key, self.fingerprint, recorded, now)


def _not_a_key(value: str) -> str:
    raise InvalidRequest(f"Invalid Idempotency-Key: {value[:80]} is not a UUID")


class JsonReply(Response):
    """A reply whose body is JSON already."""

    media_type = "application/json"


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A reply of a document."""
    return JsonReply(orjson.dumps(document), status, headers)


def no_content() -> Response:
    """Done, and nothing to say."""
    return Response(status_code=204)


# Of these the document has the error as the whole body, where its own examples and every client have it in `error`.
_BARE_ERRORS: Final = {
    "listViews": {404},
    "createView": {404, 409},
    "loadView": {404},
    "replaceView": {404, 409, 500, 502, 504},
    "dropView": {404},
    "renameView": {404, 409},
}


def error_reply(error: CatalogError, operation: str | None = None) -> Response:
    """The Iceberg error body; and the error bare beside it where the document says so of the operation."""
    body = error.to_document()
    if error.status in _BARE_ERRORS.get(operation or "", ()):
        body |= body["error"]
    return reply(body, error.status)
