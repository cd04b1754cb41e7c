"""`frazil sweep` removes what dead jobs left, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import frazil as library
from commands import Frazil, parquet


def dead_writer(frazil: Frazil, ttl: timedelta) -> str:
    """A reservation with a file that will never be published; its commit uuid."""
    table = frazil.table()
    snapshot = library.begin_snapshot(table, ttl=ttl)
    rows = pa.table({"id": pa.array([1], pa.int64())})
    library.write_shard(snapshot, "part-0", [rows], io=table.io)
    assert len(frazil.orphans()) == 2
    return snapshot.commit_uuid


@pytest.fixture
def loaded(frazil: Frazil) -> Frazil:
    frazil.here("ingest", parquet(frazil.home / "a.parquet", 100), "db.t", "--root", frazil.root)
    return frazil


def test_a_held_reservation_protects_its_files_until_it_is_forced(loaded: Frazil) -> None:
    commit = dead_writer(loaded, timedelta(days=1))
    everything = loaded.here("sweep", "db.t", "--root", loaded.root, "--grace", "0s", "--json")
    assert (everything.code, everything.document["held"], everything.document["files"]) == (0, [commit], [])
    refused = loaded.here("sweep", "db.t", "--root", loaded.root, "--commit", commit, "--json")
    assert (refused.code, len(loaded.orphans())) == (2, 2)
    dry = loaded.here("sweep", "db.t", "--root", loaded.root, "--commit", commit, "--force", "--dry-run", "--json")
    assert (len(dry.document["files"]), len(loaded.orphans()), loaded.reserved()) == (2, 2, [commit])
    forced = loaded.here("sweep", "db.t", "--root", loaded.root, "--commit", commit, "--force")
    assert (forced.code, "2 files" in forced.out) == (0, True)
    assert (loaded.orphans(), loaded.reserved(), loaded.rows()) == (set(), [], 100)


def test_what_an_expired_reservation_left_goes_after_the_grace_period(loaded: Frazil) -> None:
    dead_writer(loaded, timedelta(milliseconds=1))
    kept = loaded.here("sweep", "db.t", "--root", loaded.root, "--json")
    assert (kept.document["files"], len(loaded.orphans())) == ([], 2)
    swept = loaded.here("sweep", "db.t", "--root", loaded.root, "--grace", "0s", "--json")
    assert len(swept.document["files"]) == 2
    assert (loaded.orphans(), loaded.reserved(), loaded.rows()) == (set(), [], 100)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["db.t", "--force"], "--force needs --commit"),
        (["db.t", "--grace", "soon"], "not a span of time"),
        (["db.t", "--commit", "abc"], "not a commit uuid"),
        (["db.other"], "there is no table db.other"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(loaded: Frazil, arguments: list[str], words: str) -> None:
    ran = loaded.here("sweep", *arguments, "--root", loaded.root, "--json")
    assert (ran.code, words in ran.document["message"]) == (2, True), ran
