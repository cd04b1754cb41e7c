"""A job is what its events make of it; each declared shard is accepted exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil import FrazilError, Report
from frazil.jobs.job import Job, Plan
from frazil.jobs.states import Event, State
from snapshot.test_descriptor import SNAPSHOT

PLAN = Plan(SNAPSHOT, {"a": {}, "b": {}}, {"mode": "append"})


def report(shard: str, attempt: int = 0) -> Report:
    return Report(SNAPSHOT.commit_uuid, SNAPSHOT.snapshot_id, shard, attempt, (), {"added-records": attempt})


def planned() -> Job:
    return Job("j").apply(Event.PLANNED, PLAN)


def test_a_planned_job_waits_for_every_declared_shard() -> None:
    job = planned()
    assert (job.state, job.missing, job.runs) == (State.WRITING, ["a", "b"], 1)


def test_the_first_attempt_that_reports_is_the_accepted_one() -> None:
    job = planned().apply(Event.SHARD_ACCEPTED, report("a", 1)).apply(Event.SHARD_ACCEPTED, report("a", 2))
    assert job.accepted == {"a": report("a", 1)} and job.missing == ["b"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=12))
def test_each_shard_is_accepted_once_whatever_the_order(reports: list[tuple[str, int]]) -> None:
    job = planned()
    first: dict[str, int] = {}
    for shard, attempt in reports:
        first.setdefault(shard, attempt)
        job = job.apply(Event.SHARD_ACCEPTED, report(shard, attempt))
    assert {shard: each.attempt for shard, each in job.accepted.items()} == first
    assert set(job.missing) == {"a", "b"} - first.keys()


def test_a_shard_that_was_never_declared_is_refused() -> None:
    with pytest.raises(FrazilError, match="never declared"):
        planned().apply(Event.SHARD_ACCEPTED, report("c"))


def test_a_job_with_a_shard_missing_cannot_be_published() -> None:
    job = planned().apply(Event.SHARD_ACCEPTED, report("a"))
    with pytest.raises(FrazilError, match="shards b have no report"):
        job.apply(Event.PUBLISHING)
    assert job.apply(Event.SHARD_ACCEPTED, report("b")).apply(Event.PUBLISHING).state is State.PUBLISHING


def test_resuming_counts_the_runs_and_keeps_what_was_accepted() -> None:
    job = planned().apply(Event.SHARD_ACCEPTED, report("a")).apply(Event.RESUMED).apply(Event.RESUMED)
    assert (job.runs, list(job.accepted), job.state) == (3, ["a"], State.WRITING)


def test_a_job_that_starts_over_has_new_shards_and_no_report() -> None:
    job = planned().apply(Event.SHARD_ACCEPTED, report("a")).apply(Event.RESUMED)
    anew = job.apply(Event.STARTED_OVER, {"a": {}, "c": {}})
    assert (anew.missing, anew.accepted, anew.runs, anew.declared.snapshot) == (["a", "c"], {}, 2, SNAPSHOT)


def test_a_note_says_why_and_a_resume_clears_it() -> None:
    done = planned().apply(Event.SHARD_ACCEPTED, report("a")).apply(Event.SHARD_ACCEPTED, report("b"))
    unknown = done.apply(Event.PUBLISHING).apply(Event.OUTCOME_UNKNOWN, "no answer")
    assert (unknown.note, unknown.apply(Event.RESUMED).note) == ("no answer", "")


def test_a_job_without_a_plan_says_so() -> None:
    with pytest.raises(FrazilError, match="no plan"):
        _ = Job("j").declared


def test_an_event_leaves_the_job_before_it_as_it_was() -> None:
    job = planned()
    job.apply(Event.SHARD_ACCEPTED, report("a"))
    assert job.accepted == {}
