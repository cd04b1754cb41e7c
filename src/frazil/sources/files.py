"""From what a user names (files, folders, globs, here or on an object store) to a list of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import Any

from pyarrow import fs
from pyiceberg.io.pyarrow import PyArrowFileIO

from frazil.errors import SourceNotFound, SourceUnreadable

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source as it was when the job was planned."""

    path: str
    size: int
    modified_ms: int


def find_files(patterns: Iterable[str], storage: Mapping[str, str], suffixes: tuple[str, ...]) -> list[SourceFile]:
    """Every file that the patterns name, each once, sorted by path within a pattern.

    A folder stands for the files below it with one of `suffixes`, hidden ones (`_…`, `.…`) left out. A pattern that
    names nothing is an error.
    """
    found: dict[str, SourceFile] = {}
    for pattern in patterns:
        files = _find(pattern, storage, suffixes)
        if not files:
            raise SourceNotFound(f"source {pattern} names no file ending in {' or '.join(suffixes)}; check the path")
        found.update({file.path: file for file in files})
    return list(found.values())


def source_system(path: str, storage: Mapping[str, str]) -> tuple[Any, str]:
    """The PyArrow file system of a source path, and the path within it."""
    properties = dict(storage)
    scheme, netloc, within = PyArrowFileIO.parse_location(path, properties)
    try:
        return PyArrowFileIO(properties).fs_by_scheme(scheme, netloc), within
    except ValueError as error:
        raise SourceNotFound(
            f"source {path} is on a kind of storage that is not known ({scheme}); use a path, s3://, gs:// …"
        ) from error


def _find(pattern: str, storage: Mapping[str, str], suffixes: tuple[str, ...]) -> list[SourceFile]:
    local = "://" not in pattern
    text = str(Path(pattern).expanduser().absolute()) if local else pattern
    system, path = source_system(text, storage)
    prefix = "" if local else text[: len(text) - len(path)]
    try:
        if _WILD.search(path):
            infos = _matching(system, path, suffixes)
        else:
            infos = _below(system, path, pattern, suffixes)
    except OSError as error:
        raise SourceUnreadable(f"source {pattern} cannot be listed: {error}") from error
    return [
        SourceFile(prefix + info.path, info.size, (info.mtime_ns or 0) // 1_000_000)
        for info in sorted(infos, key=lambda info: info.path)
    ]


def _below(system: Any, path: str, pattern: str, suffixes: tuple[str, ...]) -> list[Any]:
    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return [info]
    if info.type == fs.FileType.NotFound:
        raise SourceNotFound(f"source {pattern} does not exist; check the path")
    return [info for info in _walk(system, path) if _wanted(info.path[len(path) :], suffixes)]


def _matching(system: Any, path: str, suffixes: tuple[str, ...]) -> list[Any]:
    """Files that match a glob, in which `*` stays within a folder and `**` does not; a matching folder counts whole."""
    fixed = path[: _WILD.search(path).start()].rpartition("/")[0]  # type: ignore[union-attr]
    matcher = _glob(path)
    found = []
    for info in _walk(system, fixed):
        if matcher.fullmatch(info.path) or (
            any(matcher.fullmatch(str(folder)) for folder in Path(info.path).parents) and _wanted(info.path, suffixes)
        ):
            found.append(info)
    return found


def _walk(system: Any, path: str) -> list[Any]:
    infos = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return [info for info in infos if info.type == fs.FileType.File]


def _wanted(path: str, suffixes: tuple[str, ...]) -> bool:
    parts = [part for part in path.split("/") if part]
    hidden = any(part.startswith((".", "_")) and "=" not in part for part in parts)
    return not hidden and path.lower().endswith(suffixes)


def _glob(path: str) -> re.Pattern[str]:
    pieces = []
    for part in path.split("/"):
        if part == "**":
            pieces.append("(?:[^/]+/)*")
        else:
            pieces.append(_within_folder(part) + "/")
    return re.compile("".join(pieces).rstrip("/"))


def _within_folder(part: str) -> str:
    """fnmatch's expression for one path element, with `.*` kept from crossing a slash."""
    expression = translate(part)
    body = re.fullmatch(r"\(\?s:(.*)\)\\Z", expression)
    return (body.group(1) if body else expression).replace(".*", "[^/]*")
