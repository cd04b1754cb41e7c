"""What the server was told about who may come in, what a request may cost, and how clients reach the files.

Each setting is a field here, an option of `frazil catalog` and a variable `FRAZIL_CATALOG_…` of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final

from frazil.errors import BadInput

PREFIX: Final = "FRAZIL_CATALOG_"
LEAST_OF_STS: Final = 900
_TRUTHS: Final = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


def _setting(default: Any, told: str) -> Any:
    return field(default=default, metadata={"told": told})


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Parsed once, when the server starts."""

    authentication: bool = _setting(False, "Let in only who brings a token.")
    token_seconds: int = _setting(3600, "How long a token lasts.")
    token_refresh_seconds: int = _setting(86_400, "How long a token can be refreshed without the secret.")
    key_seconds: int = _setting(604_800, "How long a signing key is used before a new one is made.")
    remember_seconds: float = _setting(1.0, "How long a change of grants may take to count in every process.")
    oidc_issuer: str | None = _setting(None, "Also accept tokens of this OpenID Connect issuer: its URL.")
    oidc_audience: str | None = _setting(None, "Whom the issuer's tokens must be made for.")
    oidc_roles_claim: str = _setting("roles", "Which claim names roles; dots between levels.")
    max_request_bytes: int = _setting(33_554_432, "The largest request body.")
    max_nesting: int = _setting(128, "The deepest nesting of a request body.")
    request_seconds: float = _setting(60.0, "The longest time for a request.")
    access_log: bool = _setting(True, "Write a line of JSON per request, and one more per change, to stdout.")
    s3_role_arn: str | None = _setting(None, "Vend credentials for tables in S3: the role to assume at STS.")
    sts_endpoint: str | None = _setting(None, "The address of STS.  [default: the store's, or Amazon's]")
    s3_credential_seconds: int = _setting(3600, "How long vended credentials last.")
    remote_signing: bool = _setting(False, "Sign requests to S3 for clients that have no key.")

    def __post_init__(self) -> None:
        if (self.oidc_issuer is None) != (self.oidc_audience is None):
            raise BadInput(
                "oidc_issuer and oidc_audience go together: without an audience, a token made for any other service of "
                "the issuer would open this one"
            )
        if self.oidc_issuer and not self.oidc_issuer.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            raise BadInput(
                f"oidc_issuer {self.oidc_issuer}: whoever can change what it answers can be anybody; use https"
            )
        if self.oidc_issuer and not self.authentication:
            raise BadInput("oidc_issuer is set, but authentication is off; turn it on, or leave the issuer out")
        if self.s3_role_arn and self.s3_credential_seconds < LEAST_OF_STS:
            raise BadInput(
                f"s3_credential_seconds is {self.s3_credential_seconds}; STS gives none for less than 900 seconds"
            )
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
                raise BadInput(f"{each.name} is {value}; it must be more than 0")

    @classmethod
    def parse(
        cls, environment: Mapping[str, str], options: Mapping[str, Any], known_elsewhere: Iterable[str] = ()
    ) -> GuardSettings:
        """Out of options (None where one was not given) and the environment. Refuses what it does not know, by name."""
        names = {each.name: each for each in fields(cls)}
        given = {key.removeprefix(PREFIX).lower(): key for key in environment if key.startswith(PREFIX)}
        if unknown := sorted(given[name] for name in given.keys() - names.keys() - set(known_elsewhere)):
            raise BadInput(
                f"{', '.join(unknown)}: there is no such setting; there are {', '.join(map(variable, names))}"
            )
        values = {name: _parsed(names[name], environment[given[name]]) for name in names.keys() & given.keys()}
        return cls(**{**values, **{name: value for name, value in options.items() if value is not None}})


def variable(name: str) -> str:
    """The environment's name of a setting."""
    return PREFIX + name.upper()


def kind_of(setting: Field[Any]) -> type:
    """What a setting's text is parsed to."""
    return {"bool": bool, "int": int, "float": float}.get(str(setting.type), str)


def _parsed(setting: Field[Any], text: str) -> Any:
    kind, name = kind_of(setting), variable(setting.name)
    if kind is bool:
        if text.lower() not in _TRUTHS:
            raise BadInput(f"{name}={text}: it is on or off")
        return _TRUTHS[text.lower()]
    try:
        return kind(text)
    except ValueError:
        raise BadInput(f"{name}={text}: it is {'a whole number' if kind is int else 'a number'}") from None
