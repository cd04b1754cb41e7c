"""Principals and their secrets."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from frazil.errors import BadInput
from guards import Guards


def test_a_principal_is_known_by_its_secret_and_by_nothing_else(guards: Guards) -> None:
    credential = guards.principals.add("etl")
    found = guards.principals.authenticate(credential.client_id, credential.secret)
    assert found is not None and found.name == "etl"
    assert guards.principals.authenticate(credential.client_id, credential.secret + "x") is None
    assert guards.principals.authenticate("nobody", credential.secret) is None
    assert guards.principals.authenticate("etl", credential.secret) is None


def test_a_new_secret_voids_the_old_one(guards: Guards) -> None:
    old = guards.principals.add("etl")
    new = guards.principals.rotate("etl")
    assert new.client_id == old.client_id
    assert guards.principals.authenticate(old.client_id, old.secret) is None
    assert guards.principals.authenticate(new.client_id, new.secret) is not None


def test_the_database_holds_no_secret(guards: Guards, tmp_path: Path) -> None:
    credential = guards.principals.add("etl")
    guards.database.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("catalog.db*"))
    assert credential.client_id.encode() in stored
    assert credential.secret.encode() not in stored
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        (kept,) = connection.execute("SELECT secret_hash FROM frazil_principals").fetchone()
    assert re.fullmatch(r"scrypt\$16384\$8\$1\$[0-9a-f]{32}\$[0-9a-f]{64}", kept)


def test_a_credential_that_is_printed_for_debugging_shows_no_secret(guards: Guards) -> None:
    credential = guards.principals.add("etl")
    assert credential.secret not in repr(credential)


def test_a_principal_that_was_removed_is_unknown_and_its_name_is_free_again(guards: Guards) -> None:
    guards.roles.add("writers")
    credential = guards.principals.add("etl", ("writers",))
    guards.principals.remove("etl")
    assert guards.principals.authenticate(credential.client_id, credential.secret) is None
    assert guards.roles.all() == {"writers": ()}
    guards.principals.add("etl")
    assert [(each.name, each.roles) for each in guards.principals.all()] == [("etl", ())]


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda guards: guards.principals.add("etl"), "there is a principal etl already"),
        (lambda guards: guards.principals.add("new", ("ghost",)), "there is no role ghost"),
        (lambda guards: guards.principals.add(""), "cannot be a name"),
        (lambda guards: guards.principals.add("a\nb"), "cannot be a name"),
        (lambda guards: guards.principals.rotate("ghost"), "there is no principal ghost"),
        (lambda guards: guards.principals.remove("ghost"), "there is no principal ghost"),
        (lambda guards: guards.principals.rotate("outside"), "gets its tokens from the external issuer"),
        (lambda guards: guards.principals.add_external("other", "subject"), "is the principal outside already"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(guards: Guards, attempt: object, sentence: str) -> None:
    assert callable(attempt)
    guards.principals.add("etl")
    guards.principals.add_external("outside", "subject")
    before = guards.principals.all()
    with pytest.raises(BadInput, match=sentence):
        attempt(guards)
    assert guards.principals.all() == before
