"""The middleware that knows who is calling, before anything else looks at the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from frazil.catalog.access import PRINCIPAL
from frazil.catalog.access_log import note_operation
from frazil.catalog.caller import Caller
from frazil.catalog.errors import CatalogError, NotAuthorized
from frazil.catalog.identities import ANONYMOUS, Identities, Identity
from frazil.catalog.oidc import ExternalClaims, ExternalTokens
from frazil.catalog.token_endpoint import TokenEndpoint, TokenReply
from frazil.catalog.tokens import Claims, Tokens, issuer_of

TOKEN_PATH: Final = "/v1/oauth/tokens"
_LONGEST_TOKEN: Final = 16_384
_MOST_TOKENS: Final = 10_000
_HASHES_AT_ONCE: Final = 2


class Bearers:
    """Reads bearer tokens: Frazil's own, and those of the external issuer where there is one.

    A token's signature is verified once; what it says is remembered as long as it lasts.
    """

    def __init__(
        self,
        tokens: Tokens,
        identities: Identities,
        external: ExternalTokens | None,
        clock_ms: Callable[[], int],
    ) -> None:
        self._tokens = tokens
        self._identities = identities
        self._external = external
        self._clock_ms = clock_ms
        self._verified: dict[str, Claims | ExternalClaims] = {}

    async def identify(self, authorization: str | None) -> Identity:
        """Who sent this `Authorization` header. Raises `NotAuthorized` unless that is proven."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise NotAuthorized("Not authorized: send a bearer token, which POST /v1/oauth/tokens gives")
        if len(token) > _LONGEST_TOKEN:
            raise NotAuthorized("The token is malformed: it is too long")
        claims = self._remembered(token)
        found = self._identities.remembered(claims) if claims else None
        return await asyncio.get_running_loop().run_in_executor(None, self._identify, token) if found is None else found

    def _identify(self, token: str) -> Identity:
        claims = self._remembered(token) or self._read(token)
        if len(self._verified) >= _MOST_TOKENS:
            self._verified = {}
        self._verified[token] = claims
        return self._identities.find(claims)

    def _remembered(self, token: str) -> Claims | ExternalClaims | None:
        claims = self._verified.get(token)
        return claims if claims and self._clock_ms() < claims.expires_s * 1000 else None

    def _read(self, token: str) -> Claims | ExternalClaims:
        if self._external is not None and issuer_of(token) == self._external.issuer.url:
            return self._external.read(token)
        return self._tokens.read(token)


class Authentication:
    """Leaves the `Caller` in the scope, or answers 401. Paths in `open_paths` need no token."""

    def __init__(
        self, app: ASGIApp, bearers: Bearers, endpoint: TokenEndpoint, open_paths: frozenset[str] = frozenset()
    ) -> None:
        self._app = app
        self._bearers = bearers
        self._endpoint = endpoint
        self._open_paths = open_paths
        # Of its own, so that a flood of wrong secrets keeps no token from being read. A hash takes 16 MB and a core.
        self._hashing = ThreadPoolExecutor(_HASHES_AT_ONCE, thread_name_prefix="frazil-secrets")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        if scope["path"] == TOKEN_PATH and scope["method"] == "POST":
            note_operation(scope, "getToken")
            body, authorization = await request.body(), request.headers.get("authorization")
            loop = asyncio.get_running_loop()
            reply = await loop.run_in_executor(self._hashing, self._endpoint.answer, body, authorization)
            await token_response(reply)(scope, receive, send)
            return
        try:
            scope[PRINCIPAL] = Caller(await self._bearers.identify(request.headers.get("authorization")))
        except CatalogError as error:
            await refusal(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class NoAuthentication:
    """Everybody is welcome. Who asks for a token is told that none is needed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http" and scope["path"] == TOKEN_PATH and scope["method"] == "POST":
            note_operation(scope, "getToken")
            said = {
                "error": "unauthorized_client",
                "error_description": "this server asks nobody for a token; configure no credential",
            }
            await token_response(TokenReply(400, said))(scope, receive, send)
            return
        scope[PRINCIPAL] = Caller(ANONYMOUS)
        await self._app(scope, receive, send)


def token_response(reply: TokenReply) -> Response:
    """Over HTTP."""
    return JSONResponse(reply.document, reply.status, headers=reply.headers)


def refusal(error: CatalogError, headers: Mapping[str, str] | None = None) -> Response:
    """The Iceberg error body, with the challenge that a 401 must have."""
    challenge = {"www-authenticate": 'Bearer realm="frazil"'} if error.status == 401 else {}
    return JSONResponse(error.to_document(), error.status, headers={**challenge, **(headers or {})})
