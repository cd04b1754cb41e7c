"""Pages of a listing: a token that tells where the next one begins."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from frazil.catalog.call import Call
from frazil.catalog.errors import InvalidRequest

_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Page:
    """What a client asks for: names after `after`, `limit` of them. Without a token it is everything, as the document says."""

    after: str | None
    limit: int | None

    @classmethod
    def of(cls, call: Call) -> Page:
        """The page that the query names."""
        size, token = _size(call.query.get("pageSize")), call.query.get("pageToken")
        if token is None:
            return cls(None, None)
        return cls(_decode(token) if token else None, size)

    @property
    def asked(self) -> int | None:
        """How many names to look for: one more than fit, to know whether another page follows."""
        return None if self.limit is None else self.limit + 1

    def cut(self, names: list[str]) -> tuple[list[str], str | None]:
        """The names of this page, of those found, and the token of the next page."""
        if self.limit is None or len(names) <= self.limit:
            return names, None
        shown = names[: self.limit]
        return shown, base64.urlsafe_b64encode(shown[-1].encode()).decode().rstrip("=")


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= _LARGEST:
        raise InvalidRequest(f"Invalid query parameter pageSize: {text[:40]} is not a positive number")
    return int(text)


def _decode(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest("Invalid query parameter pageToken: it is not one that this catalog gave") from error
