"""Catalogs side by side: load-table, commit, list and create per second, with the 99th percentile of their times.

Frazil's catalog and SeaweedFS's are asked by the same client over HTTP, by as many connections; PyIceberg's SqlCatalog is a
library, called in the benchmark's own process by one thread, on a SQLite file like Frazil's. The contenders take turns.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import pyarrow as pa
import requests
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID, SetSnapshotRefUpdate
from rich.console import Console
from rich.table import Table

from bench.http_client import HttpClient
from bench.places import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "tests"))  # the services are started as the tests start them

from services import seaweedfs
from services.frazil_catalog import running_catalog
from services.processes import free_ports, stop, wait_until

CONNECTIONS = 8
TABLES = 100
COLUMNS = 10
OPERATIONS = ("load", "commit", "list", "create")
SCHEMA = {
    "type": "struct",
    "fields": [{"id": n, "name": f"c{n}", "type": "long", "required": False} for n in range(1, COLUMNS + 1)],
}
NAMESPACE = "bench"
SIZES = (10, 10_000)


class Contender(Protocol):
    """A catalog with `TABLES` tables in one namespace."""

    name: str
    connections: int

    def operation(self, name: str, connection: int) -> Callable[[], object]:
        """A function that does the operation once, for one connection alone."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What one contender did in one turn."""

    contender: str
    operation: str
    seconds: float
    times: tuple[float, ...]

    @property
    def per_second(self) -> float:
        return len(self.times) / self.seconds

    @property
    def p99(self) -> float:
        return sorted(self.times)[min(len(self.times) - 1, int(len(self.times) * 0.99))]


