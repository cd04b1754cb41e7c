"""Where metadata files lie: local folders through the operating system, anything else through PyIceberg's FileIO.

A file is written once, under a name nobody else has, and is on disk when `write` returns. Nobody knows of it before a
pointer names it, so a torn one that a crash left is only an orphan.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyiceberg.io import FileIO, load_file_io


class Storage:
    """The files of one warehouse. Thread-safe."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self._ways: dict[str, FileIO] = {}

    def read(self, location: str) -> bytes:
        """The whole file; FileNotFoundError where there is none."""
        path = local_path(location)
        if path is not None:
            return path.read_bytes()
        with self.file_io(location).new_input(location).open() as stream:
            return bytes(stream.read())

    def write(self, location: str, content: bytes) -> None:
        """Make a file and see it to the disk. FileExistsError where there is one."""
        path = local_path(location)
        if path is not None:
            _write_durably(path, content)
            return
        with self.file_io(location).new_output(location).create() as stream:
            stream.write(content)

    def delete(self, location: str) -> None:
        """Remove a file; one that is gone already is no error."""
        path = local_path(location)
        if path is not None:
            path.unlink(missing_ok=True)
            return
        try:
            self.file_io(location).delete(location)
        except FileNotFoundError:
            return

    def make_folder(self, location: str) -> None:
        """Make a folder where folders are things of their own; some clients write into one without making it."""
        path = local_path(location)
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)

    def remove_empty_folder(self, location: str) -> None:
        """Remove a folder if there is one and nothing is in it."""
        path = local_path(location)
        if path is not None:
            with suppress(OSError):  # it is not there, or not empty: either way it is not to be removed
                path.rmdir()

    def file_io(self, location: str) -> FileIO:
        """PyIceberg's way to a location, with the storage properties of this server."""
        scheme = location.partition(":")[0]
        if scheme not in self._ways:  # of two threads that find none, either's will do
            self._ways[scheme] = load_file_io(self._properties, location)
        return self._ways[scheme]


def local_path(location: str) -> Path | None:
    """The path of a local location, taken literally as Iceberg's libraries do, or None for another file system."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return Path(location) if location.startswith("/") else None


def _write_durably(path: Path, content: bytes) -> None:
    changed = [path.parent]
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileNotFoundError:
        changed += _make_folder(path.parent)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    # After the file: by then most file systems have written its folders too, and there is nothing left to wait for.
    for folder in changed:
        _flush_folder(folder)


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder, and those above it where missing. Returns the folders that have a new entry."""
    above: list[Path] = []
    try:
        os.mkdir(folder)  # noqa: PTH102  several times per table made, and pathlib costs as much as the system
    except FileNotFoundError:
        above = _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        return above
    return [folder.parent, *above]


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
