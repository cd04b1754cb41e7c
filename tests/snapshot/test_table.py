"""What an answer of a catalog proves."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException, ForbiddenError
from pyiceberg.table.update import SetPropertiesUpdate

from frazil.snapshot.outcome import NotLanded, Unknown
from frazil.snapshot.table import CatalogTable
from frazil.snapshot.warehouse import EmbeddedCatalog
from lakes import SCHEMA


def answer_to(error: Exception, root: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """What an update comes to when storing the new metadata raises `error`."""
    catalog = EmbeddedCatalog(root)
    catalog.create_namespace("db")
    target = CatalogTable(catalog.create_table("db.t", SCHEMA))

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(EmbeddedCatalog, "_write_metadata", staticmethod(fail))
    return target.update([], [SetPropertiesUpdate(updates={"a": "b"})])


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_metadata_that_this_process_cannot_store_has_not_landed(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_to(OSError(number, "no"), tmp_path, monkeypatch)
    assert isinstance(answer, NotLanded)
    assert not answer.conflict
    assert "cannot be stored" in answer.reason


def test_a_broken_connection_leaves_the_outcome_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answer_to(ConnectionResetError("gone"), tmp_path, monkeypatch)
    assert answer == Unknown("ConnectionResetError: gone")


@pytest.mark.parametrize(("error", "conflict"), [(CommitFailedException("late"), True), (ForbiddenError("no"), False)])
def test_a_conflict_and_a_refusal_have_not_landed(
    error: Exception, conflict: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_to(error, tmp_path, monkeypatch)
    assert isinstance(answer, NotLanded)
    assert answer.conflict is conflict
