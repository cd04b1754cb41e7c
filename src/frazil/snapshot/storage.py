"""Listing and deleting files, which PyIceberg's FileIO leaves to the file systems beneath it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyarrow import fs
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO

from frazil.errors import StorageFailed

_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "gs": "gcs", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}


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
        except Exception as error:
            raise StorageFailed(
                f"file {path} cannot be deleted: {error}; it is an orphan that a sweep will find"
            ) from error
    return deleted


def same_file(path: str) -> str:
    """A spelling of a path that is equal for equal files: `file:///a`, `file:/a` and `/a//` are one, so are s3 and s3a.

    Two files may come out as one, never one file as two: what is spared by mistake can be deleted another day.
    """
    scheme, _, rest = path.partition(":") if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path) else ("file", "", path)
    return f"{_SAME_SCHEME.get(scheme, scheme)}:/{re.sub('/+', '/', rest).strip('/')}"
