"""Catalogs and tables to write to: opened the way PyIceberg users configure them, or embedded in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import FileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel

from frazil.errors import BadInput, StorageFailed
from frazil.settings import EMBEDDED_CATALOG, CatalogSettings
from frazil.snapshot.folder_lock import FolderLock
from frazil.snapshot.partition_by import partition_spec
from frazil.snapshot.reservation import reservations
from frazil.snapshot.storage import delete_files, list_files
from frazil.snapshot.table import CatalogTable


class EmbeddedCatalog(SqlCatalog):
    """PyIceberg's SQL catalog on a SQLite file, with a lock around each commit.

    The database's compare-and-swap is what keeps commits right, for other PyIceberg processes too. The lock lets
    Frazil's own writers queue instead of racing: a lost race would leave its metadata file behind.
    """

    def __init__(self, root: Path) -> None:
        self._lock = FolderLock(root / "catalog.lock")
        super().__init__(
            EMBEDDED_CATALOG,
            uri=f"sqlite:///{root / 'catalog.db'}?timeout=60",
            # Not `as_uri`: PyIceberg takes a location literally, and would make a folder called `my%20lake`.
            warehouse=f"file://{root / 'warehouse'}",
        )

    def commit_table(
        self, table: Table, requirements: tuple[Any, ...], updates: tuple[Any, ...]
    ) -> CommitTableResponse:
        """As PyIceberg's, one at a time."""
        with self.exclusive():
            return super().commit_table(table, requirements, updates)

    @staticmethod
    def _write_metadata(metadata: TableMetadata, io: FileIO, metadata_path: str) -> None:
        """As PyIceberg's, and format v3 too, which its metadata holds but refuses to write."""
        if not isinstance(metadata, TableMetadataV3):
            SqlCatalog._write_metadata(metadata, io, metadata_path)
            return
        whole = metadata.model_copy(update={"next_row_id": metadata.next_row_id or 0})
        text = IcebergBaseModel.model_dump_json(whole, exclude_none=True)
        with io.new_output(metadata_path).create() as stream:
            stream.write(text.encode())

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep Frazil's other writers waiting from a look at a table to the commit that builds on it."""
        return self._lock.held()


def open_catalog(settings: CatalogSettings) -> Catalog:
    """The catalog that the settings name. One that is not there or not configured is the user's mistake."""
    if settings.root is not None:
        return _embedded(Path(settings.root))
    try:
        return load_catalog(settings.name)
    except Exception as error:
        raise BadInput(
            f"catalog {settings.name!r} cannot be opened ({type(error).__name__}: {error}); configure it for PyIceberg "
            "in ~/.pyiceberg.yaml or by PYICEBERG_CATALOG__… variables, or use --root for an embedded one"
        ) from error


def _embedded(root: Path) -> Catalog:
    if unfit := sorted(set(str(root)) & set("?#%")):
        raise BadInput(
            f"the lake's folder {root} has {' and '.join(unfit)} in its name, which readers take for parts of an "
            "address; choose another --root"
        )
    try:
        (root / "warehouse").mkdir(parents=True, exist_ok=True)
        with (root / "catalog.lock").open("ab"):
            return EmbeddedCatalog(root)
    except OSError as error:
        raise StorageFailed(
            f"the lake {root} cannot be written: {error.strerror or error}; choose another --root"
        ) from error


def table_identifier(name: str) -> tuple[str, ...]:
    """`db.table` as Iceberg's own value; a bare name and an empty part are refused."""
    parts = tuple(name.split("."))
    if len(parts) < 2 or not all(part.strip() for part in parts):
        raise BadInput(f"{name!r} is not a table's name; write namespace.table, such as db.trips")
    return parts


def find_table(catalog: Catalog, identifier: tuple[str, ...]) -> Table | None:
    """The table, or None where there is none."""
    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        return None


def create_table(
    catalog: Catalog,
    identifier: tuple[str, ...],
    schema: Schema,
    partition_by: str | None,
    properties: Mapping[str, str],
) -> tuple[Table, bool]:
    """Make the table, and its namespace where missing. False if another process made it first: then it is theirs."""
    spec = partition_spec(partition_by, schema) if partition_by else UNPARTITIONED_PARTITION_SPEC
    _ensure_namespace(catalog, identifier[:-1])
    try:
        return _create(catalog, identifier, schema, spec, properties), True
    except (TableAlreadyExistsError, CommitFailedException):
        return catalog.load_table(identifier), False


def drop_unused(catalog: Catalog, table: Table) -> bool:
    """Take back a table that this process made and that nobody has used. False if somebody has."""
    target = CatalogTable(table)
    with target.exclusive():
        metadata = target.refresh()
        if metadata.snapshots or reservations(metadata):
            return False
        # Listed before the drop: afterwards the folder may be that of another table of the same name.
        files = [file.path for file in list_files(table.io, table.location_provider().metadata_path)]
        catalog.drop_table(table.name())
    delete_files(table.io, files)
    return True


def _create(
    catalog: Catalog,
    identifier: tuple[str, ...],
    schema: Schema,
    spec: PartitionSpec,
    properties: Mapping[str, str],
) -> Table:
    try:
        return catalog.create_table(identifier, schema, partition_spec=spec, properties=dict(properties))
    except OSError as error:
        raise StorageFailed(
            f"table {'.'.join(identifier)} cannot be made: {error}; is the warehouse writable?"
        ) from error


def _ensure_namespace(catalog: Catalog, namespace: tuple[str, ...]) -> None:
    for depth in range(1, len(namespace) + 1):
        try:
            catalog.create_namespace(namespace[:depth])
        except NamespaceAlreadyExistsError:
            continue
