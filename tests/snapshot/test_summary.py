"""What was added, what was removed, and the totals after it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil import BadInput, DataFile, FileContent
from frazil.snapshot.summary import check_summary, counts_of_added, counts_of_removed, merge_counts, totals_after

DATA = DataFile("a", 10, 100)
POSITIONS = DataFile("b", 3, 30, content=FileContent.POSITION_DELETES)
EQUALITY = DataFile("c", 2, 20, content=FileContent.EQUALITY_DELETES)
ALL = [DATA, DATA, POSITIONS, EQUALITY]


def test_each_kind_of_file_has_its_own_counts() -> None:
    assert counts_of_added(ALL) == {
        "added-data-files": 2,
        "added-records": 20,
        "added-delete-files": 2,
        "added-position-delete-files": 1,
        "added-equality-delete-files": 1,
        "added-position-deletes": 3,
        "added-equality-deletes": 2,
        "added-files-size": 250,
    }
    assert counts_of_removed(ALL) == {
        "deleted-data-files": 2,
        "deleted-records": 20,
        "removed-delete-files": 2,
        "removed-position-delete-files": 1,
        "removed-equality-delete-files": 1,
        "removed-position-deletes": 3,
        "removed-equality-deletes": 2,
        "removed-files-size": 250,
    }
    assert counts_of_added([]) == {}


def test_the_first_snapshot_has_every_total() -> None:
    assert totals_after(counts_of_added(ALL), None) == {
        "total-data-files": 2,
        "total-delete-files": 2,
        "total-records": 20,
        "total-files-size": 250,
        "total-position-deletes": 3,
        "total-equality-deletes": 2,
    }


def test_removing_all_that_was_added_comes_to_nothing() -> None:
    before = {key: str(value) for key, value in totals_after(counts_of_added(ALL), None).items()}
    assert set(totals_after(counts_of_removed(ALL), before).values()) == {0}


@pytest.mark.parametrize("parent", [{}, {"total-records": "many"}, {"total-records": "-1"}])
def test_a_total_that_the_parent_does_not_know_is_left_out(parent: dict[str, str]) -> None:
    assert totals_after({"added-records": 1}, parent) == {}


def test_a_total_below_nothing_is_left_out() -> None:
    assert totals_after({"deleted-records": 5}, {"total-records": "3"}) == {}


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 99)), max_size=5))
def test_merged_counts_are_the_sums(several: list[dict[str, int]]) -> None:
    merged = merge_counts(several)
    assert merged == {key: sum(each.get(key, 0) for each in several) for key in merged}
    assert merged.keys() == {key for each in several for key in each}


@pytest.mark.parametrize("bad", [{"operation": "append"}, {"Operation": "x"}, {"n": 1}, {"n": None}])
def test_what_a_summary_cannot_keep_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=r"table db\.t"):
        check_summary("db.t", bad)
    check_summary("db.t", {"n": "1"})
