"""Several tables, one commit: all of them change at one instant or none does, on Frazil's own catalog server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import frazil.snapshot.publish_together as module
from frazil import begin_snapshot, sweep
from frazil.errors import AlreadyConsumed, CommitConflict, CommitRefused, OutcomeUnknown
from frazil.snapshot.outcome import Unknown
from frazil.snapshot.publish_snapshot import Publisher, publisher_of
from frazil.snapshot.publish_together import publish_together
from frazil.snapshot.transaction import commits_together
from lakes import SCHEMA, Lake, append, ids, write

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from services.frazil_catalog import FrazilCatalog

pytest.importorskip("services.frazil_catalog", reason="the catalog server is a part of its own")


@pytest.fixture
def tables(frazil_catalog: FrazilCatalog, namespace: str) -> tuple[Table, Table]:
    """Two empty tables of one catalog."""
    catalog = frazil_catalog.catalog()
    return catalog.create_table(f"{namespace}.a", SCHEMA), catalog.create_table(f"{namespace}.b", SCHEMA)


def publisher(table: Table, *numbers: int, conflict: str = "rebase") -> Publisher:
    """Rows that are written and reported, and wait to be published."""
    snapshot = begin_snapshot(table)
    return publisher_of(table, snapshot, [write(table, snapshot, *numbers)], conflict=conflict)  # type: ignore[arg-type]


def test_only_a_catalog_that_says_so_commits_several_tables_together(frazil_catalog: FrazilCatalog, lake: Lake) -> None:
    assert commits_together(frazil_catalog.catalog())
    assert not commits_together(lake.catalog)


def test_all_tables_land_in_one_commit(tables: tuple[Table, Table]) -> None:
    a, b = tables
    landed = publish_together([publisher(a, 1, 2), publisher(b, 3)])
    assert [each.attempts for each in landed] == [1, 1]
    assert (ids(a), ids(b)) == ([1, 2], [3])


def test_a_conflict_on_one_table_rebases_all(tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tables
    publishers = [publisher(a, 1), publisher(b, 2)]
    between_look_and_commit(monkeypatch, lambda: append(a.catalog.load_table(b.name()), 9))
    landed = publish_together(publishers, sleep=lambda _: None)
    assert [each.attempts for each in landed] == [2, 2]
    assert (ids(a), ids(b)) == ([1], [2, 9])


def test_where_one_table_must_not_rebase_none_lands(tables: tuple[Table, Table]) -> None:
    a, b = tables
    publishers = [publisher(a, 1), publisher(b, 2, conflict="abort")]
    append(a.catalog.load_table(b.name()), 9)
    with pytest.raises(CommitConflict):
        publish_together(publishers, sleep=lambda _: None)
    assert (ids(a), ids(b)) == ([], [9])


def test_where_one_table_is_gone_none_lands(tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tables
    publishers = [publisher(a, 1), publisher(b, 2)]
    between_look_and_commit(monkeypatch, lambda: a.catalog.drop_table(b.name()))
    with pytest.raises(CommitRefused):
        publish_together(publishers, sleep=lambda _: None)
    assert ids(a) == []
    assert sweep(a, publishers[0].snapshot.commit_uuid, force=True).files


def test_a_lost_reply_is_found_out(tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tables
    lose_replies(monkeypatch, 1)
    landed = publish_together([publisher(a, 1), publisher(b, 2)], sleep=lambda _: None)
    assert [each.reply_lost for each in landed] == [True, True]
    assert (ids(a), ids(b)) == ([1], [2])


def test_a_request_that_was_never_answered_leaves_the_outcome_open(
    tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tables
    a = a.transaction().set_properties({"commit.retry.num-retries": "0"}).commit_transaction()
    publishers = [publisher(a, 1), publisher(b, 2)]
    monkeypatch.setattr(module, "commit_together", lambda _: _unanswered())
    with pytest.raises(OutcomeUnknown):
        publish_together(publishers, sleep=lambda _: None)


def test_a_second_publisher_finds_them_consumed(tables: tuple[Table, Table]) -> None:
    a, b = tables
    publishers = [publisher(a, 1), publisher(b, 2)]
    again = [
        publisher_of(each.target.table, each.snapshot, [write(each.target.table, each.snapshot, 7, shard="x")])
        for each in publishers
    ]
    publish_together(publishers)
    with pytest.raises(AlreadyConsumed):
        publish_together(again, sleep=lambda _: None)
    assert (ids(a), ids(b)) == ([1], [2])


def between_look_and_commit(monkeypatch: pytest.MonkeyPatch, deed: Callable[[], object]) -> None:
    """Do this once, when the plans are made and the catalog has not been asked yet."""
    ask, done = module.commit_together, []

    def late(changes):  # type: ignore[no-untyped-def]
        if not done:
            done.append(deed())
        return ask(changes)

    monkeypatch.setattr(module, "commit_together", late)


def lose_replies(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The catalog does as it is asked, and its first answers get lost."""
    ask, lost = module.commit_together, []

    def asked(changes):  # type: ignore[no-untyped-def]
        answer = ask(changes)
        if len(lost) < count:
            lost.append(answer)
            return _unanswered()
        return answer

    monkeypatch.setattr(module, "commit_together", asked)


def _unanswered() -> Unknown:
    return Unknown("the connection broke")
