"""When a fault strikes: on the nth event whose name matches."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import Generic, TypeVar

FaultT = TypeVar("FaultT")


@dataclass(slots=True)
class _Cue(Generic[FaultT]):
    fault: FaultT
    pattern: re.Pattern[str]
    struck_passes: range
    seen: int = field(default=0)


class Cues(Generic[FaultT]):
    """Faults waiting for their event. Safe to share between threads."""

    def __init__(self) -> None:
        self._cues: list[_Cue[FaultT]] = []
        self._lock = threading.Lock()

    def add(self, fault: FaultT, pattern: str, *, nth: int = 1, times: int = 1) -> None:
        """Strike at the `nth` event from now on that `pattern` is found in, and at the `times - 1` that follow it."""
        if nth < 1 or times < 1:
            raise ValueError(f"nth and times count from 1, not nth={nth}, times={times}")
        with self._lock:
            self._cues.append(_Cue(fault, re.compile(pattern), range(nth, nth + times)))

    def take(self, event: str) -> FaultT | None:
        """The fault that strikes this event, the earliest added first. Every matching cue counts the event."""
        with self._lock:
            struck = [cue for cue in self._cues if cue.pattern.search(event) and _count(cue) in cue.struck_passes]
            return struck[0].fault if struck else None

    def clear(self) -> None:
        """Forget every fault."""
        with self._lock:
            self._cues.clear()


def _count(cue: _Cue[FaultT]) -> int:
    cue.seen += 1
    return cue.seen
