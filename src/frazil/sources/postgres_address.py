"""Where a PostgreSQL database is, with its secrets kept apart: the address may be shown and noted, they never are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from frazil.errors import BadInput

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql", "postgres")
CREDENTIAL_PREFIX = "postgres."
"""What a secret's name begins with among the storage properties that are handed to writers."""

_IN_THE_URL = ("user", "host", "port", "dbname")
# Bytes are handed on as they come, and Arrow's strings are UTF-8 whatever the database holds.
_ALWAYS = {"client_encoding": "UTF8"}
# Where this host looks up what has been found by now.
_OF_THIS_HOST = ("service", "servicefile", "passfile")
_USUALLY = {"application_name": "frazil", "keepalives_idle": "60"}


def is_address(text: str) -> bool:
    """Whether a source is a database by its scheme."""
    return "://" in text and _scheme(text) in SCHEMES


def _scheme(url: str) -> str:
    """Without the driver that SQLAlchemy's addresses name after a plus sign."""
    return url.partition("://")[0].partition("+")[0]


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """What libpq needs to connect. `str()` gives a URL without any secret; `secrets` are never shown nor noted."""

    parameters: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, url: str) -> PostgresAddress:
        """The address that a URL names. BadInput if it cannot be read; no part of the URL is in the message."""
        _check_credentials(url)
        psycopg = driver()
        try:
            found = psycopg.conninfo.conninfo_to_dict(f"postgresql://{url.partition('://')[2]}")
        except psycopg.Error:
            # The driver's own words may quote what stands where the password should.
            raise BadInput(
                "the PostgreSQL address cannot be read; write postgresql://user@host:5432/database, and "
                "percent-encode special signs"
            ) from None
        return cls._of({key: str(value) for key, value in found.items()})

    @classmethod
    def of_connection(cls, connection: psycopg.Connection[Any]) -> PostgresAddress:
        """The very server that a connection reached, so that another host needs no service file and no environment."""
        info = connection.info
        where = {"host": info.host, "port": str(info.port), "dbname": info.dbname, "user": info.user}
        secrets = {"password": info.password} if info.password else {}
        found = {**info.get_parameters(), **{key: value for key, value in where.items() if value}, **secrets}
        ours = {**_USUALLY, **_ALWAYS}
        return cls._of({k: v for k, v in found.items() if k not in _OF_THIS_HOST and ours.get(k) != v})

    @classmethod
    def _of(cls, found: Mapping[str, str]) -> PostgresAddress:
        secret = _secret_names()
        return cls(
            {key: value for key, value in found.items() if key not in secret},
            {key: value for key, value in found.items() if key in secret and value},
        )

    def with_credentials(self, storage: Mapping[str, str]) -> PostgresAddress:
        """The address with the secrets that travel among these storage properties."""
        found = {
            key.removeprefix(CREDENTIAL_PREFIX): value
            for key, value in storage.items()
            if key.startswith(CREDENTIAL_PREFIX)
        }
        return replace(self, secrets={**self.secrets, **found})

    def without_any_secret(self) -> PostgresAddress:
        """The address to note down, or to send where storage properties bring the secrets."""
        return replace(self, secrets={})

    @property
    def credentials(self) -> dict[str, str]:
        """The secrets under the names by which `with_credentials` finds them."""
        return {f"{CREDENTIAL_PREFIX}{key}": value for key, value in self.secrets.items()}

    def connection_string(self) -> str:
        """For libpq, secrets included."""
        settings = {**_USUALLY, **self.parameters, **self.secrets, **_ALWAYS}
        return str(driver().conninfo.make_conninfo("", **settings))

    def without_secrets(self, text: str) -> str:
        """A message with every secret in it struck out."""
        for secret in self.secrets.values():
            text = text.replace(secret, "***")
        return text

    def __str__(self) -> str:
        host, port = self.parameters.get("host", ""), self.parameters.get("port", "")
        plain = "/" not in host and "," not in host + port
        user = f"{quote(self.parameters['user'], safe='')}@" if "user" in self.parameters else ""
        place = f"{host}{':' + port if port else ''}" if plain else ""
        shown = _IN_THE_URL if plain else ("user", "dbname")
        more = {key: value for key, value in self.parameters.items() if key not in shown}
        query = f"?{urlencode(more, quote_via=quote)}" if more else ""
        return f"postgresql://{user}{place}/{quote(self.parameters.get('dbname', ''), safe='')}{query}"


def driver() -> Any:
    """psycopg with its parts. BadInput says how to install it."""
    try:
        import psycopg.conninfo
        import psycopg.sql
    except ImportError as error:
        raise BadInput(
            f"PostgreSQL sources need more than is installed ({error}); pip install 'frazil[postgres]'"
        ) from error
    return psycopg


def without_credentials(arguments: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """What a user typed, with the secrets taken out of each database's address; and these, by their names."""
    kept, credentials = [], {}
    for text in arguments:
        if is_address(text):
            address = PostgresAddress.parse(text)
            credentials.update(address.credentials)
            text = str(address.without_any_secret())
        kept.append(text)
    return tuple(kept), credentials


def _secret_names() -> frozenset[str]:
    """The parameters that libpq itself would not show (their display sign is a star)."""
    options = driver().pq.Conninfo.get_defaults()
    return frozenset(option.keyword.decode() for option in options if option.dispchar == b"*")


def _check_credentials(url: str) -> None:
    """Refuse an address in which a password's special sign would make libpq take a part of it for a host or a port."""
    authority, at, _ = url.partition("://")[2].rpartition("@")
    if at and any(sign in authority for sign in "/?#@"):
        raise BadInput(
            "the PostgreSQL address has one of / ? # @ in its user or password; percent-encode it "
            "(%2F %3F %23 %40), or leave the password out and set PGPASSWORD or ~/.pgpass"
        )
