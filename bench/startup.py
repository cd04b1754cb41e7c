"""What a user waits for around the work: `frazil --help`, and a load of 1,000 rows from the shell prompt and back."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from bench.ingest import turn
from bench.places import OWN, WAREHOUSES, interpreter

FRAZIL = interpreter(OWN).with_name("frazil")
HELP_RUNS = 10
SMALL_ROWS = 1_000


def measure_startup(source: str, rounds: int) -> dict[str, Any]:
    """Seconds of each, by the wall clock."""
    with turn():
        helps = [wall([str(FRAZIL), "--help"]) for _ in range(HELP_RUNS + 1)][1:]  # the first one warms the page cache
        small = [small_ingest(source) for _ in range(rounds)]
    return {"help_seconds": helps, "help_median": median(helps), "small_seconds": small, "small_median": median(small)}


def small_ingest(source: str) -> float:
    WAREHOUSES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="small-", dir=WAREHOUSES))
    try:
        rows = folder / "rows.parquet"
        pq.write_table(pq.ParquetFile(source).read_row_group(0).slice(0, SMALL_ROWS), rows)
        return wall([str(FRAZIL), "ingest", str(rows), "bench.small", "--root", str(folder / "lake"), "--json"])
    finally:
        shutil.rmtree(folder)


def wall(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - started
