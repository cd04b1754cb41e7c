"""Many processes append to one table: how many land, how many callers see a failure, how long the slowest waits.

The catalog is PyIceberg's `SqlCatalog` on SQLite for everyone. What landed is read from the table afterwards.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
from rich.table import Table

from bench.contenders.appends import SCHEMA, TABLE, Turn, open_catalog
from bench.ingest import turn
from bench.judge import data_files
from bench.places import CHECKOUT, OWN, PEERS, WAREHOUSES, interpreter

if TYPE_CHECKING:
    from rich.console import Console

PROCESSES = 8
APPENDS = 20
FIFTY = {"commit.retry.num-retries": "50"}


@dataclass(frozen=True, slots=True)
class Appender:
    """A library and the table properties it is given."""

    name: str
    home: Path
    module: str
    properties: dict[str, str]


APPENDERS = (
    Appender("pyiceberg", PEERS, "appends_pyiceberg", {}),
    Appender("pyiceberg, 50 retries", PEERS, "appends_pyiceberg", FIFTY),
    Appender("frazil", OWN, "appends_frazil", {}),
)


@dataclass(frozen=True, slots=True)
class Appended:
    """One run of all the processes."""

    appender: str
    asked: int
    landed: int
    failures: dict[str, int]
    slowest: float
    median: float
    wall: float


def measure_appends(names: list[str], rounds: int) -> list[Appended]:
    """Every appender, `rounds` times, interleaved."""
    chosen = [appender for appender in APPENDERS if appender.name.split(",")[0] in names]
    results = []
    for _ in range(rounds):
        for appender in chosen:
            with turn():
                results.append(measure(appender))
    return results


def measure(appender: Appender) -> Appended:
    WAREHOUSES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="appends-", dir=WAREHOUSES))
    try:
        catalog = open_catalog(str(folder))
        catalog.create_namespace("bench")
        catalog.create_table(TABLE, schema=SCHEMA, properties=appender.properties)
        replies, wall = run_processes(appender, folder)
        failures = Counter(reply["failure"] for reply in replies if reply["failure"])
        seconds = [reply["seconds"] for reply in replies]
        asked = PROCESSES * APPENDS
        return Appended(appender.name, asked, landed(folder), dict(failures), max(seconds), median(seconds), wall)
    finally:
        shutil.rmtree(folder)


def run_processes(appender: Appender, folder: Path) -> tuple[list[dict[str, Any]], float]:
    """All processes' answers, and the wall time from the common start to the last one's end."""
    command = [str(interpreter(appender.home)), "-m", f"bench.contenders.{appender.module}"]
    turns = [Turn(str(folder), process, APPENDS).to_json() for process in range(PROCESSES)]
    processes = [
        subprocess.Popen([*command, text], cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for text in turns
    ]
    while len(list(folder.glob("ready-*"))) < PROCESSES:
        if any(process.poll() for process in processes):
            break
        time.sleep(0.05)
    (folder / "go").touch()
    started = time.perf_counter()
    outputs = [process.communicate()[0] for process in processes]
    wall = time.perf_counter() - started
    if any(process.returncode for process in processes):
        raise RuntimeError(f"a process of {appender.name} broke down: run {' '.join(command)} '{turns[0]}' to see why")
    return [reply for output in outputs for reply in json.loads(output)], wall


def landed(folder: Path) -> int:
    """How many different appends the table's current snapshot holds."""
    paths = data_files(folder)
    if not paths:
        return 0
    tags = ds.dataset(paths, format="parquet").to_table(columns=["process", "number"])
    return tags.group_by(["process", "number"]).aggregate([]).num_rows


def show(results: list[Appended], console: Console) -> None:
    table = Table(title=f"{PROCESSES} processes, {APPENDS} appends each, to one table")
    for heading in ("appender", "landed", "callers who saw a failure", "slowest s", "median s", "wall s"):
        table.add_column(heading, justify="left" if heading == "appender" else "right")
    for one in results:
        failed = str(sum(one.failures.values()))
        times = [f"{value:.2f}" for value in (one.slowest, one.median, one.wall)]
        table.add_row(one.appender, f"{one.landed} of {one.asked}", failed, *times)
    console.print(table)


def as_json(results: list[Appended]) -> dict[str, Any]:
    return {"processes": PROCESSES, "appends": APPENDS, "runs": [asdict(one) for one in results]}
