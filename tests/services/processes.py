"""What every started service needs: free ports, a wait, an end by process id."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on. All are held open together, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Return once `ready()`; raise when the process ends first or the time is over."""
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode} before it was ready")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{process.args} was not ready after {seconds} s")
        time.sleep(0.02)


def stop(process: subprocess.Popen[bytes], seconds: float = 10) -> None:
    """Ask this one process to end, and end it when it does not."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
