"""`POST /v1/oauth/tokens`: client credentials for a token, and a token for a fresh one."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus

from frazil.catalog.errors import NotAuthorized
from frazil.catalog.identities import Identities
from frazil.catalog.principals import Principals
from frazil.catalog.tokens import Tokens

CLIENT_CREDENTIALS: Final = "client_credentials"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"
_EXCHANGEABLE: Final = {ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt"}


@dataclass(frozen=True, slots=True)
class TokenReply:
    """A status and the JSON body, as OAuth has them: this endpoint does not answer with Iceberg's error body."""

    status: int
    document: dict[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        """Nobody on the way may keep a token."""
        headers = {"cache-control": "no-store"}
        return headers | ({"www-authenticate": 'Basic realm="frazil"'} if self.status == 401 else {})


class OAuthRefusal(Exception):
    """A refusal in OAuth's words."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.reply = TokenReply(
            401 if error == "invalid_client" else 400, {"error": error, "error_description": description}
        )


class TokenEndpoint:
    """Answers token requests. Blocks while it hashes, so call it in a thread."""

    def __init__(self, principals: Principals, tokens: Tokens, identities: Identities) -> None:
        self._principals = principals
        self._tokens = tokens
        self._identities = identities

    def answer(self, body: bytes, authorization: str | None) -> TokenReply:
        """The reply to a form body and the `Authorization` header."""
        try:
            form = _form(body)
            match form.get("grant_type"):
                case None:
                    raise OAuthRefusal("invalid_request", "grant_type is missing")
                case "client_credentials":
                    return self._client_credentials(form, authorization)
                case "urn:ietf:params:oauth:grant-type:token-exchange":
                    return self._token_exchange(form, authorization)
            raise OAuthRefusal("unsupported_grant_type", f"grant_type is {CLIENT_CREDENTIALS} or {TOKEN_EXCHANGE}")
        except OAuthRefusal as refusal:
            return refusal.reply

    def _client_credentials(self, form: dict[str, str], authorization: str | None) -> TokenReply:
        credentials = _credentials(form, authorization)
        if credentials is None:
            raise OAuthRefusal("invalid_client", "client_id and client_secret are missing")
        return self._granted(self._authenticated(*credentials))

    def _token_exchange(self, form: dict[str, str], authorization: str | None) -> TokenReply:
        """A refresh: the subject token is ours. With client credentials beside it, it may even have expired."""
        token = form.get("subject_token")
        if not token or form.get("subject_token_type") not in _EXCHANGEABLE:
            raise OAuthRefusal("invalid_request", "subject_token must come with the type of an access token")
        if form.get("requested_token_type", ACCESS_TOKEN) != ACCESS_TOKEN or "actor_token" in form:
            raise OAuthRefusal("invalid_request", "a token is exchanged here only for a fresh one that says the same")
        credentials = _credentials(form, authorization)
        if credentials is not None:
            return self._granted(self._authenticated(*credentials), exchanged=True)
        try:
            claims = self._tokens.read(token)
            self._identities.find(claims)
            return self._granted(self._tokens.refresh(claims), exchanged=True)
        except NotAuthorized as error:
            raise OAuthRefusal("invalid_grant", error.message) from error

    def _authenticated(self, client_id: str, secret: str) -> str:
        principal = self._principals.authenticate(client_id, secret)
        if principal is None:
            raise OAuthRefusal("invalid_client", "the client id is not known, or the secret is wrong")
        return self._tokens.issue(principal)

    def _granted(self, token: str, *, exchanged: bool = False) -> TokenReply:
        document: dict[str, Any] = {
            "access_token": token,
            "token_type": "bearer",
            "expires_in": self._tokens.lifetime_s,
            "scope": "catalog",
        }
        return TokenReply(200, document | ({"issued_token_type": ACCESS_TOKEN} if exchanged else {}))


def _form(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=32)
    except ValueError as error:
        raise OAuthRefusal("invalid_request", "the body is no form") from error
    form = dict(pairs)
    if len(form) != len(pairs):
        raise OAuthRefusal("invalid_request", "a parameter comes twice")
    return form


def _credentials(form: dict[str, str], authorization: str | None) -> tuple[str, str] | None:
    """From the form, or else from a Basic header; a Bearer header is no credential here."""
    if "client_id" in form or "client_secret" in form:
        return form.get("client_id", ""), form.get("client_secret", "")
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, _, secret = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise OAuthRefusal("invalid_client", "the Authorization header cannot be read") from error
    return unquote_plus(client_id), unquote_plus(secret)
