"""Remote signing: the catalog signs one request to the object store, if it is about the table and allowed.

The client never holds a key. What is signed is exactly what was checked: the host is the URI's own, the body of a request to
delete is bound to the signature by its hash, and a parameter or header that is not known to be harmless is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree

from botocore.auth import UNSIGNED_PAYLOAD, S3SigV4Auth
from botocore.awsrequest import AWSRequest

from frazil.catalog.document import Document, read_object, read_optional_string, read_string
from frazil.catalog.errors import Forbidden, InvalidRequest, ServiceUnavailable
from frazil.catalog.s3_credentials import S3Store
from frazil.catalog.s3_places import S3Endpoint, S3Place, holding

_HARMLESS: Final[dict[str, frozenset[str]]] = {
    "GET": frozenset({"x-id", "partNumber", "versionId"}),
    "HEAD": frozenset({"x-id", "partNumber", "versionId"}),
    "PUT": frozenset({"x-id", "partNumber", "uploadId"}),
    "POST": frozenset({"x-id", "uploads", "uploadId"}),
    "DELETE": frozenset({"x-id", "uploadId"}),
}
_LISTING: Final = frozenset(
    {
        "x-id", "list-type", "prefix", "delimiter", "continuation-token", "start-after", "max-keys", "encoding-type",
        "fetch-owner",
    }
)  # fmt: skip
_REFUSED_HEADERS: Final = re.compile(
    r"x-amz-(acl|grant-.*|bypass-governance-retention|object-lock-.*|website-redirect-location|expected-bucket-owner)"
)
_PAYLOAD: Final = re.compile(r"[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-UNSIGNED-PAYLOAD-TRAILER")
_NOT_SIGNED: Final = frozenset({"authorization", "host", "x-amz-date", "date", "x-amz-security-token"})
_MOST_DELETED: Final = 1000


@dataclass(frozen=True, slots=True)
class SignRequest:
    """The request that a client wants to send to the object store."""

    method: str
    uri: str
    region: str
    headers: Mapping[str, Sequence[str]]
    body: str | None

    @classmethod
    def parse(cls, document: Document) -> SignRequest:
        """Out of a RemoteSignRequest."""
        provider = read_optional_string(document, "provider") or "s3"
        if provider != "s3":
            raise InvalidRequest(f"Cannot sign the request: this server signs for s3, not for {provider[:40]}")
        headers = read_object(document, "headers")
        for name, values in headers.items():
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise InvalidRequest(f"Cannot sign the request: the header {name[:80]} is no list of texts")
        return cls(
            read_string(document, "method").upper(),
            read_string(document, "uri"),
            read_string(document, "region"),
            headers,
            read_optional_string(document, "body"),
        )

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the URI, none of them twice."""
        try:
            pairs = parse_qsl(urlsplit(self.uri).query, keep_blank_values=True, errors="strict")
        except ValueError as error:
            raise InvalidRequest("Cannot sign the request: its query is not UTF-8") from error
        if len(dict(pairs)) != len(pairs):
            raise InvalidRequest("Cannot sign the request: a parameter comes twice")
        return dict(pairs)

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method not in ("GET", "HEAD")


class Signer:
    """Checks and signs. Does not talk to the store."""

    def __init__(self, store: S3Store) -> None:
        self._store = store
        self._endpoint = S3Endpoint(store.endpoint)
        self._session = store.session()

    def sign(self, request: SignRequest, folders: Sequence[S3Place]) -> Document:
        """The RemoteSignResult. Raises `Forbidden` unless everything that the request is about lies in the folders."""
        place, query = self._endpoint.place_of(request.uri), request.query
        if not self._is_within(request, place, query, folders):
            raise Forbidden(
                f"Cannot sign the request: {request.method} {place.location} is not about the table's files"
            )
        self._check_headers(request, folders)
        return self._signed(request)

    def _is_within(
        self, request: SignRequest, place: S3Place, query: Mapping[str, str], folders: Sequence[S3Place]
    ) -> bool:
        if not place.key:
            if request.method == "GET" and query.keys() <= _LISTING:
                return holding(folders, S3Place(place.bucket, query.get("prefix", "")))
            if request.method == "POST" and query.keys() <= {"delete", "x-id"} and "delete" in query:
                return all(holding(folders, S3Place(place.bucket, key)) for key in _keys_to_delete(request.body))
            return False
        harmless = _HARMLESS.get(request.method)
        return harmless is not None and query.keys() <= harmless and holding(folders, place)

    def _check_headers(self, request: SignRequest, folders: Sequence[S3Place]) -> None:
        for name, values in request.headers.items():
            if _REFUSED_HEADERS.fullmatch(name.lower()):
                raise Forbidden(f"Cannot sign the request: the header {name} is not for clients to set")
            if name.lower() == "x-amz-copy-source":
                bucket, _, key = unquote("".join(values)).removeprefix("/").partition("/")
                if "?" in key or not holding(folders, S3Place(bucket, key)):
                    raise Forbidden("Cannot sign the request: it copies what is not of the table's files")

    def _signed(self, request: SignRequest) -> Document:
        credentials = self._session.get_credentials()
        if credentials is None:
            raise ServiceUnavailable("Cannot sign the request: this server has no key to the object store")
        signed = AWSRequest(request.method, request.uri)
        for name, values in request.headers.items():
            if name.lower() not in _NOT_SIGNED:
                for value in values:
                    signed.headers.add_header(name, value)
        _Signature(credentials.get_frozen_credentials(), request, self._store.region).add_auth(signed)
        headers: dict[str, list[str]] = {}
        for name, value in signed.headers.items():
            headers.setdefault(name, []).append(value)
        return {"uri": request.uri, "headers": headers}


class _Signature(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """Signs for a body that is not here: by the hash that the client sends along, or by the body that was checked."""

    def __init__(self, credentials: Any, request: SignRequest, region: str) -> None:
        super().__init__(credentials, "s3", request.region or region)
        given = next((values for name, values in request.headers.items() if name.lower() == "x-amz-content-sha256"), [])
        self._hash = given[0] if given and _PAYLOAD.fullmatch(given[0]) else UNSIGNED_PAYLOAD
        if request.method == "POST" and "delete" in request.query:
            self._hash = hashlib.sha256((request.body or "").encode()).hexdigest()

    def payload(self, request: AWSRequest) -> str:  # noqa: ARG002  botocore's signature
        """What stands for the body in the signature."""
        return self._hash


def _keys_to_delete(body: str | None) -> list[str]:
    """The keys in the body of DeleteObjects, which must be there to be signed."""
    if body is None or "<!" in body:
        raise InvalidRequest(
            "Cannot sign the request: to delete several objects the body must come along, as plain XML"
        )
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise InvalidRequest("Cannot sign the request: its body is no XML") from error
    objects = [each for each in root if each.tag.rpartition("}")[2] == "Object"]
    keys = [field.text or "" for each in objects for field in each if field.tag.rpartition("}")[2] == "Key"]
    if not keys or len(keys) != len(objects) or len(keys) > _MOST_DELETED:
        raise InvalidRequest("Cannot sign the request: its body does not name the objects to delete, one key each")
    return keys
