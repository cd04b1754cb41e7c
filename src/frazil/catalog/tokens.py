"""Frazil's own tokens: JWTs that name a principal, for a limited time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.types import Options

from frazil.catalog.errors import NotAuthorized
from frazil.catalog.principals import Principal
from frazil.catalog.signing_keys import SigningKeys

ISSUER: Final = "frazil"
_ALGORITHM: Final = "HS256"
_NO_CHECKS: Final[Options] = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "verify_aud": False,
    "require": ["exp", "iat", "sub"],
}


@dataclass(frozen=True, slots=True)
class Claims:
    """What one of our tokens says. `since_s` is when the secret was last shown; a refresh does not move it."""

    principal: str
    secret_version: int
    since_s: int
    expires_s: int


class Tokens:
    """Makes and reads tokens. Times come from the clock handed in, never from the machine's own."""

    def __init__(self, keys: SigningKeys, clock_ms: Callable[[], int], *, lifetime_s: int, refreshable_s: int) -> None:
        self._keys = keys
        self._clock_ms = clock_ms
        self._refreshable_s = refreshable_s
        self.lifetime_s: Final = lifetime_s

    def issue(self, principal: Principal) -> str:
        """A token for a principal that has just shown its secret."""
        return self._sign(principal.name, principal.secret_version, self._now_s())

    def refresh(self, claims: Claims) -> str:
        """A token that says the same and lasts longer. Raises once the secret must be shown again."""
        if self._now_s() - claims.since_s >= self._refreshable_s:
            raise NotAuthorized("The token has been refreshed for too long; get a new one with the client credentials")
        return self._sign(claims.principal, claims.secret_version, claims.since_s)

    def read(self, token: str) -> Claims:
        """What the token says, if it is ours and not over."""
        claims = self._verified(token)
        if self._now_s() >= claims["exp"]:
            raise NotAuthorized("The token has expired")
        return Claims(claims["sub"], int(claims["ver"]), int(claims["auth_time"]), int(claims["exp"]))

    def _sign(self, principal: str, secret_version: int, since_s: int) -> str:
        key, now = self._keys.current(), self._now_s()
        begun_s = -(
            -self._clock_ms() // 1000
        )  # rounded up: clients refresh shortly before the lifetime they were told is over
        claims = {
            "iss": ISSUER,
            "sub": principal,
            "iat": now,
            "exp": begun_s + self.lifetime_s,
            "auth_time": since_s,
            "ver": secret_version,
        }
        return jwt.encode(claims, key.secret, _ALGORITHM, {"kid": key.key_id})

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            key = self._keys.find(str(jwt.get_unverified_header(token).get("kid")))
            if key is None:
                raise NotAuthorized("The token is signed with a key that is not in use")
            claims: dict[str, Any] = jwt.decode(token, key.secret, [_ALGORITHM], options=_NO_CHECKS, issuer=ISSUER)
        except jwt.PyJWTError as error:
            raise NotAuthorized("The token is malformed or its signature is wrong") from error
        return claims

    def _now_s(self) -> int:
        return self._clock_ms() // 1000


def issuer_of(token: str) -> str | None:
    """Who a token says has made it, before anything is verified. Raises when it is no JWT."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise NotAuthorized("The token is malformed: it is no JWT") from error
    issuer = claims.get("iss")
    return issuer if isinstance(issuer, str) else None
