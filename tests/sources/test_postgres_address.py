"""A database's address can be shown and noted down: what is secret in it never comes along."""

from __future__ import annotations

import pickle

import pytest

from frazil.errors import BadInput
from frazil.sources.postgres_address import PostgresAddress, is_address, without_credentials

SECRET = "s3cr3t"

URLS = [
    f"postgresql://reader:{SECRET}@db.example:5433/shop",
    f"postgres://reader:{SECRET}@db.example/shop?sslmode=require",
    f"postgresql+psycopg://reader:{SECRET}@db.example/shop",
    f"postgresql://reader@db.example/shop?password={SECRET}",
    f"postgresql://reader@db.example/shop?sslpassword={SECRET}",
    f"postgresql://reader:{SECRET}@/shop?host=/var/run/postgresql",
    f"postgresql://reader:{SECRET}@one:1,two:2/shop?target_session_attrs=read-write",
]


@pytest.mark.parametrize("url", URLS)
def test_no_form_of_an_address_shows_its_secret(url: str) -> None:
    address = PostgresAddress.parse(url)
    assert SECRET not in str(address)
    assert SECRET not in repr(address)
    assert SECRET.encode() not in pickle.dumps(address.without_any_secret())
    assert SECRET in address.connection_string()


@pytest.mark.parametrize("url", URLS)
def test_what_is_shown_is_the_same_place_and_the_secret_can_be_given_back(url: str) -> None:
    address = PostgresAddress.parse(url)
    again = PostgresAddress.parse(str(address))
    assert (again.parameters, dict(again.secrets)) == (address.parameters, {})
    assert again.with_credentials(address.credentials).connection_string() == address.connection_string()


def test_a_password_with_special_signs_is_taken_when_it_is_encoded() -> None:
    address = PostgresAddress.parse("postgresql://reader:a%40b%2Fc%3F%23%20d@db.example/shop")
    assert address.secrets["password"] == "a@b/c?# d"
    assert "a@b" not in str(address)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:pa@ss@db.example/shop",
        "postgresql://reader:pa/ss@db.example/shop",
        "postgresql://reader:pa?ss@db.example/shop",
        "postgresql://reader:pa#ss@db.example/shop",
        "postgresql://reader:pa%zzss@db.example/shop",
        "postgresql://reader:pass@db.example/shop?no_such_option=pass",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        PostgresAddress.parse(url)
    told = str(refused.value)
    assert "pa" not in told.replace("password", "").replace("part", "").replace("postgresql", "").replace(".pgpass", "")
    assert "ss@" not in told
    assert refused.value.__cause__ is None


def test_arguments_lose_their_secrets_and_keep_their_places() -> None:
    kept, credentials = without_credentials(["a.parquet", URLS[0], "db.t"])
    assert kept == ("a.parquet", "postgresql://reader@db.example:5433/shop", "db.t")
    assert credentials == {"postgres.password": SECRET}


def test_an_address_is_known_by_its_scheme() -> None:
    assert [is_address(text) for text in (*URLS, "postgresql", "s3://bucket/postgresql://", "a.parquet")] == (
        [True] * len(URLS) + [False] * 3
    )


def test_a_message_that_quotes_a_secret_has_it_struck_out() -> None:
    address = PostgresAddress.parse(URLS[0])
    assert address.without_secrets(f"wrong: {SECRET}!") == "wrong: ***!"
