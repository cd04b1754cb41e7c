"""Compressed text files, told by their first bytes whatever they are called."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    "bz2": re.compile(rb"BZh[1-9]1AY&SY|BZh[1-9]\x17rE8P\x90"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
}
MAGIC_BYTES = 10
ENDINGS = ("", ".gz", ".gzip", ".zst", ".zstd", ".bz2", ".lz4")


def compression_of(head: bytes) -> str | None:
    """The codec of a file that begins with these bytes, as PyArrow names it."""
    return next((codec for codec, magic in _MAGIC.items() if magic.match(head)), None)


def open_decompressed(system: Any, path: str, codec: str | None) -> pa.NativeFile:
    """The file's bytes without their compression, from the start on."""
    return system.open_input_stream(path, compression=codec)


def with_compression(*suffixes: str) -> tuple[str, ...]:
    """These suffixes, and each followed by a compression's."""
    return tuple(suffix + ending for suffix in suffixes for ending in ENDINGS)
