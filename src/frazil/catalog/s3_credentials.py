"""Credentials for a table's files, from STS: short-lived, and good for that table's folders alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from frazil.catalog.errors import ServiceUnavailable
from frazil.catalog.s3_places import S3Place
from frazil.catalog.s3_policy import session_policy

_UNFIT: Final = re.compile(r"[^\w+=,.@-]", re.ASCII)
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class S3Store:
    """The object store, and the server's own way into it. Without keys it is what the machine offers botocore."""

    endpoint: str | None = None
    region: str = "us-east-1"
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> S3Store:
        """Out of the FileIO properties with which the server reads and writes metadata."""
        return cls(
            endpoint=properties.get("s3.endpoint"),
            region=properties.get("s3.region") or properties.get("client.region") or "us-east-1",
            access_key_id=properties.get("s3.access-key-id"),
            secret_access_key=properties.get("s3.secret-access-key"),
            session_token=properties.get("s3.session-token"),
        )

    def __repr__(self) -> str:
        return f"S3Store(endpoint={self.endpoint!r}, region={self.region!r})"

    def session(self) -> botocore.session.Session:
        """A session of botocore with these keys."""
        session = botocore.session.Session()
        if self.access_key_id is not None:
            session.set_credentials(self.access_key_id, self.secret_access_key, self.session_token)
        return session


@dataclass(frozen=True, slots=True)
class RoleToAssume:
    """Which role the server assumes for its callers, where, and for how long."""

    arn: str
    endpoint: str | None = None
    seconds: int = 3600


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """What STS gave."""

    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_at_ms: int

    def __repr__(self) -> str:
        return f"S3Credentials(access_key_id={self.access_key_id!r}, expires_at_ms={self.expires_at_ms})"

    def to_config(self) -> dict[str, str]:
        """As FileIO properties."""
        return {
            "s3.access-key-id": self.access_key_id,
            "s3.secret-access-key": self.secret_access_key,
            "s3.session-token": self.session_token,
            "s3.session-token-expires-at-ms": str(self.expires_at_ms),
        }


class CredentialSource:
    """Asks STS, and gives the same caller the same credentials again for the first half of their life. Thread-safe."""

    def __init__(self, store: S3Store, role: RoleToAssume, clock_ms: Callable[[], int]) -> None:
        self._role = role
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._given: dict[tuple[str, tuple[S3Place, ...], bool], S3Credentials] = {}
        endpoint = role.endpoint or store.endpoint
        config = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 3, "mode": "standard"})
        self._sts: Any = store.session().create_client(
            "sts", region_name=store.region, endpoint_url=endpoint, config=config
        )

    def credentials(self, caller: str, folders: tuple[S3Place, ...], *, writes: bool) -> S3Credentials:
        """Credentials for these folders. Waits for STS."""
        wanted = caller, folders, writes
        found = self._given.get(wanted)
        if found is not None and self._clock_ms() < found.expires_at_ms - self._role.seconds * 500:
            return found
        given = self._assume(caller, session_policy(folders, writes=writes))
        with self._lock:
            if len(self._given) >= _MOST:
                self._given = {}
            self._given[wanted] = given
        return given

    def _assume(self, caller: str, policy: str) -> S3Credentials:
        """The caller's name becomes the session's, so that the store's own logs say who it was."""
        name = (_UNFIT.sub("-", caller) + "--")[:64] if len(caller) < 2 else _UNFIT.sub("-", caller)[:64]
        try:
            reply = self._sts.assume_role(
                RoleArn=self._role.arn, RoleSessionName=name, Policy=policy, DurationSeconds=self._role.seconds
            )
        except (BotoCoreError, ClientError) as error:
            raise ServiceUnavailable(f"No credentials for the table's files: STS said {_said(error)}") from error
        found = reply["Credentials"]
        return S3Credentials(
            found["AccessKeyId"],
            found["SecretAccessKey"],
            found["SessionToken"],
            int(found["Expiration"].timestamp() * 1000),
        )


def _said(error: Exception) -> str:
    """The kind of failure. STS's own words may name its policies, so they stay in the log."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "an error"))
    return type(error).__name__