class RestContender:
    """A REST catalog at a port."""

    connections = CONNECTIONS

    def __init__(self, name: str, port: int, prefix: str, token: str | None = None) -> None:
        self.name, self._port, self._token = name, port, token
        self._tables = f"{prefix}/namespaces/{NAMESPACE}/tables"
        client = self._client()
        client.post(f"{prefix}/namespaces", {"namespace": [NAMESPACE]})
        self._metadata = [self._create(client, f"t{number}") for number in range(TABLES)]
        self._commits = [0] * TABLES

    def operation(self, name: str, connection: int) -> Callable[[], object]:
        client, turn = self._client(), iter(range(connection, 1 << 30))
        match name:
            case "load":
                return lambda: client.get_raw(f"{self._tables}/t{next(turn) * 7 % TABLES}")
            case "list":
                return lambda: client.get_raw(self._tables)
            case "create":
                unique = uuid.uuid4().hex[:8]
                return lambda: self._create(client, f"x{unique}_{next(turn)}")
        return lambda: self._commit(client, connection + CONNECTIONS * (next(turn) % (TABLES // CONNECTIONS)))

    def _client(self) -> _Client:
        return _Client(self._port, self._token)

    def _create(self, client: HttpClient, name: str) -> Any:
        return client.post(self._tables, {"name": name, "schema": SCHEMA})["metadata"]

    def _commit(self, client: _Client, table: int) -> None:
        self._commits[table] += 1
        metadata, number = self._metadata[table], self._commits[table]
        client.post_raw(f"{self._tables}/t{table}", commit_body(metadata, number))


class _Client(HttpClient):
    """Replies are received whole and checked for success, but not parsed: that is the same work for every contender."""

    def get_raw(self, path: str) -> bytes:
        return self._expect(*self.ask("GET", path))

    def post_raw(self, path: str, body: bytes) -> bytes:
        return self._expect(*self.ask("POST", path, body))

    @staticmethod
    def _expect(status: int, body: bytes) -> bytes:
        if status != 200:
            raise RuntimeError(f"{status} {body[:300]!r}")
        return body


def commit_body(metadata: Any, number: int) -> bytes:
    """An append of one snapshot, as a client sends it."""
    snapshot_id = 10**15 + number
    snapshot = snapshot_document(metadata["location"], snapshot_id, number)
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    requirements = [{"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}]
    return json.dumps(
        {"requirements": requirements, "updates": [{"action": "add-snapshot", "snapshot": snapshot}, ref]}
    ).encode()


def snapshot_document(location: str, snapshot_id: int, number: int) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "sequence-number": number,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"{location}/metadata/snap-{snapshot_id}-0-{uuid.uuid4()}.avro",
        "summary": summary_of(number),
        "schema-id": 0,
    }


def summary_of(number: int) -> dict[str, str]:
    return {
        "operation": "append",
        "added-data-files": "1",
        "added-records": "1000",
        "added-files-size": "10000",
        "total-data-files": str(number),
        "total-records": str(number * 1000),
    }


class SqlContender:
    """PyIceberg's SqlCatalog, in this process."""

    name = "pyiceberg-sql"
    connections = 1

    def __init__(self, folder: Path) -> None:
        self._catalog = SqlCatalog("sql", uri=f"sqlite:///{folder / 'sql.db'}", warehouse=f"file://{folder}/sql")
        self._catalog.create_namespace(NAMESPACE)
        self._schema = pa.schema([(f"c{number}", pa.int64()) for number in range(COLUMNS)])
        self._tables = [self._create(f"t{number}") for number in range(TABLES)]
        self._commits = [0] * TABLES

    def operation(self, name: str, connection: int) -> Callable[[], object]:
        turn = iter(range(connection, 1 << 30))
        match name:
            case "load":
                return lambda: self._catalog.load_table(f"{NAMESPACE}.t{next(turn) * 7 % TABLES}")
            case "list":
                return lambda: self._catalog.list_tables(NAMESPACE)
            case "create":
                unique = uuid.uuid4().hex[:8]
                return lambda: self._create(f"x{unique}_{next(turn)}")
        return lambda: self._commit(next(turn) % TABLES)

    def _create(self, name: str) -> IcebergTable:
        return self._catalog.create_table(f"{NAMESPACE}.{name}", self._schema)

    def _commit(self, number: int) -> None:
        self._commits[number] += 1
        table, count = self._tables[number], self._commits[number]
        document = snapshot_document(table.location(), 10**15 + count, count)
        summary = {key: value for key, value in summary_of(count).items() if key != "operation"}
        document["summary"] = Summary(Operation.APPEND, **summary)
        ref = SetSnapshotRefUpdate(ref_name="main", type=SnapshotRefType.BRANCH, snapshot_id=document["snapshot-id"])
        updates = (AddSnapshotUpdate(snapshot=Snapshot(**document)), ref)
        self._catalog.commit_table(table, (AssertTableUUID(uuid=table.metadata.table_uuid),), updates)


def measure_catalogs(rounds: int, seconds: float) -> dict[str, Any]:
    """Every measure, in turns: each operation of each contender once a round."""
    with ExitStack() as services:
        folder = Path(services.enter_context(tempfile.TemporaryDirectory(prefix="frazil-bench-")))
        frazil = services.enter_context(running_catalog(folder / "lake"))
        contenders: list[Contender] = [
            RestContender("frazil", frazil.port, "/v1/frazil"),
            RestContender("seaweedfs", *services.enter_context(seaweedfs_catalog())),
            SqlContender(folder),
        ]
        measures = [
            measure(contender, operation, seconds)
            for _ in range(rounds)
            for operation in OPERATIONS
            for contender in contenders
        ]
        growth = measure_growth(frazil.port, frazil.root)
    return {"rounds": rounds, "lines": lines(measures), "growth": growth}


def measure(contender: Contender, operation: str, seconds: float) -> Measure:
    """Do one operation over and over, on all connections at once."""
    times: list[float] = []
    failures: list[Exception] = []
    end = time.perf_counter() + seconds

    def work(connection: int) -> None:
        try:
            once = contender.operation(operation, connection)
            while (began := time.perf_counter()) < end:
                once()
                times.append(time.perf_counter() - began)
        except Exception as error:  # noqa: BLE001  it is raised again below, outside of the thread
            failures.append(error)

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(contender.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(f"{contender.name}: {operation} failed") from failures[0]
    return Measure(contender.name, operation, time.perf_counter() - began, tuple(times))


def lines(measures: list[Measure]) -> list[dict[str, Any]]:
    """Medians over the rounds, with every single measure beside them."""
    found = []
    for operation in OPERATIONS:
        for contender in dict.fromkeys(each.contender for each in measures):
            turns = [each for each in measures if (each.contender, each.operation) == (contender, operation)]
            found.append(
                {
                    "operation": operation,
                    "contender": contender,
                    "per_second": median(each.per_second for each in turns),
                    "p99_ms": median(each.p99 for each in turns) * 1000,
                    "turns": [{"per_second": each.per_second, "p99_ms": each.p99 * 1000} for each in turns],
                }
            )
    return found


def measure_growth(port: int, root: Path, commits: int = 40) -> dict[str, Any]:
    """What a commit to a table with many snapshots costs against one with few; the two take turns."""
    client = _Client(port)
    prefix = f"/v1/frazil/namespaces/{NAMESPACE}"
    tables = {size: _table_with_snapshots(client, prefix, root, size) for size in SIZES}
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    for turn in range(1, commits + 1):
        for size, metadata in tables.items():
            body = commit_body(metadata, size + turn)
            began = time.perf_counter()
            client.post_raw(f"{prefix}/tables/grown{size}", body)
            times[size].append(time.perf_counter() - began)
    few, many = (median(times[size][5:]) * 1000 for size in SIZES)
    return {"commit_ms": {str(SIZES[0]): few, str(SIZES[1]): many}, "ratio": many / few}


def _table_with_snapshots(client: _Client, prefix: str, root: Path, size: int) -> Any:
    """A table whose metadata has that many snapshots, made as a file and registered."""
    metadata = client.post(f"{prefix}/tables", {"name": f"seed{size}", "schema": SCHEMA})["metadata"]
    snapshots = [snapshot_document(metadata["location"], number, number) for number in range(1, size + 1)]
    metadata |= {
        "snapshots": snapshots,
        "snapshot-log": [
            {"snapshot-id": each["snapshot-id"], "timestamp-ms": each["timestamp-ms"]} for each in snapshots
        ],
        "current-snapshot-id": size,
        "refs": {"main": {"snapshot-id": size, "type": "branch"}},
        "last-sequence-number": size,
        "last-updated-ms": snapshots[-1]["timestamp-ms"],
    }
    file = root / "warehouse" / f"grown{size}.metadata.json"
    file.write_text(json.dumps(metadata))
    client.post(f"{prefix}/register", {"name": f"grown{size}", "metadata-location": f"file://{file}"})
    return metadata


@contextmanager
def seaweedfs_catalog() -> Iterator[tuple[int, str, str]]:
    """SeaweedFS's own catalog: its port, the prefix of its paths and a token."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-seaweedfs-"))
    ports = free_ports(2 * len(seaweedfs._PORTS) + 1)
    process = seaweedfs._start(folder, ports)
    try:
        service = seaweedfs.SeaweedFS(f"http://127.0.0.1:{ports[3]}", f"http://127.0.0.1:{ports[-1]}")
        wait_until(lambda: seaweedfs._answers(service), process)
        credentials = {
            "grant_type": "client_credentials",
            "client_id": service.access_key,
            "client_secret": service.secret_key,
        }
        answer = requests.post(f"{service.catalog_uri}/v1/oauth/tokens", data=credentials, timeout=10)
        yield ports[-1], f"/v1/{service.table_bucket}", answer.json()["access_token"]
    finally:
        stop(process)
        seaweedfs._remove_sockets(ports)
        shutil.rmtree(folder)


def show(result: dict[str, Any], console: Console) -> None:
    table = Table(title=f"catalogs, {result['rounds']} rounds, medians")
    for heading in ("operation", "contender", "per second", "p99 ms"):
        table.add_column(heading, justify="left" if heading in ("operation", "contender") else "right", no_wrap=True)
    for line in result["lines"]:
        table.add_row(line["operation"], line["contender"], f"{line['per_second']:,.0f}", f"{line['p99_ms']:.1f}")
    console.print(table)
    few, many = (result["growth"]["commit_ms"][str(size)] for size in SIZES)
    console.print(
        f"a commit to a table with {SIZES[1]:,} snapshots: {many:.1f} ms, with {SIZES[0]}: {few:.1f} ms, "
        f"{result['growth']['ratio']:.2f} times"
    )
