"""Avro's container files: their header, their blocks, and where they may be cut."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_MAGIC = b"Obj\x01"
_SYNC = 16
_FIRST_READ = 64 * 1024
_LONGEST_HEADER = 64 * 1024 * 1024
_WINDOW = 256 * 1024
_READ_AHEAD = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Header:
    """What a file begins with: `size` bytes of it. The blocks follow, each ending with `sync`."""

    schema: Any
    codec: str
    sync: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Block:
    """Records as bytes, without compression, and the byte of the file at which their block begins."""

    offset: int
    records: int
    data: bytes


def read_header(stream: Any) -> Header:
    """The header of the file. ValueError if it is none of Avro's, or in a codec that is not known."""
    size = _FIRST_READ
    while True:
        stream.seek(0)
        head = stream.read(size)
        try:
            return _header(head)
        except EOFError as error:
            if len(head) < size or size > _LONGEST_HEADER:
                raise ValueError("its header is cut short") from error
            size *= 8


def read_blocks(stream: Any, header: Header, start: int, end: int) -> Iterator[Block]:
    """The blocks from byte `start` up to `end`. ValueError if one is damaged, or if they do not end just there."""
    unpack = _CODECS[header.codec]
    stream.seek(start)
    stream = pa.BufferedInputStream(stream, _READ_AHEAD)
    at = start
    while at < end:
        records, first = _stream_long(stream)
        size, second = _stream_long(stream)
        if records < 0 or size < 0 or at + first + second + size + _SYNC > end:
            raise ValueError(f"the block at byte {at} is damaged, or goes on behind byte {end}")
        packed, sync = stream.read(size), stream.read(_SYNC)
        if sync != header.sync:
            raise ValueError(f"the block at byte {at} is damaged: it does not end with the file's marker")
        yield Block(at, records, _unpacked(unpack, packed, at))
        at += first + second + size + _SYNC


def cut_points(stream: Any, header: Header, size: int, targets: Sequence[int]) -> list[int]:
    """Where the file may be cut near each target: behind the marker that follows it."""
    found = {_marker_end(stream, header.sync, max(target, header.size), size) for target in targets}
    return sorted(cut for cut in found if cut < size)


def _marker_end(stream: Any, sync: bytes, target: int, size: int) -> int:
    while target < size:
        stream.seek(target)
        window = stream.read(_WINDOW)
        at = window.find(sync)
        if at >= 0:
            return int(target + at + _SYNC)
        target += max(1, len(window) - _SYNC + 1)
    return size


def _header(head: bytes) -> Header:
    stream = io.BytesIO(head)
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as an Avro file does")
    metadata: dict[str, bytes] = {}
    while entries := _stream_long(stream)[0]:
        if entries < 0:
            _stream_long(stream)
        for _ in range(abs(entries)):
            key = _exactly(stream, _stream_long(stream)[0]).decode()
            metadata[key] = _exactly(stream, _stream_long(stream)[0])
    sync = _exactly(stream, _SYNC)
    codec = metadata.get("avro.codec", b"null").decode()
    if codec not in _CODECS:
        raise ValueError(f"its codec {codec} is not known; known are {', '.join(_CODECS)}")
    return Header(json.loads(metadata["avro.schema"]), codec, sync, stream.tell())


def _exactly(stream: Any, size: int) -> bytes:
    if size < 0:
        raise ValueError("a length in its header is negative")
    data: bytes = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _stream_long(stream: Any) -> tuple[int, int]:
    """A number, and how many bytes it takes."""
    number, shift = 0, 0
    while True:
        byte = _exactly(stream, 1)[0]
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (number >> 1) ^ -(number & 1), shift // 7


def _unpacked(unpack: Callable[[bytes], bytes], packed: bytes, at: int) -> bytes:
    try:
        return unpack(packed)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        raise ValueError(f"the block at byte {at} is damaged: {error}") from error


def _snappy(packed: bytes) -> bytes:
    body, check = packed[:-4], packed[-4:]
    size, shift, at = 0, 0, 0
    while True:
        size |= (body[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if body[at - 1] < 128:
            break
    data: bytes = pa.Codec("snappy").decompress(body, size, asbytes=True)
    if zlib.crc32(data) != int.from_bytes(check, "big"):
        raise ValueError("its checksum is wrong")
    return data


def _zstandard(packed: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        data: bytes = stream.read()
        return data


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda packed: packed,
    "deflate": lambda packed: zlib.decompress(packed, -zlib.MAX_WBITS),
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}
