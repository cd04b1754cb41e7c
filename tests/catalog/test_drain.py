"""The end of a server: what is under way is finished, and nothing new is taken."""

from __future__ import annotations

import json
import signal
import socket

import requests

from commands import Frazil
from services.processes import free_ports, stop, wait_until


def test_a_request_that_is_under_way_when_the_server_is_told_to_end_is_answered(frazil: Frazil) -> None:
    (port,) = free_ports(1)
    process = frazil.start("catalog", "--root", str(frazil.root), "--port", str(port))
    try:
        wait_until(lambda: _answers(port), process)
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            body = json.dumps({"namespace": ["late"]}).encode()
            head = f"POST /v1/frazil/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body[:5])
            wait_until(
                lambda: "in_flight 2" in requests.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text, process
            )
            process.terminate()
            wait_until(lambda: not _answers(port), process)
            connection.sendall(body[5:])
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        assert process.wait(10) in (0, -signal.SIGTERM)
    finally:
        stop(process)


def _answers(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/ready", timeout=5).ok
    except requests.ConnectionError:
        return False
