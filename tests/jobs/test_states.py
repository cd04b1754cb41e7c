"""A job's states and events: the table, whole."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil import FrazilError
from frazil.jobs.states import FINISHED, TRANSITIONS, Event, State, next_state


def test_every_state_has_a_row() -> None:
    assert TRANSITIONS.keys() == set(State)


@pytest.mark.parametrize(("state", "event"), itertools.product(State, Event))
def test_an_event_leads_where_the_table_says_or_is_refused(state: State, event: Event) -> None:
    if event in TRANSITIONS[state]:
        assert next_state(state, event) is TRANSITIONS[state][event]
    else:
        with pytest.raises(FrazilError, match=f"{state.value} cannot take the event {event.value}"):
            next_state(state, event)


def test_every_state_can_be_reached_and_every_event_happens_somewhere() -> None:
    reached, before = {State.NEW}, set()
    while reached != before:
        before = set(reached)
        reached |= {after for state in before for after in TRANSITIONS[state].values()}
    assert reached == set(State)
    assert {event for events in TRANSITIONS.values() for event in events} == set(Event)


def test_from_every_state_some_end_can_be_reached() -> None:
    for start in State:
        reached, before = {start}, set()
        while reached != before:
            before = set(reached)
            reached |= {after for state in before for after in TRANSITIONS[state].values()}
        assert reached & FINISHED


@given(st.lists(st.sampled_from(Event), max_size=20))
def test_what_has_landed_or_failed_stays_so(events: list[Event]) -> None:
    state = State.NEW
    for event in events:
        if event not in TRANSITIONS[state]:
            continue
        assert state not in FINISHED
        state = next_state(state, event)


def test_an_unknown_outcome_is_never_taken_for_a_failure() -> None:
    assert set(TRANSITIONS[State.UNKNOWN]) == {Event.RESUMED}
    assert State.UNKNOWN not in FINISHED
