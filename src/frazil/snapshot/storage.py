"""Listing and deleting files, which PyIceberg's FileIO leaves to the file systems beneath it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

from pyarrow import fs
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO

from frazil.errors import StorageFailed


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing shows it. `path` is in the form that the listed folder was given in."""

    path: str
    size: int
    modified_ms: int


def file_io(storage: Mapping[str, str], location: str) -> FileIO:
    """A FileIO for a writer that has nothing but a descriptor."""
    return load_file_io(dict(storage), location)


def file_system(io: FileIO, location: str) -> tuple[Any, str]:
    """The PyArrow file system of a location, and the path within it."""
    properties = dict(io.properties)
    arrow_io = io if isinstance(io, PyArrowFileIO) else PyArrowFileIO(properties)
    scheme, netloc, path = PyArrowFileIO.parse_location(location, properties)
    return arrow_io.fs_by_scheme(scheme, netloc), path


def list_files(io: FileIO, folder: str) -> Iterator[StoredFile]:
    """Every file below a folder; none where there is no such folder."""
    system, path = file_system(io, folder)
    path = path.rstrip("/")
    try:
        found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    except OSError as error:
        raise StorageFailed(f"folder {folder} cannot be listed: {error}") from error
    for info in found:
        if info.type == fs.FileType.File:
            yield StoredFile(
                path=folder.rstrip("/") + info.path[len(path) :],
                size=info.size,
                modified_ms=(info.mtime_ns or 0) // 1_000_000,
            )


def delete_files(io: FileIO, paths: Iterable[str]) -> int:
    """Delete files; one that is gone already is no error. Returns how many were there."""
    deleted = 0
    for path in paths:
        try:
            io.delete(path)
            deleted += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageFailed(
                f"file {path} cannot be deleted: {error}; it is an orphan that a sweep will find"
            ) from error
    return deleted


def same_file(path: str) -> str:
    """A spelling of a path that is equal for equal files: `file:///a`, `file:/a` and `/a` are one."""
    parts = urlparse(path)
    return parts.path if parts.scheme in ("", "file") else path
