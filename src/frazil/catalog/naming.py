"""Names: how namespaces and tables are spelled in a URL, in the database and in a location.

The JDBC layout joins the levels of a namespace with dots, so a dot within a level is kept as `%2E`. That is the only
spelling that differs from PyIceberg's and Java's, which cannot tell such a level from two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from frazil.catalog.errors import InvalidRequest

Namespace: TypeAlias = tuple[str, ...]

UNIT_SEPARATOR: Final = "%1F"
_LONGEST = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPED_DOT = re.compile(r"%((?:25)*)2E")
_UNFIT_FOR_A_FOLDER = re.compile(r"[^A-Za-z0-9_-]+")


def decode_segment(raw: str) -> str:
    """A part of the raw path: what lies between two slashes, decoded once.

    Iceberg's Java client spells a space `+` and PyIceberg `%20`; both spell a plus `%2B`.
    """
    try:
        return unquote(raw.replace("+", " "), errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"Cannot decode {raw} in the path: it is not UTF-8") from error


def decode_namespace(raw: str, separator: str = UNIT_SEPARATOR) -> Namespace:
    """A namespace as it stands in a raw path. It is cut before it is decoded, so a level may hold the separator's sign."""
    signs = {UNIT_SEPARATOR, separator, unquote(UNIT_SEPARATOR)}
    pattern = "|".join(re.escape(sign) for sign in sorted(signs, key=len, reverse=True))
    return checked_namespace(decode_segment(part) for part in re.split(pattern, raw, flags=re.IGNORECASE))


def namespace_from_query(value: str, separator: str = UNIT_SEPARATOR) -> Namespace:
    """A namespace as the query parameter `parent` has it, decoded already."""
    signs = {unquote(UNIT_SEPARATOR), unquote(separator)}
    return checked_namespace(re.split("|".join(re.escape(sign) for sign in signs), value, flags=re.IGNORECASE))


def checked_namespace(levels: Any) -> Namespace:
    """The namespace of these levels, each of which must be a name."""
    given = () if isinstance(levels, (str, bytes, dict)) or not isinstance(levels, Iterable) else levels
    namespace = tuple(checked_name(level, "namespace") for level in given)
    if not namespace:
        raise InvalidRequest("Invalid namespace: it has no levels")
    if len(stored_namespace(namespace)) > _LONGEST:
        raise InvalidRequest(f"Invalid namespace: it is longer than {_LONGEST} characters")
    return namespace


def checked_name(name: object, what: str) -> str:
    """`name`, if it is one: not empty, not too long, of printable signs, and no way out of a folder."""
    if not isinstance(name, str):
        raise InvalidRequest(f"Invalid {what} name: it is not a string")
    if not name:
        raise InvalidRequest(f"Invalid {what} name: it is empty")
    if len(name) > _LONGEST:
        raise InvalidRequest(f"Invalid {what} name: it is longer than {_LONGEST} characters")
    if _CONTROL.search(name) or any("\ud800" <= sign <= "\udfff" for sign in name):
        raise InvalidRequest(f"Invalid {what} name: it holds a control character")
    if {".", ".."} & set(re.split(r"[/\\]", name)):
        raise InvalidRequest(f"Invalid {what} name: {name} would lead out of its folder")
    return name


def stored_namespace(namespace: Namespace) -> str:
    """The namespace as the database has it."""
    return ".".join(_ESCAPED_DOT.sub(r"%25\g<1>2E", level).replace(".", "%2E") for level in namespace)


def namespace_from_stored(stored: str) -> Namespace:
    """The inverse of `stored_namespace`."""
    return tuple(
        _ESCAPED_DOT.sub(lambda match: f"%{match[1][2:]}2E" if match[1] else ".", level) for level in stored.split(".")
    )


def text_of(namespace: Namespace, name: str | None = None) -> str:
    """A namespace or a table for a message, as Iceberg prints it."""
    return ".".join(namespace if name is None else (*namespace, name))


def folder_name(name: str) -> str:
    """A name as a part of a location: readable, and nothing that a file system or a URL could take amiss."""
    return _UNFIT_FOR_A_FOLDER.sub("_", name)[:64]
