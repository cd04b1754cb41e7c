"""Tokens of an external OpenID Connect issuer: its keys are fetched, cached and fetched anew when it rotates them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import jwt

from frazil.catalog.errors import NotAuthorized, ServiceUnavailable

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key pair only: a shared secret is nothing an issuer publishes."""
_KEYS_LAST_MS: Final = 3_600_000
_FETCH_AGAIN_AFTER_MS: Final = 10_000
_SECONDS: Final = 10
_LARGEST: Final = 1_000_000
_LEEWAY_S: Final = 30


@dataclass(frozen=True, slots=True)
class ExternalIssuer:
    """Whose tokens count, for whom they must be made, and which claim names the bearer's roles, dots between levels."""

    url: str
    audience: str
    roles_claim: str = "roles"


@dataclass(frozen=True, slots=True)
class ExternalClaims:
    """What a token of the external issuer says."""

    subject: str
    roles: tuple[str, ...]
    expires_s: int


def fetch_json(url: str) -> Any:
    """The JSON behind an address. The issuer is configured by whoever runs the server, so its address is trusted."""
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url} is no http address")
    with urlopen(url, timeout=_SECONDS) as reply:
        return json.loads(reply.read(_LARGEST))


class ExternalTokens:
    """Verifies tokens of one issuer. Thread-safe; a thread may wait for the issuer to answer."""

    def __init__(
        self, issuer: ExternalIssuer, clock_ms: Callable[[], int], fetch: Callable[[str], Any] = fetch_json
    ) -> None:
        self.issuer: Final = issuer
        self._clock_ms = clock_ms
        self._fetch = fetch
        self._lock = threading.Lock()
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_ms: int | None = None

    def read(self, token: str) -> ExternalClaims:
        """What the token says, if this issuer signed it for us and it is not over."""
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(str(header.get("kid")))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=_algorithms_for(key),
                audience=self.issuer.audience,
                issuer=self.issuer.url,
                options={
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                    "require": ["exp", "sub", "aud", "iss"],
                },
            )
        except jwt.InvalidAudienceError as error:
            raise NotAuthorized(f"The token is not made for {self.issuer.audience}") from error
        except jwt.PyJWTError as error:
            raise NotAuthorized("The token is malformed or its signature is wrong") from error
        return self._in_time(claims)

    def _in_time(self, claims: dict[str, Any]) -> ExternalClaims:
        now = self._clock_ms() / 1000
        if now >= float(claims["exp"]) + _LEEWAY_S:
            raise NotAuthorized("The token has expired")
        if now < float(claims.get("nbf", 0)) - _LEEWAY_S:
            raise NotAuthorized("The token is not valid yet")
        return ExternalClaims(str(claims["sub"]), self._roles(claims), int(claims["exp"]))

    def _roles(self, claims: dict[str, Any]) -> tuple[str, ...]:
        value: Any = claims
        for level in self.issuer.roles_claim.split("."):
            value = value.get(level) if isinstance(value, dict) else None
        if isinstance(value, str):
            return tuple(value.split())
        return tuple(role for role in value if isinstance(role, str)) if isinstance(value, list) else ()

    def _key(self, key_id: str) -> jwt.PyJWK:
        """The key of this id; an unknown one may be new, so the issuer is asked, though not for every bad token."""
        with self._lock:
            age = None if self._fetched_ms is None else self._clock_ms() - self._fetched_ms
            unknown = key_id not in self._keys
            if age is None or age >= _KEYS_LAST_MS or (unknown and age >= _FETCH_AGAIN_AFTER_MS):
                self._load()
            if key_id not in self._keys:
                raise NotAuthorized("The token is signed with a key that its issuer does not publish")
            return self._keys[key_id]

    def _load(self) -> None:
        """Fetch the keys. While the issuer does not answer, those known already go on counting."""
        self._fetched_ms = self._clock_ms()
        try:
            address = self.issuer.url.rstrip("/") + "/.well-known/openid-configuration"
            said = self._fetch(address)
            if said["issuer"] != self.issuer.url:
                raise ValueError(f"it calls itself {said['issuer']}")
            found = self._fetch(said["jwks_uri"])
            self._keys = {key.key_id: key for key in _usable(found["keys"]) if key.key_id}
        except (URLError, OSError, ValueError, KeyError, TypeError) as error:
            if not self._keys:
                self._fetched_ms = None
                raise ServiceUnavailable(f"The issuer {self.issuer.url} does not publish its keys: {error}") from error


def _usable(keys: list[dict[str, Any]]) -> list[jwt.PyJWK]:
    usable = []
    for key in keys:
        if key.get("kty") == "oct" or key.get("use", "sig") != "sig":
            continue
        try:
            usable.append(jwt.PyJWK(key))
        except jwt.PyJWTError:
            continue  # of a kind that this library does not know; a token signed with it is refused by its key id
    return usable


def _algorithms_for(key: jwt.PyJWK) -> list[str]:
    """Those that fit the key, whatever the token's header says."""
    if key.key_type == "RSA":
        return [name for name in ALGORITHMS if name[:2] in ("RS", "PS")]
    return [key.algorithm_name] if key.algorithm_name in ALGORITHMS else []
