"""What becomes of a commit whose transaction ends badly: a file goes only when it is proven that no pointer names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from frazil.catalog import namespace_rows, pointers
from frazil.catalog.backend import Backend
from frazil.catalog.commit import Change, LostRace, commit, prepare, retried
from frazil.catalog.database_tables import TABLE
from frazil.catalog.errors import CommitStateUnknown
from frazil.catalog.pointers import Identifier
from frazil.catalog.settings import ServerSettings
from frazil.catalog.table_metadata import new_table_metadata
from readers import local_path

IDENTIFIER = Identifier("frazil", ("db",), "t")


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    settings = ServerSettings(f"sqlite:///{tmp_path / 'catalog.db'}", f"file://{tmp_path / 'warehouse'}")
    opened = Backend.open(settings)
    opened.database.write(lambda connection: namespace_rows.create(connection, "frazil", ("db",), {}))
    yield opened
    opened.close()


@pytest.fixture
def change(backend: Backend) -> Change:
    request = {"name": "t", "schema": {"type": "struct", "fields": []}}
    location = f"{backend.settings.warehouse}/db/t"
    metadata = new_table_metadata(request, table_uuid=backend.new_uuid(), location=location, now_ms=1)
    return prepare(backend, IDENTIFIER, TABLE, None, metadata)


def pointer(backend: Backend) -> str | None:
    with backend.database.read() as connection:
        return pointers.find(connection, IDENTIFIER, TABLE)


def broken(invalidated: bool) -> OperationalError:
    error = OperationalError("COMMIT", None, Exception("the server went away"))
    error.connection_invalidated = invalidated
    return error


def test_one_that_is_proven_not_to_be_made_leaves_no_file(backend: Backend, change: Change) -> None:
    def write(_work: Callable[[Connection], None]) -> None:
        raise broken(invalidated=False)

    with pytest.raises(OperationalError):
        commit(backend, [change], write)
    assert pointer(backend) is None
    assert not local_path(change.new.location).exists()


def test_one_whose_reply_was_lost_is_found_to_be_made(backend: Backend, change: Change) -> None:
    def write(work: Callable[[Connection], None]) -> None:
        backend.database.write(work)
        raise broken(invalidated=True)

    commit(backend, [change], write)
    assert pointer(backend) == change.new.location
    assert local_path(change.new.location).exists()


def test_one_that_may_be_made_yet_is_unknown_and_keeps_its_file(backend: Backend, change: Change) -> None:
    def write(_work: Callable[[Connection], None]) -> None:
        raise broken(invalidated=True)

    with pytest.raises(CommitStateUnknown, match=r"Cannot tell whether the commit to db\.t was made"):
        commit(backend, [change], write)
    assert local_path(change.new.location).exists()


def test_a_lost_race_is_run_again_and_a_failed_requirement_is_not(backend: Backend) -> None:
    tries = 0

    def attempt() -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise LostRace("another commit was first")
        return tries

    assert retried(backend, attempt) == 3
    tries = -100
    with pytest.raises(LostRace):
        retried(backend, attempt)
    assert tries == -100 + backend.settings.commit_tries
