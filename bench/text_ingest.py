"""CSV and JSON lines into tables, beside DuckDB and Polars that read the same file into one Parquet file.

The peers commit nothing and cannot be resumed: they are here as the speed of reading text and writing Parquet.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import duckdb

from bench.places import OWN, WAREHOUSES, interpreter
from bench.startup import FRAZIL

FILES_OF_LINEITEM = 4
PROGRAMS = {
    "duckdb": """import duckdb; duckdb.sql("SET enable_progress_bar = false")
duckdb.sql("COPY (FROM '{path}') TO '{out}' (COMPRESSION zstd)")""",
    "polars": "import polars; polars.{scan}('{path}'{more}).sink_parquet('{out}', compression='zstd')",
}
SCANS = {"csv": ("scan_csv", ", try_parse_dates=True"), "jsonl": ("scan_ndjson", "")}
WRITTEN = {"csv": "(HEADER)", "jsonl": "(FORMAT json)"}


def main(lineitem: Path, rounds: int = 3) -> None:
    """Print the median seconds of each contender: Frazil's without the start of Spark, the peers' without imports."""
    for suffix, options in WRITTEN.items():
        with _folder() as folder:
            path = folder / f"lineitem.{suffix}"
            files = [str(file) for file in sorted(lineitem.glob("*.parquet"))[:FILES_OF_LINEITEM]]
            duckdb.sql(f"COPY (FROM read_parquet({files})) TO '{path}' {options}")
            rows = duckdb.sql(f"SELECT count(*) FROM read_parquet({files})").fetchall()[0][0]
            contenders: dict[str, Callable[[], float]] = {
                "frazil": lambda path=path, rows=rows, folder=folder: _frazil(path, rows, folder),
                **{name: lambda name=name, path=path, suffix=suffix: _peer(name, path, suffix) for name in PROGRAMS},
            }
            seconds: dict[str, list[float]] = {name: [] for name in contenders}
            for _ in range(rounds):
                for name, run in contenders.items():
                    seconds[name].append(run())
            print(f"{suffix}: {rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB")
            for name, each in seconds.items():
                print(f"  {name:8} {median(each):6.2f} s   of {', '.join(f'{one:.2f}' for one in each)}")


def _frazil(path: Path, rows: int, folder: Path) -> float:
    root = folder / "lake"
    command = [str(FRAZIL), "ingest", str(path), "bench.t", "--root", str(root), "--json"]
    result = json.loads(
        subprocess.run(
            command, check=True, capture_output=True, env={**os.environ, "FRAZIL_STATE": str(folder / "state")}
        ).stdout
    )
    shutil.rmtree(root)
    if result["rows"] != rows:
        raise AssertionError(f"Frazil wrote {result['rows']} rows of {rows}")
    return float(result["job_seconds"])


def _peer(name: str, path: Path, suffix: str) -> float:
    scan, more = SCANS[suffix]
    out = path.with_name("peer.parquet")
    work = PROGRAMS[name].format(path=path, out=out, scan=scan, more=more)
    imports, _, rest = work.partition("; ")
    program = f"import time\n{imports}\nbegan = time.monotonic()\n{rest}\nprint(time.monotonic() - began)"
    done = subprocess.run([interpreter(OWN), "-c", program], check=True, capture_output=True, text=True)
    out.unlink()
    return float(done.stdout)


@contextmanager
def _folder() -> Iterator[Path]:
    WAREHOUSES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="text-", dir=WAREHOUSES))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
