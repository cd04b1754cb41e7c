"""A catalog behind its guard, served on the loopback from a thread: its clock, its log and its database are the test's."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from pyiceberg.catalog.rest import RestCatalog
from starlette.types import ASGIApp

from frazil.catalog.access_log import JsonLines
from frazil.catalog.app import create_app
from frazil.catalog.backend import Backend
from frazil.catalog.guard import Guard
from frazil.catalog.guard_settings import GuardSettings
from frazil.catalog.principals import Credential, Principals
from frazil.catalog.privileges import CATALOG, Place, Privilege
from frazil.catalog.roles import Grant, Roles
from frazil.catalog.settings import ServerSettings
from services.processes import free_ports

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The address of an app, while it is served."""
    (port,) = free_ports(1)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, lifespan="on", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server ended before it was ready"
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@dataclass
class GuardedCatalog:
    """A running catalog, and what a test does with it."""

    uri: str
    backend: Backend
    log: io.BytesIO
    root: Credential | None
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What was logged so far."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    @property
    def roles(self) -> Roles:
        """The roles of its database."""
        return Roles(self.backend.database, self.backend.settings.name)

    @property
    def principals(self) -> Principals:
        """The principals of its database."""
        return Principals(self.backend.database, self.backend.clock_ms)

    def principal(self, name: str, *grants: tuple[Privilege, Place]) -> Credential:
        """A new principal with a role of its own, which is granted these."""
        self.roles.add(name)
        for privilege, place in grants:
            self.roles.grant(Grant(name, privilege, place))
        return self.principals.add(name, (name,))

    def token(self, credential: Credential) -> str:
        """A token for client credentials; the same one when asked again."""
        if credential.client_id not in self.tokens:
            form = {
                "grant_type": "client_credentials",
                "client_id": credential.client_id,
                "client_secret": credential.secret,
            }
            reply = requests.post(f"{self.uri}/v1/oauth/tokens", data=form, timeout=10)
            self.tokens[credential.client_id] = reply.json()["access_token"]
        return self.tokens[credential.client_id]

    def ask(
        self, credential: Credential | None, method: str, path: str, body: Any = None, **headers: str
    ) -> requests.Response:
        """A request under `/v1/frazil`, as somebody or as nobody."""
        bearer = {"Authorization": f"Bearer {self.token(credential)}"} if credential else {}
        return requests.request(
            method, f"{self.uri}/v1/frazil/{path}", json=body, headers={**bearer, **headers}, timeout=30
        )

    def client(self, credential: Credential | None, **properties: str) -> RestCatalog:
        """PyIceberg, as somebody."""
        if credential is not None:
            properties["credential"] = str(credential)
        return RestCatalog("guarded", uri=self.uri, **properties)

    def make(self, *names: str) -> None:
        """Namespaces `db` and `other`, and tables in them: `db.t`."""
        for namespace in {name.split(".")[0] for name in names}:
            self.ask(self.root, "POST", "namespaces", {"namespace": [namespace]}).raise_for_status()
        for name in names:
            namespace, _, table = name.partition(".")
            request = {"name": table, "schema": SCHEMA}
            self.ask(self.root, "POST", f"namespaces/{namespace}/tables", request).raise_for_status()


Start = Callable[..., GuardedCatalog]


@contextmanager
def guarded_catalogs(folder: Path) -> Iterator[Start]:
    """Starts catalogs in a folder: `start(authentication=True, …)` takes the fields of `GuardSettings`."""
    with ExitStack() as running:

        def start(
            *,
            warehouse: str | None = None,
            storage: dict[str, str] | None = None,
            clock_ms: Callable[[], int] | None = None,
            wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app,
            **settings: Any,
        ) -> GuardedCatalog:
            (folder / "warehouse").mkdir(exist_ok=True)
            server = ServerSettings(
                f"sqlite:///{folder}/catalog.db", warehouse or f"file://{folder}/warehouse", storage=storage or {}
            )
            backend, log = Backend.open(server), io.BytesIO()
            if clock_ms is not None:
                backend = replace(backend, clock_ms=clock_ms)
            guard = Guard.around(backend, GuardSettings(**{"remember_seconds": 0.001, **settings}), JsonLines(log))
            app = guard.wrap(wrap(create_app(guard.backend, also=guard.endpoints)))
            uri = running.enter_context(served(app))
            catalog = GuardedCatalog(uri, backend, log, None)
            if settings.get("authentication"):
                catalog.root = catalog.principal("root", (Privilege.MANAGE, CATALOG))
            return catalog

        yield start


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Start]:
    """Starts catalogs of the test's own."""
    with guarded_catalogs(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def shared_guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts catalogs for all tests of a module."""
    with guarded_catalogs(tmp_path_factory.mktemp("guarded")) as start:
        yield start
