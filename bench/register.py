"""Registering 5,000 small files: Frazil's job, PyIceberg's `add_files`, and merely reading the footers in two processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.ingest import turn
from bench.places import CHECKOUT, OWN, PEERS, WAREHOUSES, interpreter
from frazil.snapshot.name_mapping import set_name_mapping
from frazil.snapshot.schema import table_schema
from frazil.snapshot.warehouse import EmbeddedCatalog, create_table

ROOT = WAREHOUSES / "register"
FILES = 5000
ROWS = 20
PROCESSES = 2


def measure_register(rounds: int) -> dict[str, Any]:
    """Medians and every single measure, in seconds, without the start of a process or a session."""
    make_files()
    seconds: dict[str, list[float]] = defaultdict(list)
    try:
        with turn():
            for _ in range(rounds):
                seconds["floor"].append(floor())
                seconds["pyiceberg"].append(in_table(pyiceberg))
                seconds["frazil"].append(in_table(frazil))
    finally:
        shutil.rmtree(ROOT)
    medians = {name: median(values) for name, values in seconds.items()}
    return {
        "files": FILES,
        "medians": medians,
        "over_floor": medians["frazil"] / medians["floor"],
        "times_pyiceberg": medians["pyiceberg"] / medians["frazil"],
        "seconds": dict(seconds),
    }


def make_files() -> None:
    shutil.rmtree(ROOT, ignore_errors=True)
    (ROOT / "files").mkdir(parents=True)
    random = np.random.default_rng(1)
    columns: dict[str, Any] = {f"number_{at}": np.arange(ROWS) + at for at in range(6)}
    columns |= {f"text_{at}": [f"text {at} {row}" for row in range(ROWS)] for at in range(4)}
    columns |= {f"measure_{at}": random.random(ROWS) for at in range(4)}
    columns |= {"at": pa.array(range(ROWS), pa.timestamp("us")), "flag": [True, False] * (ROWS // 2)}
    for number in range(FILES):
        pq.write_table(pa.table(columns), ROOT / "files" / f"{number:05d}.parquet")


def paths() -> list[str]:
    return sorted(str(path) for path in (ROOT / "files").iterdir())


def floor() -> float:
    """Two processes, which are there already, read every footer."""
    every = paths()
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        list(pool.map(read_footers, [every[:1]] * PROCESSES * 4))  # both have started and imported
        began = time.monotonic()
        list(pool.map(read_footers, [every[at::PROCESSES] for at in range(PROCESSES)]))
        return time.monotonic() - began


def read_footers(files: list[str]) -> int:
    return sum(pq.read_metadata(file).num_rows for file in files)


def in_table(contender: Any) -> float:
    """Seconds of a contender that registers the files in a new, empty table."""
    lake = ROOT / "lake"
    (lake / "warehouse").mkdir(parents=True)
    try:
        schema = table_schema(pq.read_schema(paths()[0]), 2, "the files")
        table, _ = create_table(EmbeddedCatalog(lake), ("db", "t"), schema, None, {})
        set_name_mapping(table)
        seconds: float = contender(lake)
        total = EmbeddedCatalog(lake).load_table("db.t").current_snapshot().summary["total-records"]
        if int(total) != FILES * ROWS:
            raise RuntimeError(f"{contender.__name__} listed {total} rows of {FILES * ROWS}")
        return seconds
    finally:
        shutil.rmtree(lake)


def frazil(lake: Path) -> float:
    command = [str(interpreter(OWN).with_name("frazil")), "register", str(ROOT / "files"), "db.t"]
    environment = {**os.environ, "FRAZIL_STATE": str(lake / "state")}
    done = subprocess.run(
        [*command, "--root", str(lake), "--json"], env=environment, check=True, capture_output=True, text=True
    )
    return float(json.loads(done.stdout)["job_seconds"])


def pyiceberg(lake: Path) -> float:
    command = [str(interpreter(PEERS)), "-m", "bench.contenders.register_pyiceberg", str(lake), str(ROOT / "files")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT)
    return float(done.stdout)
