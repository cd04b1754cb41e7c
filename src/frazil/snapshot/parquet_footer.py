"""The footer of a Parquet file by one small read from its end, wherever the table's files lie."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from frazil.errors import SourceUnreadable

_TAIL = 32 * 1024
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_ENDING = 8


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file as it was when the job was planned. `path` is what the table will call it."""

    path: str
    size: int
    modified_ms: int


def read_footer(file: PlannedFile, io: FileIO) -> pq.FileMetaData:
    """What the file says about itself. SourceUnreadable if it is damaged, encrypted, or has changed since it was planned."""
    try:
        tail = _local_end(file) if is_local(file.path) else _remote_end(file, io)
        return pq.read_metadata(pa.BufferReader(tail))
    except (OSError, pa.ArrowException) as error:
        text = str(error).strip().split("\n")[0]
        raise SourceUnreadable(f"{file.path} is not a readable Parquet file: {text}") from error


def is_local(path: str) -> bool:
    """Whether the operating system can open the file."""
    return path.startswith("file:") or "://" not in path


def local_name(path: str) -> str:
    """The name by which the operating system knows a local file."""
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


def _local_end(file: PlannedFile) -> bytes:
    descriptor = os.open(local_name(file.path), os.O_RDONLY)
    try:
        found = os.fstat(descriptor)
        if (found.st_size, found.st_mtime_ns // 1_000_000) != (file.size, file.modified_ms):
            raise _changed(file)
        start = max(0, file.size - _TAIL)
        tail = os.pread(descriptor, file.size - start, start)
        missing = _missing(file, tail)
        return os.pread(descriptor, missing, start - missing) + tail if missing else tail
    finally:
        os.close(descriptor)


def _remote_end(file: PlannedFile, io: FileIO) -> bytes:
    with io.new_input(file.path).open() as stream:
        start = max(0, file.size - _TAIL)
        stream.seek(start)
        tail = bytes(stream.read())
        if len(tail) != file.size - start:
            raise _changed(file)
        missing = _missing(file, tail)
        if not missing:
            return tail
        stream.seek(start - missing)
        return bytes(stream.read(missing)) + tail


def _missing(file: PlannedFile, tail: bytes) -> int:
    """How many bytes of the footer lie before the tail."""
    magic = tail[-4:]
    if magic == _ENCRYPTED:
        raise SourceUnreadable(f"{file.path} has an encrypted footer, which cannot be registered; decrypt it first")
    if magic != _MAGIC or len(tail) < _ENDING:
        raise SourceUnreadable(f"{file.path} does not end as a Parquet file does; take it out, or write it again")
    length = int.from_bytes(tail[-8:-4], "little") + _ENDING
    if length > file.size:
        raise SourceUnreadable(f"{file.path} is damaged: its footer would be longer than the file")
    return max(0, length - len(tail))


def _changed(file: PlannedFile) -> SourceUnreadable:
    return SourceUnreadable(
        f"{file.path} changed after this job was planned; a registered file must stay as it is, so start a new job when "
        "it is complete"
    )
