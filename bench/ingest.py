"""The load of TPC-H lineitem, contender after contender, round after round.

One round runs every contender once per layout, so that whatever the machine does to one, it does to its neighbours too.
Each starts from the same state: sources read once into the page cache, nothing dirty, an empty warehouse that is
deleted afterwards. Set FRAZIL_BENCH_LOCK to a file to take turns with other work on the machine: it is held for one
contender at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.contenders.protocol import Run, Task
from bench.judge import Holdings, data_files, holdings
from bench.places import CHECKOUT, OWN, PEERS, SPARK35, WAREHOUSES, interpreter
from bench.tree_watch import TreeWatch, machine_cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator


LAYOUTS = ("unpartitioned", "month")
HOMES = {"floor": PEERS, "pyiceberg": PEERS, "polars": PEERS, "daft": PEERS, "spark35": SPARK35, "frazil": OWN}
FRAMES = {"spark35": SPARK35, "frame": OWN}
"""Who writes a DataFrame, by the same plan: Spark reads the files and hands the rows to the sink."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One verified load, or what went wrong instead."""

    contender: str
    layout: str
    seconds: float | None = None
    session_seconds: float | None = None
    peak_memory: int | None = None
    others_cpu_seconds: float | None = None
    holdings: Holdings | None = None
    versions: dict[str, str] | None = None
    failure: str | None = None


def measure_all(sources: list[str], contenders: list[str], layouts: list[str], rounds: int) -> Iterator[Measure]:
    """Every contender in every layout, `rounds` times, interleaved; each measure as soon as it is there."""
    expected = holdings(sources)
    for _ in range(rounds):
        for layout in layouts:
            for contender in contenders:
                yield from measure_one(contender, layout, sources, expected)


def measure_one(contender: str, layout: str, sources: list[str], expected: Holdings) -> list[Measure]:
    """One process of a contender, judged; Spark gives several loads from one session."""
    WAREHOUSES.mkdir(parents=True, exist_ok=True)
    warehouse = Path(tempfile.mkdtemp(prefix=f"{contender}-", dir=WAREHOUSES))
    try:
        with turn():
            warm(sources)
            ended = run_contender(contender, Task(sources, str(warehouse), layout))
        measure = Measure(contender, layout, peak_memory=ended.peak_memory, others_cpu_seconds=ended.others_cpu_seconds)
        if ended.code:
            return [replace(measure, failure=last_line(ended.errors))]
        reply = json.loads(ended.output.splitlines()[-1])
        measure = replace(measure, versions=reply["versions"])
        return [judged(measure, Run(**run), expected) for run in reply["runs"]]
    finally:
        shutil.rmtree(warehouse)


@dataclass(frozen=True, slots=True)
class Ended:
    """A contender's process when it is over. `others_cpu_seconds`: what the rest of the machine computed meanwhile."""

    code: int
    output: str
    errors: str
    peak_memory: int
    others_cpu_seconds: float


def run_contender(contender: str, task: Task) -> Ended:
    command = [str(interpreter((HOMES | FRAMES)[contender])), "-m", f"bench.contenders.{contender}", task.to_json()]
    before = machine_cpu_seconds()
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watch = TreeWatch(process.pid)
        output, errors = process.communicate()
        watch.stop()
    others = max(0.0, machine_cpu_seconds() - before - watch.cpu_seconds)
    return Ended(process.returncode, output, errors, watch.peak_memory, others)


def judged(measure: Measure, run: Run, expected: Holdings) -> Measure:
    """The measure with the run's figures and the verdict on what it left behind."""
    held = holdings(data_files(Path(run.folder)))
    failure = held.lost(expected)
    if failure is None and measure.layout == "month" and held.months_mixed:
        failure = f"{held.months_mixed} of {held.files} files hold more than one month"
    return replace(
        measure,
        contender=f"{measure.contender} {run.kind}".strip(),
        seconds=run.seconds,
        session_seconds=run.session_seconds,
        holdings=held,
        failure=failure,
    )


def warm(sources: list[str]) -> None:
    """Leave the sources in the page cache and nothing of the last run waiting to be written."""
    os.sync()
    for source in sources:
        Path(source).read_bytes()


def last_line(errors: str) -> str:
    return next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "ended without a word")


@contextmanager
def turn() -> Iterator[None]:
    """Hold the machine's lock, if one is named."""
    path = os.environ.get("FRAZIL_BENCH_LOCK")
    if not path:
        yield
        return
    with Path(path).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
