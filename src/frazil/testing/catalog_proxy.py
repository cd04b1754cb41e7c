"""A real HTTP proxy in front of a REST catalog that loses, refuses, delays and repeats requests on cue."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from frazil.testing.cues import Cues

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"})
_SERVER_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one request: wait, deliver it so often, then hang up, answer `status` or pass the answer on."""

    deliveries: int = 1
    hang_up: bool = False
    status: int | None = None
    wait: Callable[[], object] | None = None


LOST_REPLY = Fault(hang_up=True)
"""The server does the work, the client hears nothing."""

LOST_REQUEST = Fault(deliveries=0, hang_up=True)
"""The server never hears of it, the client neither."""

_NO_FAULT = Fault()


def refused_with(status: int) -> Fault:
    """The server never hears of it; the client gets `status` (503: come back later)."""
    return Fault(deliveries=0, status=status)


def lost_behind_status(status: int) -> Fault:
    """The server does the work; the client gets `status` all the same, as behind a gateway that gave up (502, 504)."""
    return Fault(status=status)


def duplicated(deliveries: int = 2) -> Fault:
    """The server gets the request several times, one after the other; the client gets the last answer."""
    return Fault(deliveries=deliveries)


def delayed(seconds: float) -> Fault:
    """The request is delivered so much later."""
    return Fault(wait=lambda: time.sleep(seconds))


def held_until(event: threading.Event) -> Fault:
    """The request is delivered when the test sets `event`, or given up after a minute with 504."""

    def wait() -> None:
        if not event.wait(_SERVER_TIMEOUT_SECONDS):
            raise TimeoutError("the test never released this request")

    return Fault(wait=wait)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it passed. `answers`: what the server said to each delivery."""

    method: str
    path: str
    body: bytes
    fault: Fault | None
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: HTTPMessage
    body: bytes


class CatalogProxy:
    """Passes every request on to `upstream` except those a test has put a fault on.

    A context manager: it listens on a free port of the loopback from entry to exit. Point a REST catalog at `uri`.
    Signed requests (sigv4) will not verify behind it, since their signature covers the host.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._cues: Cues[Fault] = Cues()
        self._lock = threading.Lock()
        self._requests: list[RecordedRequest] = []
        self._server = _ProxyServer(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._serve, name="catalog-proxy", daemon=True)

    @property
    def uri(self) -> str:
        """Where the catalog now seems to be, with the upstream's own path."""
        return f"http://127.0.0.1:{self._server.server_port}{self._upstream.path.rstrip('/')}"

    @property
    def requests(self) -> tuple[RecordedRequest, ...]:
        """Every request that has been dealt with, in that order."""
        with self._lock:
            return tuple(self._requests)

    def inject(self, fault: Fault, *, method: str = "POST", path: str = ".", nth: int = 1, times: int = 1) -> None:
        """Put `fault` on the nth request from now on of that method whose path (with its query) `path` is found in."""
        self._cues.add(fault, rf"^{method} .*(?:{path})", nth=nth, times=times)

    def clear(self) -> None:
        """Take back every fault that has not struck."""
        self._cues.clear()

    def __enter__(self) -> CatalogProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.02)

    def _pass(self, method: str, path: str, headers: dict[str, str], body: bytes) -> _Answer | int | None:
        """The server's answer, or a status to answer in its place, or None to hang up."""
        fault = self._cues.take(f"{method} {path}")
        answers: list[_Answer] = []
        try:
            return self._suffer(fault or _NO_FAULT, answers, lambda: self._deliver(method, path, headers, body))
        finally:
            statuses = tuple(answer.status for answer in answers)
            with self._lock:
                self._requests.append(RecordedRequest(method, path, body, fault, statuses))

    def _suffer(self, fault: Fault, answers: list[_Answer], deliver: Callable[[], _Answer]) -> _Answer | int | None:
        if fault.wait is not None:
            fault.wait()
        for _ in range(fault.deliveries):
            answers.append(deliver())
        if fault.hang_up:
            return None
        return fault.status if fault.status is not None else answers[-1]

    def _deliver(self, method: str, path: str, headers: dict[str, str], body: bytes) -> _Answer:
        connect = HTTPSConnection if self._upstream.scheme == "https" else HTTPConnection
        connection = connect(self._upstream.netloc, timeout=_SERVER_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body=body or None, headers=headers)
            response = connection.getresponse()
            return _Answer(response.status, response.headers, response.read())
        finally:
            connection.close()


class _ProxyServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], proxy: CatalogProxy) -> None:
        self.proxy = proxy
        super().__init__(address, _ProxyHandler)


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _ProxyServer

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        try:
            answer = self.server.proxy._pass(self.command, self.path, headers, body)
        except OSError as error:
            self._reply(504, {"Content-Type": "text/plain"}, f"catalog proxy: {error!r}".encode())
            return
        if answer is None:
            self._hang_up()
        elif isinstance(answer, int):
            self._reply(answer, {"Content-Type": "text/plain"}, b"injected by the catalog proxy")
        else:
            self._reply(answer.status, dict(answer.headers.items()), answer.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815  (the names http.server looks for)

    def _reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the parent's name)
        """Say nothing: the requests are recorded."""
