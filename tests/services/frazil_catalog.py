"""Frazil's own catalog server, started by its command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

from .processes import free_ports, stop, wait_until

LONG_FIELDS: dict[str, Any] = {
    "type": "struct",
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}


@dataclass(frozen=True)
class Reply:
    """What a request was answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The body, which must be JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str, str]:
        """Code, type and message of the Iceberg error body, which must agree with the status."""
        error = self.document["error"]
        assert error["code"] == self.status
        return error["code"], error["type"], error["message"]


@dataclass(frozen=True)
class FrazilCatalog:
    """A running server."""

    root: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def uri(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        """Its SQLite database, as SQLAlchemy and PyIceberg write it."""
        return f"sqlite:///{self.root / 'catalog.db'}"

    def catalog(self) -> RestCatalog:
        """A new client."""
        return RestCatalog("frazil", uri=self.uri, warehouse="frazil")

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """One request, its path sent as it is."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, content, named)
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def new_namespace(self) -> str:
        """A namespace of the test's own."""
        name = f"n{uuid.uuid4().hex[:12]}"
        assert self.ask("POST", "/v1/namespaces", {"namespace": [name]}).status == 200
        return name

    def new_table(self, namespace: str, name: str = "t", **request: Any) -> Any:
        """A table of one column; what the server answered."""
        reply = self.ask("POST", f"/v1/namespaces/{namespace}/tables", {"name": name, "schema": LONG_FIELDS, **request})
        assert reply.status == 200, reply.body
        return reply.document

    def commit(self, namespace: str, table: str, requirements: list[Any], updates: list[Any], **headers: str) -> Reply:
        """An update-table request."""
        body = {"requirements": requirements, "updates": updates}
        return self.ask("POST", f"/v1/namespaces/{namespace}/tables/{table}", body, **headers)

    def is_up(self) -> bool:
        """Whether it says it is ready."""
        try:
            return self.ask("GET", "/ready").status == 200
        except OSError:
            return False


StartCatalog = Callable[..., FrazilCatalog]


@contextmanager
def running_catalog(
    root: Path, *options: str, environment: dict[str, str] | None = None, port: int | None = None
) -> Iterator[FrazilCatalog]:
    """A server over `root`, on a free port of the loopback."""
    port = port or free_ports(1)[0]
    root.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", "from frazil.cli.main import main; main()", "catalog"]
    command += ["--root", str(root), "--port", str(port), *options]
    log = root / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdout=output, stderr=subprocess.STDOUT
        )
    server = FrazilCatalog(root, port, process)
    try:
        wait_until(server.is_up, process)
        yield server
    finally:
        stop(process)


@pytest.fixture(scope="session")
def frazil_catalog() -> Iterator[FrazilCatalog]:
    """One server for the session: work in a namespace of your own."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-catalog-"))
    try:
        with running_catalog(folder / "lake") as server:
            yield server
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def namespace(frazil_catalog: FrazilCatalog) -> str:
    """A new, empty namespace of that server."""
    return frazil_catalog.new_namespace()
