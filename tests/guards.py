"""An open access database with a clock that the test moves: what the tests of authentication stand on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

from frazil.catalog.database import Database
from frazil.catalog.identities import Identities
from frazil.catalog.principals import Credential, Principals
from frazil.catalog.privileges import Place, Privilege
from frazil.catalog.roles import Grant, Roles
from frazil.catalog.signing_keys import SigningKeys
from frazil.catalog.token_endpoint import TokenEndpoint
from frazil.catalog.tokens import Tokens
from frazil.testing import MovableClock

TOKEN_S = 3600
REFRESHABLE_S = 24 * 3600
KEY_S = 7 * 24 * 3600
REMEMBER_MS = 1000


@dataclass
class Guards:
    """Who may do what, as one process of a server knows it."""

    database: Database
    clock: MovableClock

    def __post_init__(self) -> None:
        self.principals = Principals(self.database, self.clock)
        self.roles = Roles(self.database, "frazil")
        self.keys = SigningKeys(self.database, self.clock, signs_for_ms=KEY_S * 1000, tokens_last_ms=TOKEN_S * 1000)
        self.tokens = Tokens(self.keys, self.clock, lifetime_s=TOKEN_S, refreshable_s=REFRESHABLE_S)
        self.identities = Identities(self.database, "frazil", self.clock, remember_ms=REMEMBER_MS)
        self.endpoint = TokenEndpoint(self.principals, self.tokens, self.identities)

    def another_process(self) -> Guards:
        """The same database, with nothing remembered."""
        return Guards(self.database, self.clock)

    def principal(self, name: str, *grants: tuple[Privilege, Place]) -> Credential:
        """A principal with a role of its own, which is granted these."""
        self.roles.add(name)
        for privilege, place in grants:
            self.roles.grant(Grant(name, privilege, place))
        return self.principals.add(name, (name,))

    def token(self, credential: Credential) -> str:
        """A token for client credentials."""
        form = {
            "grant_type": "client_credentials",
            "client_id": credential.client_id,
            "client_secret": credential.secret,
        }
        reply = self.endpoint.answer(urlencode(form).encode(), None)
        assert reply.status == 200, reply.document
        return str(reply.document["access_token"])


@pytest.fixture
def guards(tmp_path: Path) -> Iterator[Guards]:
    """Guards on a SQLite database of their own."""
    database = Database(f"sqlite:///{tmp_path}/catalog.db", 4)
    yield Guards(database, MovableClock())
    database.close()
