"""Places in S3: a bucket and a key, out of a location or out of the URI of a request. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from frazil.catalog import locations
from frazil.catalog.errors import Forbidden, InvalidRequest

SCHEMES: Final = ("s3", "s3a", "s3n")


@dataclass(frozen=True, slots=True, order=True)
class S3Place:
    """A bucket, and a key or a folder of keys in it. A folder's key has no slash at its end."""

    bucket: str
    key: str

    @classmethod
    def of_location(cls, location: str) -> S3Place | None:
        """The folder that a table's location names, or None where it is not in S3."""
        scheme, _, rest = location.partition("://")
        if scheme.lower() not in SCHEMES:
            return None
        bucket, _, key = rest.partition("/")
        return cls(bucket, key.strip("/")) if bucket and key.strip("/") else None

    def holds(self, other: S3Place) -> bool:
        """Whether the other lies in this folder. S3 takes a key as it is; stores on file systems may walk its dots."""
        walks = {".", ".."} & set(other.key.replace("\\", "/").split("/"))
        return self.bucket == other.bucket and other.key.startswith(self.key + "/") and not walks

    @property
    def location(self) -> str:
        """As Iceberg writes it."""
        return f"s3://{self.bucket}/{self.key}"


def folders_of(metadata: Mapping[str, Any]) -> tuple[S3Place, ...]:
    """Where the files of a table lie: its location, and what its properties name beside it. Folders in folders are left out."""
    places = {place for place in map(S3Place.of_location, locations.folders_of(metadata)) if place is not None}
    return tuple(sorted(place for place in places if not any(each.holds(place) for each in places)))


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """The store that requests go to: an address of one's own, or Amazon's."""

    url: str | None = None

    def place_of(self, uri: str) -> S3Place:
        """What a request's URI is about. A form of address that is not surely understood is refused, never guessed."""
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or parts.username is not None or parts.fragment:
            raise InvalidRequest("Cannot sign the request: its URI is no plain http or https address")
        bucket, path = self._bucket_in_host(parts.netloc.lower()), parts.path.removeprefix("/")
        if bucket is None:
            bucket, _, path = path.partition("/")
        key = unquote(path, errors="strict")
        if any(part in (".", "..") for part in _fully_decoded(path).replace("\\", "/").split("/")):
            raise Forbidden("Cannot sign the request: its path leads out of its folder")
        return S3Place(unquote(bucket), key)

    def _bucket_in_host(self, host: str) -> str | None:
        """The bucket that the host names, or None when the path does."""
        if self.url is not None:
            own = urlsplit(self.url).netloc.lower()
            if host == own:
                return None
            if host.endswith("." + own):
                return host.removesuffix("." + own)
            raise Forbidden(f"Cannot sign the request: {host} is not the store {own}")
        name = host.removesuffix(".amazonaws.com")
        labels = name.split(".")
        if name == host or not labels:
            raise Forbidden(f"Cannot sign the request: {host} is no address of Amazon S3")
        for width in (3, 2, 1):  # s3.dualstack.region, s3.region, s3
            if len(labels) >= width and labels[-width] == "s3" and (width < 3 or labels[-2] == "dualstack"):
                return ".".join(labels[:-width]) or None
        raise Forbidden(f"Cannot sign the request: {host} is no address of Amazon S3")


def holding(folders: Iterable[S3Place], place: S3Place) -> bool:
    """Whether one of the folders holds the place."""
    return any(folder.holds(place) for folder in folders)


def _fully_decoded(text: str) -> str:
    while (decoded := unquote(text)) != text:
        text = decoded
    return text
