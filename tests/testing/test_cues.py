"""A cue strikes the events it was told to."""

from __future__ import annotations

from frazil.testing import Cues


def test_a_cue_strikes_the_nth_match_and_those_that_follow() -> None:
    cues: Cues[str] = Cues()
    cues.add("fault", "^write .*parquet", nth=2, times=2)
    events = ["write a.parquet", "write a.avro", "write b.parquet", "write c.parquet", "write d.parquet"]
    assert [cues.take(event) for event in events] == [None, None, "fault", "fault", None]


def test_the_cue_that_was_added_first_strikes_and_both_count() -> None:
    cues: Cues[str] = Cues()
    cues.add("first", ".")
    cues.add("second", ".", times=2)
    assert [cues.take("event") for _ in range(3)] == ["first", "second", None]


def test_a_cleared_cue_strikes_no_more() -> None:
    cues: Cues[str] = Cues()
    cues.add("fault", ".")
    cues.clear()
    assert cues.take("event") is None
