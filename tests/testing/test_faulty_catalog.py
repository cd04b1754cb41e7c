"""A commit is lost, refused or overtaken when the test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from frazil.testing import FaultyCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table import Table

NAME = "db.t"


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    catalog.create_table(NAME, schema=Schema(NestedField(1, "id", LongType())))
    return catalog


@pytest.fixture
def faulty(catalog: SqlCatalog) -> Iterator[FaultyCatalog]:
    with FaultyCatalog(catalog) as faulty:
        yield faulty


def mark(table: Table, value: str) -> None:
    with table.transaction() as transaction:
        transaction.set_properties(mark=value)


def add_column(table: Table, name: str) -> None:
    with table.update_schema() as update:
        update.add_column(name, LongType())


def found(catalog: SqlCatalog) -> str | None:
    return catalog.load_table(NAME).properties.get("mark")


def test_a_commit_that_fails_before_the_catalog_has_not_landed(catalog: SqlCatalog, faulty: FaultyCatalog) -> None:
    faulty.fail_before(times=2)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            mark(catalog.load_table(NAME), "1")
    assert found(catalog) is None
    mark(catalog.load_table(NAME), "3")
    assert found(catalog) == "3"
    assert [commit.landed for commit in faulty.commits] == [False, False, True]


def test_a_commit_whose_reply_is_lost_has_landed(catalog: SqlCatalog, faulty: FaultyCatalog) -> None:
    faulty.lose_reply(lambda: TimeoutError("no answer"))
    with pytest.raises(TimeoutError):
        mark(catalog.load_table(NAME), "1")
    assert found(catalog) == "1"
    assert [(commit.identifier, commit.landed) for commit in faulty.commits] == [(("db", "t"), True)]


def test_a_commit_that_is_overtaken_gets_the_catalogs_own_conflict(catalog: SqlCatalog, faulty: FaultyCatalog) -> None:
    faulty.overtake(lambda: add_column(catalog.load_table(NAME), "rival"))
    with pytest.raises(CommitFailedException):
        add_column(catalog.load_table(NAME), "mine")
    assert catalog.load_table(NAME).schema().column_names == ["id", "rival"]
    assert [commit.landed for commit in faulty.commits] == [False]


def test_after_the_context_the_catalog_is_what_it_was(catalog: SqlCatalog) -> None:
    with FaultyCatalog(catalog) as faulty:
        faulty.fail_before()
    mark(catalog.load_table(NAME), "1")
    assert found(catalog) == "1"
    assert "commit_table" not in vars(catalog)
