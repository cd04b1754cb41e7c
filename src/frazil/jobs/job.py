"""A job as a value: what it was asked to do, which shards it waits for, and what has happened so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from frazil.errors import FrazilError
from frazil.jobs.states import Event, State, next_state
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.report import Report


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job declares before its first shard is written. `request` is the command that was asked for, as values.

    `rejected` is the reservation on the table for rows that do not fit, where they are not an error.
    """

    snapshot: DistributedSnapshot
    shards: Mapping[str, Mapping[str, Any]]
    request: Mapping[str, Any]
    rejected: DistributedSnapshot | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job after some events. Each shard is accepted once, by whichever attempt reported first."""

    id: str
    state: State = State.NEW
    plan: Plan | None = None
    accepted: Mapping[str, Report] = field(default_factory=dict)
    runs: int = 0
    note: str = ""
    conflicted: bool = False

    def apply(self, event: Event, detail: Any = None) -> Job:
        """The job after one more event."""
        changed = replace(self, state=next_state(self.state, event))
        if event is Event.PLANNED:
            return replace(changed, plan=detail, runs=1)
        if event is Event.PUBLISHING and self.missing:
            raise FrazilError(f"job {self.id} cannot be published: shards {', '.join(self.missing)} have no report")
        if event is Event.RESUMED:
            return replace(changed, runs=self.runs + 1, note="")
        if event is Event.STARTED_OVER:
            return replace(changed, plan=replace(self.declared, shards=detail), accepted={}, note="")
        if event is Event.SHARD_ACCEPTED:
            return replace(changed, accepted=self._accept(detail))
        return replace(changed, note=str(detail or ""), conflicted=self.conflicted or event is Event.CONFLICTED)

    @property
    def declared(self) -> Plan:
        """The plan, which every job past its first event has."""
        if self.plan is None:
            raise FrazilError(f"job {self.id} has no plan yet")
        return self.plan

    @property
    def missing(self) -> list[str]:
        """The declared shards without an accepted report."""
        return [name for name in self.declared.shards if name not in self.accepted]

    def _accept(self, report: Report) -> Mapping[str, Report]:
        if report.shard not in self.declared.shards:
            raise FrazilError(f"job {self.id} was given a report for shard {report.shard!r}, which it never declared")
        if report.shard in self.accepted:
            return self.accepted
        return {**self.accepted, report.shard: report}
