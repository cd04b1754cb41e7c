"""Where tables may lie: the warehouse and what else was allowed, and nowhere out of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from frazil.catalog.errors import Forbidden, InvalidRequest
from frazil.catalog.naming import Namespace, folder_name

METADATA_PATH = "write.metadata.path"
FILE_FOLDERS = (
    "write.data.path",
    METADATA_PATH,
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""The properties by which a table keeps files somewhere else than under its location."""
_LONGEST = 900
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def default_location(warehouse: str, parents: Mapping[str, str], namespace: Namespace, name: str, uuid: str) -> str:
    """A location nobody else has: a table made under an old name must not lie where the old one's files are."""
    base = parents.get("location") or "/".join([warehouse, *map(folder_name, namespace)])
    return f"{base.rstrip('/')}/{folder_name(name)}-{uuid.replace('-', '')[:12]}"


def metadata_folder(metadata: Mapping[str, Any]) -> str:
    """The folder of a table's or view's metadata files."""
    chosen = (metadata.get("properties") or {}).get(METADATA_PATH)
    return str(chosen).rstrip("/") if chosen else f"{str(metadata['location']).rstrip('/')}/metadata"


def folders_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the files of a table or view lie: its location, and what its properties name beside it."""
    properties = metadata.get("properties") or {}
    chosen = [str(properties[name]).rstrip("/") for name in FILE_FOLDERS if properties.get(name)]
    return tuple(dict.fromkeys([str(metadata["location"]).rstrip("/"), *chosen]))


def lies_in(location: object, roots: tuple[str, ...]) -> bool:
    """Whether `checked_location` has nothing against it."""
    try:
        return bool(checked_location(location, roots))
    except (Forbidden, InvalidRequest):
        return False


def checked_location(location: object, roots: tuple[str, ...]) -> str:
    """`location` without a trailing slash, if it lies in one of the roots."""
    if not isinstance(location, str) or not location.strip():
        raise InvalidRequest("Invalid location: it is not a text")
    return _checked(location, roots)


@lru_cache(maxsize=1024)  # one request asks several times for the same
def _checked(location: str, roots: tuple[str, ...]) -> str:
    if len(location) > _LONGEST or _CONTROL.search(location):
        raise InvalidRequest("Invalid location: it is too long, or holds control characters")
    place = _place(location)
    if any(part in (".", "..") for part in re.split(r"[/\\]", _fully_decoded(location))):
        raise InvalidRequest(f"Invalid location: {location} holds a way out of its folder")
    if not any(place == root or place.startswith(root.rstrip("/") + "/") for root in map(_place, roots)):
        raise Forbidden(f"Location {location} is outside of what this catalog may use: {', '.join(roots)}")
    return location.rstrip("/")


def _place(location: str) -> str:
    """A spelling that is equal for equal places: `file:///a`, `file:/a` and `/a//` are one, so are s3 and s3a."""
    scheme, _, rest = location.partition(":") if _SCHEME.match(location) else ("file", "", location)
    return (
        f"{_SAME_SCHEME.get(scheme.lower(), scheme.lower())}:/{posixpath.normpath('/' + rest.strip('/')).lstrip('/')}"
    )


def _fully_decoded(location: str) -> str:
    while (decoded := unquote(location)) != location:
        location = decoded
    return location
