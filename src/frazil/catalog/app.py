"""The ASGI application: the whole stack, built in one place.

A request's body is read here, its handler runs in a thread (or at once, where it need not wait for anything), and its outcome
becomes a reply. Paths are matched as they were sent, before decoding: `tab%2Fle` is a name, not two.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from frazil.catalog.access import PRINCIPAL
from frazil.catalog.access_log import RECORD, Record, note_operation
from frazil.catalog.backend import Backend
from frazil.catalog.call import Call, error_reply
from frazil.catalog.endpoints import ENDPOINTS, Endpoint
from frazil.catalog.errors import CatalogError, InvalidRequest, Missing
from frazil.catalog.janitor import Janitor
from frazil.catalog.replay import run_once
from frazil.catalog.tables import NotInMemory

_LOG = logging.getLogger(__name__)


def create_app(backend: Backend, *, middleware: Iterable[Middleware] = (), also: Iterable[Endpoint] = ()) -> Starlette:
    """The server of one catalog. It takes over the backend and closes it at the end.

    `middleware` stands before every endpoint (authentication, limits); `also` are endpoints of other parts.
    """
    threads = ThreadPoolExecutor(backend.settings.threads, thread_name_prefix="frazil-catalog")
    endpoints = (*ENDPOINTS, *also)
    announced = tuple(f"{each.method} {each.path}" for each in endpoints if each.announced)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        with Janitor(backend):
            yield
        threads.shutdown()
        backend.close()

    routes = [route for each in endpoints for route in _routes(each, backend, threads, announced)]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(RawPath), *middleware],
        exception_handlers={HTTPException: _refuse_route, CatalogError: _refuse, Exception: _break_down},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


class RawPath:
    """Lets routes match the path as it was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put the raw path in the place of the decoded one."""
        if scope["type"] == "http" and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1"), "root_path": ""}
        await self.app(scope, receive, send)


def _routes(
    endpoint: Endpoint, backend: Backend, threads: ThreadPoolExecutor, announced: tuple[str, ...]
) -> Iterable[Route]:
    """The endpoint under the catalog's prefix, and without one for clients that have not asked for the configuration."""
    serve = _server(endpoint, backend, threads, announced)
    prefixed = endpoint.path.replace("{prefix}", backend.settings.name)
    for path in dict.fromkeys((prefixed, endpoint.path.replace("/{prefix}", ""))):
        route = Route(path.replace("{plan-id}", "{plan_id}"), serve, methods=[endpoint.method])
        route.methods = {endpoint.method}  # Starlette would answer HEAD by GET
        yield route


def _server(
    endpoint: Endpoint, backend: Backend, threads: ThreadPoolExecutor, announced: tuple[str, ...]
) -> Callable[[Request], Awaitable[Response]]:
    inline = endpoint.inline and backend.database.is_sqlite and not backend.vendor.waits

    async def serve(request: Request) -> Response:
        scope = request.scope
        note_operation(scope, endpoint.operation)
        call = Call(
            backend=backend,
            operation=endpoint.operation,
            raw_path=scope["path"],
            segments=scope["path_params"],
            raw_query=scope["query_string"].decode("latin-1"),
            headers=request.headers,
            body=await request.body() if endpoint.method == "POST" else b"",
            principal=scope.get(PRINCIPAL),
            endpoints=announced,
            inline=inline,
        )
        try:
            if inline:
                try:
                    return endpoint.handler(call)
                except NotInMemory:
                    call.inline = False
            changes = endpoint.method in ("POST", "DELETE")
            run = partial(run_once, call, endpoint.handler) if changes else partial(endpoint.handler, call)
            return await asyncio.get_running_loop().run_in_executor(threads, run)
        except CatalogError as error:
            return error_reply(error, endpoint.operation)

    return serve


async def _refuse(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CatalogError)
    return error_reply(error)


async def _refuse_route(request: Request, error: Exception) -> Response:
    """No such path, or not by that method."""
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.scope['path']}"
    if error.status_code == 404:
        return error_reply(Missing(f"No route for request: {what}"))
    if error.status_code == 405:
        return error_reply(MethodNotAllowed(f"The method is not allowed here: {what}"))
    return error_reply(InvalidRequest(str(error.detail)))


async def _break_down(request: Request, error: Exception) -> Response:
    """Whatever nobody expected: told in full to the log, and in one sentence to the client."""
    record = request.scope.get(RECORD)
    told = f" (request {record.request_id})" if isinstance(record, Record) else ""
    _LOG.error("%s %s broke down%s", request.method, request.scope["path"], told, exc_info=error)
    return error_reply(CatalogError(f"Internal server error: {type(error).__name__}"))


class MethodNotAllowed(CatalogError):
    """The path is there, but not for this method."""

    status = 405
    kind = "UnsupportedOperationException"
