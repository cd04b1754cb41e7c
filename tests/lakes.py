"""Lakes to publish to, each a catalog with a warehouse, and what lies in them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

import frazil
from frazil import DistributedSnapshot, Landed, Report
from frazil.snapshot.table import CatalogTable
from frazil.snapshot.warehouse import EmbeddedCatalog
from frazil.testing import FaultyFileIO
from readers import local_path

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "text", StringType()))
VERSIONS = {"embedded": (1, 2, 3), "seaweedfs": (1, 2, 3), "postgres": (1, 2), "frazil": (1, 2, 3)}
"""The format versions that each kind of lake can hold: PyIceberg's SQL catalog refuses to write v3 metadata."""


@dataclass(frozen=True)
class Lake:
    """A catalog to test with. `open` makes a client of its own, as another process would."""

    kind: str
    open: Callable[[], Catalog]
    namespace: str
    stored: Callable[[str], set[str]]
    catalog: Catalog = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalog", self.open())

    def table(
        self,
        name: str = "t",
        *,
        version: int = 2,
        schema: Schema = SCHEMA,
        spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        **properties: str,
    ) -> Table:
        """A new, empty table. Properties are written with `_` for `-` and `__` for `.`."""
        if version not in VERSIONS[self.kind]:
            pytest.skip(f"{self.kind} holds no v{version} table")
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
        return self.catalog.create_table(
            f"{self.namespace}.{name}",
            schema,
            partition_spec=spec,
            properties={"format-version": str(version), **named},
        )

    def again(self, table: Table) -> Table:
        """The same table as another client sees it now, its reservations with it."""
        fresh = self.open().load_table(table.name())
        CatalogTable(fresh).refresh()
        return fresh

    def files(self, table: Table) -> set[str]:
        """Every file in the table's folder."""
        return self.stored(table.location())

    def orphans(self, table: Table) -> set[str]:
        """The files that nothing references, by PyIceberg's reading of the table."""
        return {plain(path) for path in self.files(table)} - referenced(self.again(table))


def plain(location: str) -> str:
    """A location in one spelling."""
    return str(local_path(location)) if location.startswith(("file:", "/")) else location


def referenced(table: Table) -> set[str]:
    """Everything that a table's metadata leads to, found by PyIceberg alone."""
    found = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            found.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            found |= {entry.data_file.file_path for entry in entries}
    return {plain(path) for path in found}


def rows(*ids: int) -> pa.Table:
    """Rows that fit SCHEMA."""
    return pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {each}" for each in ids])})


def write(table: Table, snapshot: DistributedSnapshot, *ids: int, shard: str = "part-0", **options: Any) -> Report:
    """A report of one shard that holds these rows."""
    return frazil.write_shard(snapshot, shard, [rows(*ids)], io=table.io, **options)


def append(table: Table, *ids: int, ref: str = "main", **options: Any) -> Landed:
    """Rows appended as one snapshot."""
    snapshot = frazil.begin_snapshot(table, ref=ref)
    return frazil.publish_snapshot(table, snapshot, [write(table, snapshot, *ids)], **options)


def ids(table: Table, **scan: Any) -> list[int]:
    """The ids that PyIceberg reads from the newest state of a table."""
    table.refresh()
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


def through(catalog: Catalog, table: Table) -> FaultyFileIO:
    """Put a recording FileIO that can fail under every table that this SQL catalog loads from now on, and under `table`."""
    io = FaultyFileIO(table.io)
    vars(catalog)["_load_file_io"] = lambda *_, **__: io
    table.io = io
    return io


def stored_locally(location: str) -> set[str]:
    """Every file below a local folder."""
    return {str(path) for path in local_path(location).rglob("*") if path.is_file()}


def embedded(root: Path) -> Lake:
    """A lake in a folder."""
    (root / "warehouse").mkdir(parents=True, exist_ok=True)
    lake = Lake("embedded", lambda: EmbeddedCatalog(root), "db", stored_locally)
    lake.catalog.create_namespace_if_not_exists("db")
    return lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An embedded catalog in a folder of its own."""
    return embedded(tmp_path / "lake")


@pytest.fixture
def postgres_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """PyIceberg's SQL catalog on PostgreSQL, with a local warehouse."""
    uri = request.getfixturevalue("postgres").get_uri(driver="psycopg")
    name = f"lake-{uuid.uuid4().hex}"

    def client() -> Catalog:
        return SqlCatalog(name, uri=uri, warehouse=f"file://{tmp_path / 'postgres'}")

    client().create_namespace("db")
    return Lake("postgres", client, "db", stored_locally)


@pytest.fixture
def seaweedfs_lake(request: pytest.FixtureRequest) -> Lake:
    """SeaweedFS's own REST catalog over its S3."""
    service = request.getfixturevalue("seaweedfs")
    namespace = request.getfixturevalue("seaweedfs_namespace")
    return Lake("seaweedfs", service.catalog, namespace, service.files)


@pytest.fixture
def frazil_lake(request: pytest.FixtureRequest) -> Lake:
    """Frazil's own REST catalog, which keeps reservations itself."""
    service = request.getfixturevalue("frazil_catalog")
    return Lake("frazil", service.catalog, request.getfixturevalue("namespace"), stored_locally)


@pytest.fixture(params=["embedded", "seaweedfs", "postgres", "frazil"])
def any_lake(request: pytest.FixtureRequest) -> Lake:
    """Each kind of catalog in turn: the protocol has one suite that all of them run."""
    name = "lake" if request.param == "embedded" else f"{request.param}_lake"
    found: Lake = request.getfixturevalue(name)
    return found
