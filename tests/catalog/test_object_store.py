"""A warehouse on an object store: SeaweedFS's S3."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from services.frazil_catalog import FrazilCatalog, running_catalog
from services.seaweedfs import SeaweedFS

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def warehouse(seaweedfs: SeaweedFS) -> str:
    return f"s3://{seaweedfs.bucket}/{uuid.uuid4().hex}"


@pytest.fixture
def server(seaweedfs: SeaweedFS, warehouse: str, tmp_path: Path) -> Iterator[FrazilCatalog]:
    storage = [option for pair in seaweedfs.file_io_properties().items() for option in ("--storage", "=".join(pair))]
    with running_catalog(tmp_path / "lake", "--warehouse", warehouse, *storage) as running:
        yield running


def test_tables_live_die_and_are_staged_there(server: FrazilCatalog, seaweedfs: SeaweedFS, warehouse: str) -> None:
    client = RestCatalog("s3", uri=server.uri, **seaweedfs.file_io_properties())
    client.create_namespace("db")
    table = client.create_table("db.t", ROWS.schema)
    assert table.location().startswith(f"{warehouse}/db/t-")
    table.append(ROWS)
    with client.create_table_transaction("db.staged", ROWS.schema) as transaction:
        transaction.append(ROWS)
    for name in ("t", "staged"):
        assert client.load_table(f"db.{name}").scan().to_arrow().num_rows == 3
    assert not [file for file in seaweedfs.files(warehouse) if "/.frazil-staged/" in file]
    client.purge_table("db.t")
    deadline = time.monotonic() + 30
    while (left := seaweedfs.files(table.location())) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == set()


def test_a_location_on_the_store_but_outside_the_warehouse_is_refused(
    server: FrazilCatalog, seaweedfs: SeaweedFS
) -> None:
    place = server.new_namespace()
    body = {"name": "t", "schema": {"type": "struct", "fields": []}, "location": f"s3://{seaweedfs.bucket}/elsewhere"}
    assert server.ask("POST", f"/v1/namespaces/{place}/tables", body).error[:2] == (403, "ForbiddenException")
