"""Lost, refused and overtaken commits on a catalog that is not behind HTTP."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from frazil.snapshot import native_reservation
from frazil.testing.cues import Cues

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.update import TableRequirement, TableUpdate


def _lost_reply() -> Exception:
    return ConnectionError("injected: the connection was closed before the reply came")


@dataclass(frozen=True, slots=True)
class CommitCall:
    """One call of `commit_table`. `landed`: the catalog accepted it, whatever the caller heard."""

    identifier: tuple[str, ...]
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    landed: bool


@dataclass(frozen=True, slots=True)
class _CommitFault:
    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None


def _raiser(error: Callable[[], Exception]) -> Callable[[], object]:
    def fail() -> object:
        raise error()

    return fail


class FaultyCatalog:
    """Stands in the way of `catalog.commit_table`, between entry and exit of the context.

    The catalog stays the object it is, so tables loaded from it before and after commit through here.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._commit = catalog.commit_table
        self._send = native_reservation.send
        self._cues: Cues[_CommitFault] = Cues()
        self._lock = threading.Lock()
        self._inside = threading.local()
        self._commits: list[CommitCall] = []

    @property
    def commits(self) -> tuple[CommitCall, ...]:
        """Every commit that was tried, in the order in which it ended."""
        with self._lock:
            return tuple(self._commits)

    def fail_before(
        self, error: Callable[[], Exception] = _lost_reply, *, table: str = ".", nth: int = 1, times: int = 1
    ) -> None:
        """Raise `error()` in place of the nth commit to a table in whose dotted name the pattern `table` is found."""
        self._cues.add(_CommitFault(before=_raiser(error)), table, nth=nth, times=times)

    def lose_reply(
        self, error: Callable[[], Exception] = _lost_reply, *, table: str = ".", nth: int = 1, times: int = 1
    ) -> None:
        """The nth commit lands, and its caller gets `error()`. A commit that the catalog refuses is refused as ever."""
        self._cues.add(_CommitFault(after=_raiser(error)), table, nth=nth, times=times)

    def overtake(self, rival: Callable[[], object], *, table: str = ".", nth: int = 1, times: int = 1) -> None:
        """Run `rival()` just before the nth commit is handed on. What it commits passes uncounted and unrecorded."""
        self._cues.add(_CommitFault(before=rival), table, nth=nth, times=times)

    def __enter__(self) -> FaultyCatalog:
        vars(self.catalog)["commit_table"] = partial(self._commit_through, self._commit)
        native_reservation.send = self._send_through
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del vars(self.catalog)["commit_table"]
        native_reservation.send = self._send

    def _send_through(self, table: Table, requirements: Sequence[Any], updates: Sequence[Any]) -> CommitTableResponse:
        """The other way to the same catalog: for words that PyIceberg does not know."""
        if table.catalog is not self.catalog:
            return self._send(table, requirements, updates)
        return self._commit_through(self._send, table, requirements, updates)

    def _commit_through(
        self, commit: Callable[..., CommitTableResponse], table: Table, requirements: Any, updates: Any
    ) -> CommitTableResponse:
        if getattr(self._inside, "fault", False):
            return commit(table, requirements, updates)
        fault = self._cues.take(".".join(table.name())) or _CommitFault()
        landed = False
        try:
            self._suffer(fault.before)
            response = commit(table, requirements, updates)
            landed = True
            self._suffer(fault.after)
            return response
        finally:
            self._record(table, requirements, updates, landed)

    def _suffer(self, act: Callable[[], object] | None) -> None:
        if act is None:
            return
        self._inside.fault = True
        try:
            act()
        finally:
            self._inside.fault = False

    def _record(self, table: Table, requirements: Any, updates: Any, landed: bool) -> None:
        call = CommitCall(tuple(table.name()), tuple(requirements), tuple(updates), landed)
        with self._lock:
            self._commits.append(call)
