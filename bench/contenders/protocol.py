"""How the harness and a contender talk: one `Task` as JSON in the first argument, one JSON line on standard output.

Standard library only: every interpreter of the benchmark imports this module.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROCESSES = 2


@dataclass(frozen=True)
class Task:
    """What a contender is asked to load. `layout` is "unpartitioned" or "month" (of l_shipdate)."""

    sources: list[str]
    warehouse: str
    layout: str

    @property
    def by_month(self) -> bool:
        return self.layout == "month"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_arguments(cls) -> Task:
        return cls(**json.loads(sys.argv[1]))


@dataclass(frozen=True)
class Run:
    """One load: from opening the sources to the committed snapshot. `folder` holds what was written."""

    seconds: float
    folder: str
    kind: str = ""
    session_seconds: float | None = None


def timed(load: Callable[[], Any], folder: Path | str, kind: str = "") -> Run:
    """Run `load` once, from a disk that has nothing left to write back."""
    os.sync()
    started = time.perf_counter()
    load()
    return Run(time.perf_counter() - started, str(folder), kind)


def answer(runs: list[Run], versions: dict[str, str]) -> None:
    """Hand the result to the harness."""
    print(json.dumps({"runs": [asdict(run) for run in runs], "versions": versions}), flush=True)
