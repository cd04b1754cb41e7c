"""The caller of one request, and what the request has touched so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from frazil.catalog.identities import Identity
from frazil.catalog.privileges import Place, Privileges


@dataclass(frozen=True, slots=True)
class Touch:
    """One thing that a request was about to do."""

    operation: str
    place: Place


@dataclass(slots=True)
class Caller:
    """Stands in the ASGI scope. The authorizer notes what it is asked about, for the audit line after the reply."""

    identity: Identity
    touched: list[Touch] = field(default_factory=list)

    @property
    def privileges(self) -> Privileges:
        """What the caller holds."""
        return self.identity.privileges

    def __repr__(self) -> str:
        """The same for every request of one caller, since idempotency keys are kept apart by it."""
        return self.identity.name
