"""A job's states and events, as a table.

Two rules: an event that is not in the table for the current state is refused; and nothing outside this table changes
a state. There is no I/O here and no clock.

`AlreadyConsumed` on resume is the event LANDED: only a job publishes its own reservation.
"""

from __future__ import annotations

from enum import StrEnum

from frazil.errors import FrazilError


class State(StrEnum):
    """Where a job stands."""

    NEW = "new"
    WRITING = "writing"
    PUBLISHING = "publishing"
    LANDED = "landed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class Event(StrEnum):
    """What happens to a job."""

    PLANNED = "planned"
    RESUMED = "resumed"
    STARTED_OVER = "started-over"
    SHARD_ACCEPTED = "shard-accepted"
    PUBLISHING = "publishing"
    LANDED = "landed"
    FAILED = "failed"
    CONFLICTED = "conflicted"
    OUTCOME_UNKNOWN = "outcome-unknown"
    CANCELLED = "cancelled"


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.NEW: {
        Event.PLANNED: State.WRITING,
    },
    State.WRITING: {
        Event.RESUMED: State.WRITING,
        Event.STARTED_OVER: State.WRITING,
        Event.SHARD_ACCEPTED: State.WRITING,
        Event.PUBLISHING: State.PUBLISHING,
        Event.FAILED: State.FAILED,
        Event.CANCELLED: State.CANCELLED,
    },
    State.PUBLISHING: {
        Event.RESUMED: State.WRITING,
        Event.LANDED: State.LANDED,
        Event.CONFLICTED: State.WRITING,
        Event.FAILED: State.FAILED,
        Event.OUTCOME_UNKNOWN: State.UNKNOWN,
    },
    State.UNKNOWN: {
        Event.RESUMED: State.WRITING,
    },
    State.LANDED: {},
    State.FAILED: {},
    State.CANCELLED: {},
}

FINISHED = frozenset(state for state, events in TRANSITIONS.items() if not events)


def next_state(state: State, event: Event) -> State:
    """The state after an event; one that the table does not allow is a bug in whoever drives it."""
    after = TRANSITIONS[state].get(event)
    if after is None:
        raise FrazilError(f"a job that is {state.value} cannot take the event {event.value}")
    return after
