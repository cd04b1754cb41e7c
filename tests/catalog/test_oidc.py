"""Tokens of an external issuer, which is a real HTTP server with real keys."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from frazil.catalog.errors import NotAuthorized, ServiceUnavailable
from frazil.catalog.oidc import ExternalIssuer, ExternalTokens
from frazil.catalog.privileges import Place, Privilege
from frazil.testing import MovableClock
from guarded import Start

AUDIENCE = "lake"


@dataclass
class Issuer:
    """An OpenID Connect issuer on the loopback. `keys` are what it publishes; `asked` counts the requests for them."""

    url: str
    keys: dict[str, Any] = field(default_factory=dict)
    asked: int = 0
    down: bool = False
    name: str | None = None
    keys_at: str | None = None

    def rotate(self, key_id: str, kind: str = "RS256") -> None:
        """Publish a new key, and no other."""
        made = rsa.generate_private_key(65537, 2048) if kind == "RS256" else ec.generate_private_key(ec.SECP256R1())
        self.keys = {key_id: made}

    def token(self, key_id: str, clock: MovableClock, **claims: Any) -> str:
        """A token as this issuer makes it; `claims` may say otherwise."""
        now = int(clock.seconds())
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "00u1", "iat": now, "exp": now + 600, **claims}
        key = self.keys[key_id]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(said, key, algorithm, {"kid": key_id})

    def described(self) -> dict[str, Any]:
        return {"issuer": self.name or self.url, "jwks_uri": self.keys_at or f"{self.url}/keys"}

    def published(self) -> dict[str, Any]:
        documents = []
        for key_id, key in self.keys.items():
            algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            documents.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id, "use": "sig"})
        return {"keys": documents}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if running.down:
                self.send_error(503)
                return
            running.asked += self.path == "/keys"
            document = running.described() if self.path.startswith("/.well-known") else running.published()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = Issuer(f"http://127.0.0.1:{server.server_address[1]}")
    running.rotate("first")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield running
    server.shutdown()
    server.server_close()


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def tokens(issuer: Issuer, clock: MovableClock) -> ExternalTokens:
    return ExternalTokens(ExternalIssuer(issuer.url, AUDIENCE, "realm_access.roles"), clock)


@pytest.mark.parametrize("kind", ["RS256", "ES256"])
def test_a_token_of_the_issuer_says_who_it_is_and_which_roles(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock, kind: str
) -> None:
    issuer.rotate("key", kind)
    found = tokens.read(issuer.token("key", clock, realm_access={"roles": ["readers", "writers", 7]}))
    assert (found.subject, found.roles) == ("00u1", ("readers", "writers"))


def test_the_keys_are_fetched_once(issuer: Issuer, tokens: ExternalTokens, clock: MovableClock) -> None:
    for _ in range(3):
        tokens.read(issuer.token("first", clock))
    assert issuer.asked == 1


def test_a_new_key_is_found_and_an_old_one_forgotten(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock
) -> None:
    old = issuer.token("first", clock)
    tokens.read(old)
    issuer.rotate("second")
    clock.advance(11)
    tokens.read(issuer.token("second", clock))
    assert issuer.asked == 2
    with pytest.raises(NotAuthorized, match="a key that its issuer does not publish"):
        tokens.read(old)


def test_tokens_with_made_up_keys_do_not_make_the_server_ask_each_time(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock
) -> None:
    tokens.read(issuer.token("first", clock))
    forger = Issuer(issuer.url)
    for number in range(5):
        forger.rotate(f"forged-{number}", "ES256")
        with pytest.raises(NotAuthorized, match="does not publish"):
            tokens.read(forger.token(f"forged-{number}", clock))
    assert issuer.asked == 1


def test_while_the_issuer_is_down_the_keys_it_gave_go_on_counting(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock
) -> None:
    tokens.read(issuer.token("first", clock))
    issuer.down = True
    clock.advance(2 * 3600)
    assert tokens.read(issuer.token("first", clock)).subject == "00u1"


def test_an_issuer_that_never_answered_is_an_outage_and_not_a_wrong_token(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock
) -> None:
    issuer.down = True
    with pytest.raises(ServiceUnavailable, match="does not publish its keys"):
        tokens.read(issuer.token("first", clock))
    issuer.down = False
    assert tokens.read(issuer.token("first", clock)).subject == "00u1"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "https://another"}, "it calls itself https://another"),
        ({"keys_at": "file:///etc/passwd"}, "is no http address"),
    ],
)
def test_an_issuer_that_is_not_who_it_should_be_gives_no_keys(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock, wrong: dict[str, str], sentence: str
) -> None:
    for name, value in wrong.items():
        setattr(issuer, name, value)
    with pytest.raises(ServiceUnavailable, match=sentence):
        tokens.read(issuer.token("first", clock))


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"aud": "another"}, "not made for lake"),
        ({"iss": "https://another"}, "malformed or its signature"),
        ({"exp": 1}, "expired"),
        ({"nbf": 9_999_999_999}, "not valid yet"),
        ({"exp": None}, "malformed or its signature"),
    ],
)
def test_a_token_for_somebody_else_or_another_time_is_refused(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock, claims: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(NotAuthorized, match=sentence):
        tokens.read(issuer.token("first", clock, **claims))


def test_a_token_signed_with_the_public_key_as_a_secret_is_refused(
    issuer: Issuer, tokens: ExternalTokens, clock: MovableClock
) -> None:
    now = int(clock.seconds())
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "root", "exp": now + 600}
    public = issuer.published()["keys"][0]["n"].encode()
    forged = jwt.encode(claims, public, "HS256", {"kid": "first"})
    with pytest.raises(NotAuthorized, match="malformed or its signature"):
        tokens.read(forged)


def test_the_server_lets_in_whom_the_issuer_names_with_the_roles_of_both(issuer: Issuer, guarded: Start) -> None:
    clock = MovableClock(int(1e12) * 2)
    catalog = guarded(
        authentication=True, clock_ms=clock, oidc_issuer=issuer.url, oidc_audience=AUDIENCE, oidc_roles_claim="groups"
    )
    catalog.make("db.t", "other.t")
    catalog.principal("readers", (Privilege.READ, Place(("db",))))
    catalog.principal("others", (Privilege.READ, Place(("other",))))
    catalog.principals.add_external("ann", "00u1", ("others",))

    def namespaces(**claims: Any) -> Any:
        bearer = {"Authorization": f"Bearer {issuer.token('first', clock, **claims)}"}
        return catalog.ask(None, "GET", "namespaces", **bearer).json()

    assert namespaces(groups=["readers"])["namespaces"] == [["db"], ["other"]]
    assert namespaces(groups="readers unknown", sub="stranger")["namespaces"] == [["db"]]
    assert namespaces(sub="stranger")["error"]["code"] == 403
    assert namespaces(exp=1)["error"]["code"] == 401
    named = {line.get("principal") for line in catalog.lines if line.get("method") == "GET"}
    assert named == {"ann", "external:stranger", None}
