"""Limits of a request: size, nesting and time."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Receive, Scope, Send

from frazil.catalog.errors import InvalidRequest
from frazil.catalog.limits import check_nesting
from guarded import SCHEMA, Start


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_a_body_is_refused_when_it_is_nested_deeper_than_allowed_and_not_before() -> None:
    check_nesting(nested(128), 128)
    with pytest.raises(InvalidRequest, match="deeper than 128 levels"):
        check_nesting(nested(129), 128)


@pytest.mark.parametrize(
    "flat",
    [
        b"[" + b",".join([b"{}"] * 500) + b"]",
        orjson.dumps(["[" * 500]),
        orjson.dumps({'\\"' * 200 + "{" * 500: 1}),
        orjson.dumps(['"', "\\", "[" * 500, '\\"']),
    ],
)
def test_many_brackets_are_not_deep_nor_are_those_in_texts(flat: bytes) -> None:
    check_nesting(flat, 2)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(alphabet='a"\\[]{}\n\u2028'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='a"\\[{'), inner, max_size=3),
)


@given(JSON, st.booleans())
def test_the_depth_that_counts_is_that_of_the_document(document: object, spaced: bool) -> None:
    depth, body = depth_of(document), orjson.dumps(document, option=orjson.OPT_INDENT_2 if spaced else 0)
    check_nesting(body, depth)
    if depth:
        with pytest.raises(InvalidRequest):
            check_nesting(body, depth - 1)


def test_brackets_after_a_text_with_escapes_count() -> None:
    with pytest.raises(InvalidRequest):
        check_nesting(orjson.dumps({"a\\": [[["]"]]]}), 3)


def test_a_large_request_is_refused_whether_it_says_its_size_or_not(guarded: Start) -> None:
    catalog = guarded(max_request_bytes=1000)
    large = orjson.dumps({"namespace": ["db"], "properties": {"a": "b" * 1000}})
    for body in (large, iter([large])):
        reply = requests.post(f"{catalog.uri}/v1/frazil/namespaces", data=body, timeout=10)
        assert (reply.status_code, reply.json()["error"]["type"]) == (413, "RequestTooLargeException")
    assert catalog.ask(None, "POST", "namespaces", {"namespace": ["db"]}).status_code == 200


def test_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(guarded: Start) -> None:
    catalog = guarded(max_request_bytes=1000)
    address = urlsplit(catalog.uri)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), 10) as connection:
        connection.sendall(b"POST /v1/frazil/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_deep_json_has_the_error_body_of_iceberg(guarded: Start) -> None:
    catalog = guarded(max_nesting=10)
    reply = requests.post(f"{catalog.uri}/v1/frazil/namespaces", data=nested(11), timeout=10)
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "BadRequestException")


class Slow:
    """Holds changes and loads back until it is told to let them go, then lets them run."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and "slow" in scope["query_string"].decode():
                await asyncio.get_running_loop().run_in_executor(None, self.go.wait)
            await app(scope, receive, send)

        return slow


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "namespaces?slow", None, 503, "ServiceUnavailableException"),
        ("POST", "namespaces?slow", {"namespace": ["db"]}, 504, "CommitStateUnknownException"),
        ("POST", "namespaces/db/tables?slow", {"name": "t", "schema": SCHEMA}, 504, "CommitStateUnknownException"),
    ],
)
def test_who_takes_too_long_is_answered_for_and_a_change_is_called_unknown(
    guarded: Start, method: str, path: str, body: Any, status: int, kind: str
) -> None:
    slow = Slow()
    catalog = guarded(request_seconds=0.2, wrap=slow)
    try:
        reply = catalog.ask(None, method, path, body)
    finally:
        slow.go.set()
    assert (reply.status_code, reply.json()["error"]["type"]) == (status, kind)
    assert "0.2 seconds" in reply.json()["error"]["message"]
    assert catalog.ask(None, "GET", "namespaces").status_code == 200


def test_who_sends_a_body_drop_by_drop_is_not_waited_for(guarded: Start) -> None:
    catalog = guarded(request_seconds=0.2)
    address = urlsplit(catalog.uri)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), 10) as connection:
        connection.sendall(b"POST /v1/frazil/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        assert connection.recv(100).startswith(b"HTTP/1.1 504")
