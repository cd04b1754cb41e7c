"""One of several processes that append to one table at the same time: what they share.

Each process says it is ready, waits until all are let go at once, and then appends one small batch after another. A
batch is tagged with its process and number, so that the table itself tells which of them landed.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = "bench.appends"
ROWS = 100
SCHEMA = pa.schema([("process", pa.int32()), ("number", pa.int32()), ("value", pa.int64()), ("note", pa.string())])
POLL = 0.01


@dataclass(frozen=True)
class Turn:
    """What one process is asked to do."""

    warehouse: str
    process: int
    appends: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def open_catalog(warehouse: str) -> SqlCatalog:
    """The SQLite catalog that all processes share."""
    return SqlCatalog("bench", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")


def batch(process: int, number: int) -> pa.Table:
    """One append's rows."""
    values = range(number * ROWS, (number + 1) * ROWS)
    columns = [[process] * ROWS, [number] * ROWS, list(values), [f"row {value}" for value in values]]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def run(append: Callable[[SqlCatalog, pa.Table], None]) -> None:
    """Take this process's turn. Prints a list with seconds and, where the caller saw a failure, its words."""
    turn = Turn(**json.loads(sys.argv[1]))
    catalog = open_catalog(turn.warehouse)
    wait_for_start(turn)
    results = []
    for number in range(turn.appends):
        rows = batch(turn.process, number)
        started = time.perf_counter()
        failure = attempt(lambda rows=rows: append(catalog, rows))
        results.append({"seconds": time.perf_counter() - started, "failure": failure})
    print(json.dumps(results))


def attempt(append: Callable[[], None]) -> str | None:
    """The failure that a caller of this library sees is what is measured here, whatever its type."""
    try:
        append()
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def wait_for_start(turn: Turn) -> None:
    folder = Path(turn.warehouse)
    (folder / f"ready-{turn.process}").touch()
    while not (folder / "go").exists():
        time.sleep(POLL)
