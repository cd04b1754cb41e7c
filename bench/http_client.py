"""A plain HTTP client that keeps its connection: so little of its own that the server is what is measured."""

from __future__ import annotations

import gzip
import json
import socket
from typing import Any


class HttpClient:
    """One connection. Not thread-safe."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        # As Iceberg's clients in Java and Python do, this one takes packed replies.
        common = "Content-Type: application/json\r\nAccept-Encoding: gzip\r\n"
        self._headers = f"Host: 127.0.0.1:{port}\r\n{common}{authorization}"

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """The status and the body of the reply."""
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}Content-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head_bytes, _, rest = received.partition(b"\r\n\r\n")
        status, headers = int(head_bytes.split(b" ", 2)[1]), head_bytes.lower()
        if b"transfer-encoding: chunked" in headers:
            return status, self._chunks(rest)
        return status, self._rest(rest, 0 if status == 204 else _length(headers))

    def get(self, path: str) -> Any:
        """The document at a path, which must be there."""
        status, body = self.ask("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path}: {status} {body[:300]!r}")
        return _parsed(body)

    def post(self, path: str, document: Any) -> Any:
        """The document that answers this one, which must be accepted."""
        status, body = self.ask("POST", path, json.dumps(document).encode())
        if status != 200:
            raise RuntimeError(f"POST {path}: {status} {body[:300]!r}")
        return _parsed(body)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self) -> bytes:
        received = self._socket.recv(1 << 20)
        if not received:
            raise ConnectionError("the server closed the connection")
        return received

    def _rest(self, begun: bytes, length: int) -> bytes:
        parts, missing = [begun], length - len(begun)
        while missing > 0:
            parts.append(self._receive())
            missing -= len(parts[-1])
        return b"".join(parts)

    def _chunks(self, received: bytes) -> bytes:
        while not received.endswith(b"0\r\n\r\n"):
            received += self._receive()
        parts = []
        while True:
            size, _, received = received.partition(b"\r\n")
            if int(size, 16) == 0:
                return b"".join(parts)
            parts.append(received[: int(size, 16)])
            received = received[int(size, 16) + 2 :]


def _parsed(body: bytes) -> Any:
    """The document in a body, packed or not."""
    return json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)


def _length(headers: bytes) -> int:
    _, found, rest = headers.partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0
