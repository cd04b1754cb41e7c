"""What is told of every request: a line of JSON, numbers for Prometheus, and a line more for each change.

A line holds no header but the request id, no query and no body: those are where secrets travel.
"""

from __future__ import annotations

import re
import sys
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, Final

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frazil.catalog.access import PRINCIPAL
from frazil.catalog.caller import Caller
from frazil.catalog.metrics import Counter, Gauge, Histogram, Metric

RECORD: Final = "frazil.record"
"""The key of the ASGI scope under which the request's `Record` stands."""
READING: Final = frozenset(
    {
        "getConfig", "getToken", "listNamespaces", "loadNamespaceMetadata", "namespaceExists", "listTables", "loadTable",
        "tableExists", "loadCredentials", "signRequest", "planTableScan", "fetchPlanningResult", "cancelPlanning",
        "fetchScanTasks", "listViews", "loadView", "viewExists", "reportMetrics", "listMetricsReports",
        "health", "ready", "metrics", "unknown",
    }
)  # fmt: skip
"""The operations that change nothing that another caller could see. All others are audited."""
_FREQUENT: Final = frozenset({"health", "ready", "metrics"})
"""Asked for every few seconds, by machines: told only when they fail."""
_GIVEN_ID: Final = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


class JsonLines:
    """Writes one JSON object per line. Thread-safe, and many processes may share the stream: a line is one write."""

    def __init__(self, stream: IO[bytes] | None = None) -> None:
        self._stream = stream or sys.stdout.buffer
        self._lock = threading.Lock()

    def write(self, **fields: Any) -> None:
        """One line; fields that are None are left out."""
        line = orjson.dumps({key: value for key, value in fields.items() if value is not None})
        with self._lock:
            self._stream.write(line + b"\n")
            self._stream.flush()


@dataclass(slots=True)
class Record:
    """What is known of one request; whoever serves it fills it in."""

    request_id: str
    operation: str = "unknown"
    """The operationId, once a route has matched."""
    status: int = 500
    """Until something else is sent: whoever raises past every handler leaves the client with this."""
    bytes: int = 0


def note_operation(scope: Scope, operation: str) -> None:
    """Whoever has matched a route says which operation it is."""
    record = scope.get(RECORD)
    if isinstance(record, Record):
        record.operation = operation


class RequestMetrics:
    """The numbers about requests to one process. A port that several share answers for one of them at a time."""

    def __init__(self, process: str) -> None:
        self._process = process
        self.requests = Counter(
            "frazil_catalog_requests_total", "Requests by operation and status.", ("process", "operation", "status")
        )
        self.seconds = Histogram(
            "frazil_catalog_request_seconds",
            "Seconds from a request to the end of its reply.",
            ("process", "operation"),
        )
        self.changes = Counter(
            "frazil_catalog_changes_total", "Changes by operation and outcome.", ("process", "operation", "outcome")
        )
        self.in_flight = 0

    def note(self, record: Record, seconds: float) -> None:
        """A request is over."""
        self.requests.add(self._process, record.operation, str(record.status))
        self.seconds.observe(seconds, self._process, record.operation)
        if record.operation not in READING:
            self.changes.add(self._process, record.operation, _outcome(record.status))

    def all(self) -> list[Metric]:
        """What /metrics shows."""
        name, told = "frazil_catalog_requests_in_flight", "Requests not answered yet."
        return [self.requests, self.seconds, self.changes, Gauge(name, told, lambda: self.in_flight)]


class AccessLog:
    """The outermost middleware: it gives each request an id, and tells how the request ended."""

    def __init__(
        self,
        app: ASGIApp,
        log: JsonLines | None,
        metrics: RequestMetrics,
        wall_clock: Callable[[], float],
        stopwatch: Callable[[], float],
    ) -> None:
        self._app = app
        self._log = log
        self._metrics = metrics
        self._wall_clock = wall_clock
        self._stopwatch = stopwatch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        watch = _Watch(scope, Record(_request_id(scope)), send, self._tell, self._stopwatch)
        self._metrics.in_flight += 1
        try:
            await self._app(scope, receive, watch)
        finally:
            self._metrics.in_flight -= 1
            watch.tell()

    def _tell(self, scope: Scope, record: Record, seconds: float) -> None:
        self._metrics.note(record, seconds)
        if self._log is not None and not (record.operation in _FREQUENT and record.status == 200):
            self._write(self._log, scope, record, seconds)

    def _write(self, log: JsonLines, scope: Scope, record: Record, seconds: float) -> None:
        caller = scope.get(PRINCIPAL)
        common = {
            "time": datetime.fromtimestamp(self._wall_clock(), UTC).isoformat(timespec="milliseconds"),
            "request_id": record.request_id,
            "principal": repr(caller) if isinstance(caller, Caller) else None,
            "operation": record.operation,
            "status": record.status,
        }
        log.write(
            log="access",
            **common,
            method=scope["method"],
            path=(scope.get("raw_path") or scope["path"].encode()).decode("latin-1"),
            bytes=record.bytes,
            ms=round(seconds * 1000, 3),
            client=(scope.get("client") or [None])[0],
        )
        if record.operation not in READING:
            log.write(log="audit", **common, on=_touched(caller), outcome=_outcome(record.status))


class _Watch:
    """Stands between the app and the client. A request is told of just before the end of its reply is sent, so whoever has
    heard that a change was made finds its line.
    """

    def __init__(
        self,
        scope: Scope,
        record: Record,
        send: Send,
        tell: Callable[[Scope, Record, float], None],
        stopwatch: Callable[[], float],
    ) -> None:
        self._scope, self._record, self._send, self._tell, self._stopwatch = scope, record, send, tell, stopwatch
        self._began = stopwatch()
        self._start: Message | None = None
        self._told = False
        scope[RECORD] = record

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._record.status = message["status"]
            request_id = (b"x-request-id", self._record.request_id.encode())
            self._start = {**message, "headers": [*message.get("headers", ()), request_id]}
            return
        self._record.bytes += len(message.get("body", b""))
        if not message.get("more_body"):
            self.tell()
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
        await self._send(message)

    def tell(self) -> None:
        if not self._told:
            self._told = True
            self._tell(self._scope, self._record, self._stopwatch() - self._began)


def _request_id(scope: Scope) -> str:
    """The client's own, when it is one that cannot garble a log; else a new one."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
    return given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex


def _touched(caller: object) -> list[dict[str, Any]]:
    touched = caller.touched if isinstance(caller, Caller) else []
    return [
        {"operation": each.operation, "namespace": list(each.place.namespace), "name": each.place.name}
        for each in touched
    ]


def _outcome(status: int) -> str:
    """As far as the server knows."""
    if status < 400:
        return "done"
    if status in (401, 403):
        return "denied"
    return "refused" if status < 500 else "unknown"
