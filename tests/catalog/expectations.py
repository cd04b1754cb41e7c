"""The schemas, specs and orders of Java's CatalogTests, and the fixtures of its translation."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from catalog.java_client import Document, Ident, JavaClient, Refused
from services.frazil_catalog import FrazilCatalog


def column(number: int, name: str, kind: Any, required: bool = True, **more: Any) -> Document:
    return {"id": number, "name": name, "type": kind, "required": required, **more}


def struct(*columns: Document) -> Document:
    return {"type": "struct", "schema-id": 0, "fields": list(columns)}


SCHEMA = struct(column(3, "id", "int", doc="unique ID 🤪"), column(4, "data", "string"))
TABLE_SCHEMA = struct(column(1, "id", "int", doc="unique ID 🤪"), column(2, "data", "string"))
REPLACE_SCHEMA = struct(column(2, "id", "int", doc="unique ID 🤪"), column(3, "data", "string"))
OTHER_SCHEMA = struct(column(1, "some_id", "int"))


def bucket(source: int, name: str = "id_bucket", **more: Any) -> Document:
    return {"name": name, "transform": "bucket[16]", "source-id": source, **more}


def ordered(source: int, transform: str = "identity", direction: str = "asc") -> Document:
    nulls = "nulls-first" if direction == "asc" else "nulls-last"
    return {"transform": transform, "source-id": source, "direction": direction, "null-order": nulls}


SPEC = {"spec-id": 0, "fields": [bucket(3, **{"field-id": 1000})]}
TABLE_SPEC = {"spec-id": 0, "fields": [bucket(1, **{"field-id": 1000})]}
WRITE_ORDER = {"order-id": 1, "fields": [ordered(3, "bucket[16]"), ordered(3)]}
TABLE_WRITE_ORDER = {"order-id": 1, "fields": [ordered(1, "bucket[16]"), ordered(1)]}
REVERSED_ORDER = {"order-id": 1, "fields": [ordered(3, "bucket[16]", "desc"), ordered(3, direction="desc")]}

PROPERTIES = {"user": "someone", "created-at": "2022-02-25T00:38:19"}


@contextmanager
def refused(kind: str, message: str) -> Iterator[None]:
    """The block is refused by that exception of Iceberg, and the message has that text."""
    with pytest.raises(Refused) as refusal:
        yield
    assert refusal.value.kind == kind
    assert message in refusal.value.message


def same_fields(document: Document, expected: Document) -> bool:
    """Whether two schemas, specs or orders have the same fields, whatever their ids."""
    return bool(document["fields"] == expected["fields"])


@pytest.fixture
def client(frazil_catalog: FrazilCatalog) -> JavaClient:
    return JavaClient(frazil_catalog)


@pytest.fixture
def db(client: JavaClient) -> str:
    """A namespace of the test's own."""
    name = f"db{uuid.uuid4().hex[:12]}"
    client.create_namespace(name)
    return name


@pytest.fixture
def ident(db: str) -> Ident:
    """A table's or view's name that nothing has."""
    return Ident((db,), "newtable")


def unused() -> str:
    """A namespace's name that nothing has."""
    return f"n{uuid.uuid4().hex[:12]}"
