"""Listen and serve: one process, or several that share a port and nothing else.

Each process builds the application for itself, after it was forked. A supervisor, which does nothing but wait, starts anew
any that ends before it was told to, and passes on the signal to end: a server finishes the requests it has, then goes.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from frazil.errors import BadInput, StorageFailed

_DRAIN_SECONDS = 30
_KEEP_ALIVE_SECONDS = 75
_FASTEST_DEATH_SECONDS = 2.0
_LOOK_FOR_SUPERVISOR_SECONDS = 0.5

BuildApp = Callable[[], ASGIApp]


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone, by every address it has."""
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise BadInput(f"--host {host} is no address of this machine: {error}") from error
    return all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in addresses)


def listen(host: str, port: int) -> socket.socket:
    """A socket on a port that nobody else listens on; port 0 takes a free one."""
    with _bind(host, port, shared=False) as alone:
        port = alone.getsockname()[1]
    return _bind(host, port, shared=_balances())


def _bind(host: str, port: int, *, shared: bool) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise StorageFailed(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
    return listener


def serve(build: BuildApp, listener: socket.socket, workers: int = 1) -> int:
    """Serve until SIGINT or SIGTERM. Returns the exit code."""
    if workers == 1:
        _run(build, listener)
        return 0
    return _Supervisor(build, listener, workers).run()


def _run(build: BuildApp, listener: socket.socket) -> None:
    config = uvicorn.Config(
        build(),
        http="httptools",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=2048,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    server = uvicorn.Server(config)

    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # Uvicorn drains, and then raises the signal again: by then there is nothing left to end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    server.run(sockets=[listener])


class _Supervisor:
    """Keeps a number of processes running."""

    def __init__(self, build: BuildApp, listener: socket.socket, workers: int) -> None:
        self._build = build
        self._listener = listener
        self._workers = workers
        self._running: dict[int, float] = {}
        self._ending = False

    def run(self) -> int:
        """Start the processes and wait for them. Returns the exit code: 1 if they cannot live."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end)
        failed = False
        for _ in range(self._workers):
            self._start()
        while self._running:
            process, _ = os.wait()
            started = self._running.pop(process, None)
            if started is None or self._ending:
                continue
            if time.monotonic() - started < _FASTEST_DEATH_SECONDS:
                failed = True  # it cannot even start, and the next one could not either
                self._end(signal.SIGTERM, None)
            else:
                self._start()
        return int(failed)

    def _start(self) -> None:
        supervisor = os.getpid()
        process = os.fork()
        if process:
            self._running[process] = time.monotonic()
            return
        code = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            threading.Thread(target=_end_with, args=(supervisor,), daemon=True).start()
            _run(self._build, self._own_listener())
            code = 0
        except Exception:  # noqa: BLE001  this process ends here, and nobody above could tell why
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)  # not sys.exit: what the parent opened is the parent's to close

    def _own_listener(self) -> socket.socket:
        """A socket of its own on the same port where the system shares out connections, else the parent's."""
        if not _balances():
            return self._listener
        host, port = self._listener.getsockname()[:2]
        return _bind(host, port, shared=True)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True
        for process in list(self._running):
            os.kill(process, signal.SIGTERM)


def _end_with(supervisor: int) -> None:
    """End this process when its supervisor is gone: nobody else would, and it would keep the port."""
    while os.getppid() == supervisor:
        time.sleep(_LOOK_FOR_SUPERVISOR_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _balances() -> bool:
    """Linux gives each new connection to one of the sockets that listen on its port."""
    return sys.platform == "linux"
