"""Medians, ranges and ratios: on screen as a table, on disk as JSON with every single measure beside them."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil
from rich.table import Table

from bench.places import RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rich.console import Console

    from bench.ingest import Measure

FLOOR = "floor"
FRAZIL = "frazil"
FRAZIL_FRAME = "frame warm"
HEADINGS = ("contender", "median s", "range", "x floor", "x frazil", "session s", "peak MB", "files", "MB", "others")
CAPTION = (
    "x frazil: how many times as long as Frazil's job; peak MB: PSS of the process tree; "
    "others: CPU seconds the rest of the machine used during the process, median"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A contender in one layout over all rounds. A median exists only when every load was verified."""

    contender: str
    layout: str
    runs: int
    median: float | None
    fastest: float | None
    slowest: float | None
    session: float | None
    peak_memory: int | None
    files: int | None
    bytes: int | None
    others_cpu_seconds: float | None
    failures: tuple[str, ...]


def lines(measures: Iterable[Measure]) -> list[Line]:
    grouped: dict[tuple[str, str], list[Measure]] = {}
    for measure in measures:
        grouped.setdefault((measure.layout, measure.contender), []).append(measure)
    return [line(contender, layout, group) for (layout, contender), group in grouped.items()]


def line(contender: str, layout: str, group: list[Measure]) -> Line:
    failures = tuple(measure.failure for measure in group if measure.failure)
    seconds = [] if failures else [measure.seconds for measure in group if measure.seconds is not None]
    sessions = [measure.session_seconds for measure in group if measure.session_seconds is not None]
    others = [measure.others_cpu_seconds for measure in group if measure.others_cpu_seconds is not None]
    held = next((measure.holdings for measure in group if measure.holdings), None)
    return Line(
        contender,
        layout,
        len(group),
        median(seconds) if seconds else None,
        min(seconds, default=None),
        max(seconds, default=None),
        median(sessions) if sessions else None,
        max((measure.peak_memory for measure in group if measure.peak_memory), default=None),
        held.files if held else None,
        held.bytes if held else None,
        median(others) if others else None,
        failures,
    )


def show(measures: list[Measure], startup: Mapping[str, Any] | None, console: Console) -> None:
    """One table per layout, then what went wrong, then what a user waits for around the work."""
    found = lines(measures)
    for layout in dict.fromkeys(one.layout for one in found):
        here = [one for one in found if one.layout == layout]
        console.print(layout_table(layout, here))
        for one in here:
            for failure in dict.fromkeys(one.failures):
                console.print(f"{one.contender}, {layout}: {failure}", markup=False, highlight=False)
    if startup:
        console.print(f"frazil --help: {startup['help_median']:.3f} s; 1,000 rows: {startup['small_median']:.2f} s")


def layout_table(layout: str, found: list[Line]) -> Table:
    medians = {one.contender: one.median for one in found}
    table = Table(title=f"lineitem, {layout}", caption=CAPTION)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "contender" else "right", no_wrap=True)
    for one in sorted(found, key=lambda one: one.median or float("inf")):
        table.add_row(*cells(one, medians.get(FLOOR), medians.get(FRAZIL) or medians.get(FRAZIL_FRAME)))
    return table


def cells(one: Line, floor: float | None, frazil: float | None) -> list[str]:
    return [
        one.contender,
        number(one.median),
        "failed" if one.failures else f"{number(one.fastest)} - {number(one.slowest)}",
        number(ratio(one.median, floor)),
        number(ratio(one.median, frazil)),
        number(one.session),
        megabytes(one.peak_memory),
        str(one.files or ""),
        megabytes(one.bytes),
        number(one.others_cpu_seconds),
    ]


def ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value and base else None


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:,.0f}"


def save(name: str, content: dict[str, Any]) -> Path:
    """`.bench/results/<name>.json`, with the machine it was measured on."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **content}, indent=1) + "\n")
    return path


def machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def as_json(measures: list[Measure]) -> dict[str, Any]:
    return {"lines": [asdict(one) for one in lines(measures)], "measures": [asdict(measure) for measure in measures]}
