"""The middleware that keeps one request from costing too much: its size, its nesting, its time."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frazil.catalog.authentication import refusal
from frazil.catalog.errors import CatalogError, CommitStateUnknown, InvalidRequest, ServiceUnavailable

_ALL_BUT_STRUCTURE: Final = bytes(sign for sign in range(256) if sign not in b'"[]{}')
_STRING: Final = re.compile(rb'"[^"]*"')
_CHANGING: Final = {"POST", "PUT", "DELETE", "PATCH"}


class RequestTooLarge(CatalogError):
    """The body is longer than this server takes."""

    status = 413
    kind = "RequestTooLargeException"


class StillWorking(CommitStateUnknown):
    """The time is over, and what the request asked for may or may not come about."""

    status = 504


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may cost."""

    body_bytes: int = 32 * 1024 * 1024
    nesting: int = 128
    seconds: float = 60


class RequestLimits:
    """Reads the whole body before anybody acts on it, and answers for whoever does not answer in time."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reply = _Reply(send)
        limit = asyncio.timeout(self._limits.seconds)
        try:
            async with limit:
                await self._serve(scope, receive, reply)
        except TimeoutError:
            if not limit.expired():
                raise
            # A thread that is in the middle of a commit finishes all the same, and nobody hears of it.
            if not reply.started:
                await refusal(self._too_late(scope), {"connection": "close"})(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in _CHANGING:
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
            check_nesting(body, self._limits.nesting)
        except CatalogError as error:
            await refusal(error, {"connection": "close"})(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        most = self._limits.body_bytes
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if declared.isdigit() and int(declared) > most:
            raise self._too_large()
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise InvalidRequest("The client went away before the request was complete")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise self._too_large()
            if not message.get("more_body"):
                return b"".join(parts)

    def _too_large(self) -> RequestTooLarge:
        return RequestTooLarge(f"The request is larger than the {self._limits.body_bytes} bytes that this server takes")

    def _too_late(self, scope: Scope) -> CatalogError:
        """A read can be tried again; of a change nobody knows yet whether it will land."""
        said = f"The request took longer than {self._limits.seconds:g} seconds"
        return StillWorking(said) if scope["method"] in _CHANGING else ServiceUnavailable(said)


class _Reply:
    """The way to the client, which remembers whether it was used."""

    __slots__ = ("_send", "started")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)


def check_nesting(body: bytes, most: int) -> None:
    """Refuse JSON that is nested deeper than `most`, before a parser recurses into it."""
    if body.count(b"[") + body.count(b"{") <= most:
        return
    without_escapes = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    depth = 0
    for sign in _STRING.sub(b"", without_escapes.translate(None, _ALL_BUT_STRUCTURE)):
        if sign in b"[{":
            depth += 1
            if depth > most:
                raise InvalidRequest(f"The request body is nested deeper than {most} levels")
        elif sign in b"]}":
            depth -= 1


def _replay(body: bytes, receive: Receive) -> Receive:
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
