"""Python clients against the guard: their two ways to a token, and what they do when it ends."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, OAuthError

from frazil.catalog.privileges import Place, Privilege
from frazil.testing import MovableClock
from guarded import GuardedCatalog, Start


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def catalog(guarded: Start, clock: MovableClock) -> GuardedCatalog:
    running = guarded(authentication=True, clock_ms=clock)
    running.make("db.t")
    return running


def test_pyiceberg_gets_another_token_when_its_own_has_ended(catalog: GuardedCatalog, clock: MovableClock) -> None:
    client = catalog.client(catalog.root)
    clock.advance(2 * 3600)
    assert client.list_namespaces() == [("db",)]
    statuses = [line["status"] for line in catalog.lines if line["log"] == "access"]
    assert statuses[-3:] == [401, 200, 200]


def test_pyiceberg_s_newer_way_sends_its_secret_in_a_header(catalog: GuardedCatalog) -> None:
    assert catalog.root is not None
    known = {
        "client_id": catalog.root.client_id,
        "client_secret": catalog.root.secret,
        "token_url": f"{catalog.uri}/v1/oauth/tokens",
        "scope": "catalog",
    }
    client = RestCatalog("newer", uri=catalog.uri, auth={"type": "oauth2", "oauth2": known})
    assert client.list_tables("db") == [("db", "t")]


def test_pyiceberg_hears_the_refusals_by_their_names(catalog: GuardedCatalog) -> None:
    reader = catalog.principal("reader", (Privilege.READ, Place(("db",))))
    client = catalog.client(reader)
    assert client.load_table("db.t").name() == ("db", "t")
    with pytest.raises(ForbiddenError, match="dropTable needs the privilege drop on the table"):
        client.drop_table("db.t")
    with pytest.raises(OAuthError, match="invalid_client"):
        RestCatalog("wrong", uri=catalog.uri, credential=f"{reader.client_id}:wrong")


def test_a_server_without_authentication_tells_a_client_with_a_credential_that_it_needs_none(guarded: Start) -> None:
    with pytest.raises(OAuthError, match="configure no credential"):
        RestCatalog("eager", uri=guarded().uri, credential="a:b")
