"""All that stands before the catalog, built in one place.

request -> access log -> limits -> authentication -> the app (which asks the authorizer, and the vendor)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp

from frazil.catalog.access_log import AccessLog, JsonLines, RequestMetrics
from frazil.catalog.app import create_app
from frazil.catalog.authentication import Authentication, Bearers, NoAuthentication
from frazil.catalog.backend import Backend
from frazil.catalog.call import Call
from frazil.catalog.database import Database
from frazil.catalog.endpoints import Endpoint
from frazil.catalog.guard_settings import GuardSettings
from frazil.catalog.identities import Identities
from frazil.catalog.limits import Limits, RequestLimits
from frazil.catalog.metrics import CONTENT_TYPE, Metric, exposition
from frazil.catalog.oidc import ExternalIssuer, ExternalTokens
from frazil.catalog.principals import Principals
from frazil.catalog.s3_credentials import CredentialSource, RoleToAssume, S3Store
from frazil.catalog.s3_signing import Signer
from frazil.catalog.server_metrics import server_metrics
from frazil.catalog.signing_keys import SigningKeys
from frazil.catalog.storage_delegation import Delegation
from frazil.catalog.token_endpoint import TokenEndpoint
from frazil.catalog.tokens import Tokens

OPEN_PATHS: Final = frozenset({"/health", "/ready", "/metrics"})
"""What an orchestrator and Prometheus ask for. None of it names a table."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What goes around one app, and what goes into it."""

    settings: GuardSettings
    backend: Backend
    """The backend with this guard's authorizer and vendor: the app is to be made of it."""
    endpoints: tuple[Endpoint, ...]
    """Endpoints to be served beside the app's own."""
    metrics: RequestMetrics
    log: JsonLines | None

    @classmethod
    def around(cls, backend: Backend, settings: GuardSettings, log: JsonLines | None = None) -> Guard:
        """The guard of a backend. With access logging on, lines go to `log`, or else to stdout."""
        metrics = RequestMetrics(process=str(os.getpid()))
        shown = [*metrics.all(), *server_metrics(backend.database, time.time())]
        delegation = _delegation(backend, settings)
        exposed = Endpoint("GET", "/metrics", "metrics", _exposing(shown), announced=False)
        return cls(
            settings,
            replace(backend, authorizer=delegation.grants, vendor=delegation),
            (*delegation.endpoints(), exposed),
            metrics,
            (log or JsonLines()) if settings.access_log else None,
        )

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """The app behind its guard."""
        inner = (
            _authenticated(app, self.backend, self.settings) if self.settings.authentication else NoAuthentication(app)
        )
        limits = Limits(self.settings.max_request_bytes, self.settings.max_nesting, self.settings.request_seconds)
        return AccessLog(RequestLimits(inner, limits), self.log, self.metrics, time.time, time.perf_counter)


def guarded_app(backend: Backend, settings: GuardSettings) -> ASGIApp:
    """The whole server: the app of this backend, behind its guard."""
    guard = Guard.around(backend, settings)
    return guard.wrap(create_app(guard.backend, also=guard.endpoints))


def _authenticated(app: ASGIApp, backend: Backend, settings: GuardSettings) -> ASGIApp:
    database, clock = backend.database, backend.clock_ms
    tokens = Tokens(
        _keys(database, settings, clock),
        clock,
        lifetime_s=settings.token_seconds,
        refreshable_s=settings.token_refresh_seconds,
    )
    identities = Identities(database, backend.settings.name, clock, remember_ms=round(settings.remember_seconds * 1000))
    external = None
    if settings.oidc_issuer is not None and settings.oidc_audience is not None:
        issuer = ExternalIssuer(settings.oidc_issuer, settings.oidc_audience, settings.oidc_roles_claim)
        external = ExternalTokens(issuer, clock)
    return Authentication(
        app,
        Bearers(tokens, identities, external, clock),
        TokenEndpoint(Principals(database, clock), tokens, identities),
        OPEN_PATHS,
    )


def _keys(database: Database, settings: GuardSettings, clock: Callable[[], int]) -> SigningKeys:
    return SigningKeys(
        database, clock, signs_for_ms=settings.key_seconds * 1000, tokens_last_ms=settings.token_seconds * 1000
    )


def _delegation(backend: Backend, settings: GuardSettings) -> Delegation:
    store = S3Store.from_properties(backend.settings.storage)
    source = None
    if settings.s3_role_arn is not None:
        role = RoleToAssume(settings.s3_role_arn, settings.sts_endpoint, settings.s3_credential_seconds)
        source = CredentialSource(store, role, backend.clock_ms)
    signer = Signer(store) if settings.remote_signing else None
    return Delegation(backend.settings.name, backend.settings.roots, store, source, signer)


def _exposing(metrics: list[Metric]) -> Callable[[Call], Response]:
    def expose(_call: Call) -> Response:
        return Response(exposition(metrics), media_type=CONTENT_TYPE)

    return expose
