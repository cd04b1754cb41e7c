"""Client secrets: made at random, shown once, kept as a slow hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
_ABSENT: Final = "scrypt$16384$8$1$" + "00" * 16 + "$" + "00" * 32


def new_client_id() -> str:
    """A name that says nothing."""
    return secrets.token_hex(8)


def new_secret() -> str:
    """256 random bits, without a sign that a form or a header would have to escape."""
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """What the database keeps: the parameters, the salt and the scrypt hash."""
    salt = secrets.token_bytes(16)
    return f"scrypt${_COST}${_BLOCK}${_PARALLEL}${salt.hex()}${_scrypt(secret, salt, _COST, _BLOCK, _PARALLEL).hex()}"


def secret_matches(secret: str, stored: str | None) -> bool:
    """Whether `stored` is this secret's hash. Takes as long where there is none, so that nobody learns who exists."""
    _, cost, block, parallel, salt, expected = (stored or _ABSENT).split("$")
    found = _scrypt(secret, bytes.fromhex(salt), int(cost), int(block), int(parallel))
    return hmac.compare_digest(found, bytes.fromhex(expected)) and stored is not None


def _scrypt(secret: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    memory = 2 * 128 * cost * block
    return hashlib.scrypt(secret.encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=memory, dklen=32)
