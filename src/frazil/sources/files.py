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
from frazil.snapshot.storage import same_file

_WILD = re.compile(r"[*?\[]")
_ADDRESS_TAIL = re.compile(r"[?#].*")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source as it was when the job was planned."""

    path: str
    size: int
    modified_ms: int


def find_files(patterns: Iterable[str], storage: Mapping[str, str], suffixes: tuple[str, ...]) -> list[SourceFile]:
    """Every file that the patterns name, each once, sorted by path within a pattern.

    A folder stands for the files below it with one of `suffixes`, hidden ones (`_…`, `.…`) left out. A glob stands for
    the files and folders that match it, hidden ones left out unless it spells out their first letter. A path that is
    there is taken as it is, even if it looks like a glob. A pattern that names nothing is an error.
    """
    found: dict[str, SourceFile] = {}
    for pattern in patterns:
        files = _find(pattern, storage, suffixes)
        if not files:
            raise SourceNotFound(f"source {pattern} names no file ending in {' or '.join(suffixes)}; check the path")
        for file in files:
            found.setdefault(same_file(file.path), file)
    return list(found.values())


def source_system(path: str, storage: Mapping[str, str]) -> tuple[Any, str]:
    """The PyArrow file system of a source path, and the path within it."""
    properties = dict(storage)
    scheme, netloc, within = PyArrowFileIO.parse_location(path, properties)
    if "://" in path and (tail := _ADDRESS_TAIL.search(path)):
        within += tail[0]  # in an address a query or fragment, but here a part of the name
    try:
        return PyArrowFileIO(properties).fs_by_scheme(scheme, netloc), within
    except ValueError as error:
        raise SourceNotFound(
            f"source {path} is on a kind of storage that is not known ({scheme}); use a path, s3://, gs:// …"
        ) from error


def first_bytes(file: SourceFile, storage: Mapping[str, str], count: int) -> bytes:
    """What the file begins with, fewer bytes if it is shorter."""
    system, path = source_system(file.path, storage)
    try:
        with system.open_input_stream(path, compression=None) as stream:
            return bytes(stream.read(count))
    except OSError as error:
        raise SourceUnreadable(f"source {file.path} cannot be read: {error}") from error


def check_unchanged(system: Any, path: str, file: SourceFile) -> None:
    """SourceUnreadable if the file is not as it was when the job was planned."""
    info = system.get_file_info(path)
    if info.size != file.size or (info.mtime_ns or 0) // 1_000_000 != file.modified_ms:
        raise SourceUnreadable(
            f"source {file.path} changed (or vanished) after this job was planned; start a new job, as rows from before "
            "and after must not mix"
        )


def _find(pattern: str, storage: Mapping[str, str], suffixes: tuple[str, ...]) -> list[SourceFile]:
    local = "://" not in pattern
    text = str(Path(pattern).expanduser().absolute()) if local else pattern
    system, path = source_system(text, storage)
    prefix = "" if local else text[: len(text) - len(path)]
    try:
        infos = _named(system, path.rstrip("/") or path, pattern, suffixes)
    except OSError as error:
        raise SourceUnreadable(f"source {pattern} cannot be listed: {error}") from error
    return [
        SourceFile(prefix + info.path, info.size, (info.mtime_ns or 0) // 1_000_000)
        for info in sorted(infos, key=lambda info: info.path)
    ]


def _named(system: Any, path: str, pattern: str, suffixes: tuple[str, ...]) -> list[Any]:
    wild = _WILD.search(path)
    there = system.get_file_info(path)
    if there.type != fs.FileType.NotFound:
        return _whole(system, there, suffixes)
    if wild is None:
        raise SourceNotFound(f"source {pattern} does not exist; check the path")
    fixed = path[: wild.start()].rpartition("/")[0]
    if isinstance(system, fs.LocalFileSystem):
        matches = [str(match) for match in Path(fixed or "/").glob(path[len(fixed) + 1 :])]
        return [
            file
            for match in system.get_file_info(matches)
            if not _hidden(match.path[len(fixed) :], path[len(fixed) :])
            for file in _whole(system, match, suffixes)
        ]
    return _matching(system, path, fixed, suffixes)


def _whole(system: Any, info: Any, suffixes: tuple[str, ...]) -> list[Any]:
    """A file as it is; of a folder the files below it that belong to a data set."""
    if info.type == fs.FileType.File:
        return [info]
    return [file for file in _walk(system, info.path) if _wanted(file.path[len(info.path) :], suffixes)]


def _matching(system: Any, path: str, fixed: str, suffixes: tuple[str, ...]) -> list[Any]:
    """As `glob` has it, of one listing: `*` stays within a folder and `**` does not; a matching folder counts whole."""
    matcher = _glob(path)
    found = []
    for info in _walk(system, fixed):
        folder = next((str(up) for up in Path(info.path).parents if matcher.fullmatch(str(up))), None)
        if matcher.fullmatch(info.path):
            wanted = not _hidden(info.path[len(fixed) :], path[len(fixed) :])
        else:
            wanted = folder is not None and not _hidden(folder[len(fixed) :], path[len(fixed) :])
            wanted = wanted and _wanted(info.path[len(folder or "") :], suffixes)
        if wanted:
            found.append(info)
    return found


def _walk(system: Any, path: str) -> list[Any]:
    infos = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return [info for info in infos if info.type == fs.FileType.File]


def _wanted(path: str, suffixes: tuple[str, ...]) -> bool:
    return not _hidden(path) and path.lower().endswith(suffixes)


def _hidden(path: str, spelled: str = "") -> bool:
    """Whether a part of the path begins with a mark of hiding that no part of `spelled` begins with."""
    shown = {part[:1] for part in spelled.split("/")}
    return any(part[:1] in "._" and part[:1] not in shown and "=" not in part for part in path.split("/") if part)


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
