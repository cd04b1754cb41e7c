"""Tokens: how they are got, refreshed, and when they count no more."""

from __future__ import annotations

import base64
from urllib.parse import urlencode

import jwt
import pytest

from frazil.catalog.errors import NotAuthorized
from frazil.catalog.privileges import CATALOG, Privilege
from frazil.catalog.token_endpoint import ACCESS_TOKEN, TOKEN_EXCHANGE, TokenReply
from guards import KEY_S, REFRESHABLE_S, REMEMBER_MS, TOKEN_S, Guards


def ask(guards: Guards, authorization: str | None = None, **form: str) -> TokenReply:
    return guards.endpoint.answer(urlencode(form).encode(), authorization)


def refresh(guards: Guards, token: str, authorization: str | None = None) -> TokenReply:
    return ask(guards, authorization, grant_type=TOKEN_EXCHANGE, subject_token=token, subject_token_type=ACCESS_TOKEN)


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


def test_client_credentials_in_the_form_or_in_the_header_give_a_token(guards: Guards) -> None:
    made = guards.principals.add("etl")
    in_form = ask(guards, grant_type="client_credentials", client_id=made.client_id, client_secret=made.secret)
    in_header = ask(guards, basic(made.client_id, made.secret), grant_type="client_credentials", scope="catalog")
    for reply in (in_form, in_header):
        assert reply.status == 200
        assert (reply.document["token_type"], reply.document["expires_in"]) == ("bearer", TOKEN_S)
        assert reply.headers["cache-control"] == "no-store"
        assert guards.tokens.read(reply.document["access_token"]).principal == "etl"


def test_any_process_reads_what_another_has_signed(guards: Guards) -> None:
    token = guards.token(guards.principals.add("etl"))
    assert guards.another_process().tokens.read(token).principal == "etl"


def test_a_token_counts_until_it_expires(guards: Guards) -> None:
    token = guards.token(guards.principals.add("etl"))
    guards.clock.advance(TOKEN_S - 1)
    assert guards.tokens.read(token).principal == "etl"
    guards.clock.advance(1)
    with pytest.raises(NotAuthorized, match="expired"):
        guards.tokens.read(token)


def test_a_token_is_refreshed_for_a_day_and_then_the_secret_is_wanted(guards: Guards) -> None:
    token, hours = guards.token(guards.principals.add("etl")), 0
    while (reply := refresh(guards, token)).status == 200:
        assert reply.document["issued_token_type"] == ACCESS_TOKEN
        token, hours = reply.document["access_token"], hours + 1
        guards.clock.advance(TOKEN_S - 1)
    assert reply.document["error"] == "invalid_grant"
    assert hours * (TOKEN_S - 1) >= REFRESHABLE_S > (hours - 1) * (TOKEN_S - 1)


def test_an_expired_token_is_refreshed_only_with_the_secret_beside_it(guards: Guards) -> None:
    made = guards.principals.add("etl")
    token = guards.token(made)
    guards.clock.advance(TOKEN_S)
    assert refresh(guards, token).document["error"] == "invalid_grant"
    assert refresh(guards, token, basic(made.client_id, "wrong")).document["error"] == "invalid_client"
    assert refresh(guards, token, basic(made.client_id, made.secret)).status == 200


def test_a_new_secret_or_a_removal_voids_every_token_made_before(guards: Guards) -> None:
    guards.principal("etl", (Privilege.READ, CATALOG))
    guards.principal("gone")
    tokens = {name: guards.token(guards.principals.rotate(name)) for name in ("etl", "gone")}
    for token in tokens.values():
        guards.identities.find(guards.tokens.read(token))
    guards.principals.rotate("etl")
    guards.principals.remove("gone")
    guards.clock.advance(REMEMBER_MS / 1000)
    for token in tokens.values():
        with pytest.raises(NotAuthorized, match="void"):
            guards.identities.find(guards.tokens.read(token))
        assert refresh(guards, token).document["error"] == "invalid_grant"


def test_a_grant_counts_at_once_for_who_is_new_and_within_the_time_to_remember_for_others(guards: Guards) -> None:
    claims = guards.tokens.read(guards.token(guards.principal("etl", (Privilege.READ, CATALOG))))
    assert guards.identities.find(claims).privileges.allow(Privilege.READ, CATALOG)
    guards.roles.remove("etl")
    guards.clock.advance(REMEMBER_MS / 1000)
    assert not guards.identities.find(claims).privileges.allow(Privilege.SEE, CATALOG)


def test_a_key_signs_for_a_week_and_what_it_signed_last_still_counts(guards: Guards) -> None:
    made = guards.principals.add("etl")
    first = guards.token(made)
    guards.clock.advance(KEY_S - 1)
    last = guards.token(made)
    guards.clock.advance(1)
    new = guards.token(made)
    ids = [jwt.get_unverified_header(token)["kid"] for token in (first, last, new)]
    assert ids[0] == ids[1] != ids[2]
    assert guards.another_process().tokens.read(last).principal == "etl"


@pytest.mark.parametrize("change", ["algorithm none", "another key", "a changed claim", "another issuer", "no token"])
def test_a_forged_token_is_refused(guards: Guards, change: str) -> None:
    token = guards.token(guards.principals.add("etl"))
    claims = jwt.decode(token, options={"verify_signature": False})
    header = {"kid": jwt.get_unverified_header(token)["kid"]}
    key = guards.keys.current().secret
    forged = {
        "algorithm none": lambda: jwt.encode(claims, None, "none", header),
        "another key": lambda: jwt.encode(claims, b"0" * 32, "HS256", header),
        "a changed claim": lambda: jwt.encode({**claims, "sub": "root"}, b"0" * 32, "HS256", header),
        "another issuer": lambda: jwt.encode({**claims, "iss": "elsewhere"}, key, "HS256", header),
        "no token": lambda: "a.b.c",
    }[change]()
    with pytest.raises(NotAuthorized, match="malformed or its signature is wrong"):
        guards.tokens.read(forged)


@pytest.mark.parametrize(
    ("body", "authorization", "status", "error"),
    [
        (b"", None, 400, "invalid_request"),
        (b"grant_type=password", None, 400, "unsupported_grant_type"),
        (b"grant_type=client_credentials", None, 401, "invalid_client"),
        (b"grant_type=client_credentials&client_id=x&client_secret=y", None, 401, "invalid_client"),
        (b"grant_type=client_credentials", "Basic ***", 401, "invalid_client"),
        (b"grant_type=client_credentials&client_id=a&client_id=b", None, 400, "invalid_request"),
        (b"\xff\xfe", None, 400, "invalid_request"),
        (b"&".join(b"a%d=1" % number for number in range(50)), None, 400, "invalid_request"),
        (b"grant_type=urn:ietf:params:oauth:grant-type:token-exchange", None, 400, "invalid_request"),
    ],
)
def test_a_bad_request_for_a_token_is_answered_in_oauth_s_words(
    guards: Guards, body: bytes, authorization: str | None, status: int, error: str
) -> None:
    reply = guards.endpoint.answer(body, authorization)
    assert (reply.status, reply.document["error"]) == (status, error)
    assert ("www-authenticate" in reply.headers) == (status == 401)
