"""The database: writes take effect as a whole, share a flush, and never take each other down."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import Connection, create_engine, inspect, text

from frazil.catalog.database import Database
from frazil.catalog.naming import namespace_from_stored, stored_namespace
from frazil.errors import BadInput, StorageFailed
from lakes import SCHEMA


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    return str(request.getfixturevalue("postgres").get_uri())


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    yield opened
    opened.close()


def note(name: str) -> object:
    statement = text("INSERT INTO frazil_counters (name, value) VALUES (:name, 1)")
    return lambda connection: connection.execute(statement, {"name": name})


def noted(database: Database, prefix: str) -> set[str]:
    with database.read() as connection:
        found = connection.execute(text("SELECT name FROM frazil_counters")).scalars()
        return {name for name in found if name.startswith(prefix)}


def test_a_write_that_raises_leaves_nothing_and_the_others_beside_it_land(database: Database, tmp_path: Path) -> None:
    prefix = tmp_path.name

    def write(number: int) -> str:
        def work(connection: Connection) -> None:
            note(f"{prefix}-{number}")(connection)  # type: ignore[operator]
            if number % 3 == 0:
                raise LookupError(number)

        try:
            database.write(work)
        except LookupError:
            return "raised"
        return "landed"

    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(write, range(60)))
    assert [outcome == "raised" for outcome in outcomes] == [number % 3 == 0 for number in range(60)]
    assert noted(database, f"{prefix}-") == {f"{prefix}-{number}" for number in range(60) if number % 3}


def test_a_read_sees_what_is_committed_and_nothing_else(database: Database, tmp_path: Path) -> None:
    inside, looked = threading.Event(), threading.Event()

    def work(connection: Connection) -> None:
        note(tmp_path.name)(connection)  # type: ignore[operator]
        inside.set()
        assert looked.wait(10)

    writer = threading.Thread(target=database.write, args=(work,))
    writer.start()
    assert inside.wait(10)
    assert noted(database, tmp_path.name) == set()
    looked.set()
    writer.join()
    assert noted(database, tmp_path.name) == {tmp_path.name}


def test_several_processes_may_bring_the_schema_up_at_once(tmp_path: Path) -> None:
    program = f"from frazil.catalog.database import Database; Database('sqlite:///{tmp_path}/catalog.db').close()"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4


def test_a_database_of_pyiceberg_is_taken_over_with_its_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    theirs = SqlCatalog("frazil", uri=url, warehouse=tmp_path.as_uri())
    theirs.create_namespace("db")
    theirs.create_table("db.t", SCHEMA)
    engine = create_engine(url)
    with engine.begin() as connection:  # as PyIceberg and Java laid it out before views
        connection.execute(text("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type"))
    Database(url).close()
    assert "iceberg_type" in {column["name"] for column in inspect(engine).get_columns("iceberg_tables")}
    engine.dispose()
    assert SqlCatalog("frazil", uri=url, warehouse=tmp_path.as_uri()).list_tables("db") == [("db", "t")]


def test_a_database_that_cannot_be_used_is_told_in_a_sentence_without_its_password() -> None:
    with pytest.raises(BadInput, match="SQLite or PostgreSQL, not in mysql"):
        Database("mysql://u:secret@h/db")
    with pytest.raises(BadInput, match="needs a database file"):
        Database("sqlite://")
    with pytest.raises(StorageFailed) as failure:
        Database("postgresql://u:secret@127.0.0.1:1/db")
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(
    "levels", [("a",), ("a", "b"), ("a.b",), ("a", "b.c", "d"), ("%2E",), ("%252E", "."), ("a%", "%2", "E.")]
)
def test_a_namespace_is_stored_so_that_it_can_be_told_apart(levels: tuple[str, ...]) -> None:
    assert namespace_from_stored(stored_namespace(levels)) == levels
    assert stored_namespace(levels).count(".") == len(levels) - 1
