"""A change of a table's own metadata, tried until it is there: properties and schemas. (Snapshots are published elsewhere.)"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyiceberg.table.metadata import TableMetadata

from frazil.errors import CommitConflict, CommitRefused, OutcomeUnknown
from frazil.errors import NotLanded as NotLandedError
from frazil.snapshot.outcome import NotLanded, Unknown
from frazil.snapshot.retry import RetryPolicy
from frazil.snapshot.table import Accepted, CatalogTable, assert_table


@dataclass(frozen=True, slots=True)
class TableChange:
    """A kind of change: what it is called in errors, and the named steps before and after each commit of it."""

    doing: str
    begun: Callable[[], None]
    committed: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one attempt asks for: updates, and what must hold for them besides that the table is the same one."""

    updates: tuple[Any, ...]
    requirements: tuple[Any, ...] = ()


def change_table(
    target: CatalogTable,
    change: TableChange,
    attempt: Callable[[TableMetadata], Asked | None],
    holds: Callable[[TableMetadata], bool] = lambda _metadata: False,
    *,
    table_uuid: str | None = None,
) -> bool:
    """Change a table until it is done; False if there was nothing to do.

    `attempt` is given the newest metadata and says what to ask for, or None for nothing left to do; it is called anew
    after every conflict. After a lost reply `holds` says whether that attempt is what the table now shows. The table's
    `commit.retry.*` properties bound the tries; the errors are those of a publish.
    """
    policy = RetryPolicy.from_properties(target.metadata.properties)
    waits = policy.waits(time.monotonic, secrets.SystemRandom().random)
    answer: Accepted | NotLanded | Unknown | None = None
    while True:
        with target.exclusive():
            metadata = _look(target, change, table_uuid, first=answer is None)
            if isinstance(answer, Unknown) and holds(metadata):
                return True
            asked = attempt(metadata)
            if asked is None:
                return isinstance(answer, Unknown)  # it may have been this call that left nothing to do
            change.begun()
            answer = target.update([assert_table(metadata), *asked.requirements], asked.updates)
        match answer:
            case Accepted():
                change.committed()
                return True
            case NotLanded(conflict=False):
                raise CommitRefused(f"{change.doing} on table {target.name}: the catalog refused it: {answer.reason}")
        wait = next(waits, None)
        if wait is None:
            _give_up(target, change, answer)
        time.sleep(wait or 0)


def _look(target: CatalogTable, change: TableChange, table_uuid: str | None, *, first: bool) -> TableMetadata:
    try:
        return target.look(table_uuid, change.doing)
    except OutcomeUnknown as error:
        if not first:
            raise
        # Nothing has been asked for yet.
        raise NotLandedError(
            f"{change.doing} on table {target.name}: the catalog cannot be reached ({error.__cause__})"
        ) from error


def _give_up(target: CatalogTable, change: TableChange, answer: NotLanded | Unknown) -> None:
    if isinstance(answer, Unknown):
        raise OutcomeUnknown(
            f"{change.doing} on table {target.name}: the catalog never gave a clear answer ({answer.reason})"
        )
    raise CommitConflict(
        f"{change.doing} on table {target.name}: other writers were first at every try ({answer.reason}); try again, or "
        "raise the table property commit.retry.num-retries"
    )
