"""The Avro object-container file, writing only, and the encoders that a manifest needs.

Written by hand: about 4 times PyIceberg's entries per second; fastavro's writer 0.7 (`python -m bench.manifest_encoding`).

Every encoder returns the bytes of one value. The encoders of maps are built once per field of the format and keep the
encoded keys (a table's field ids, the same in file after file) between calls.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

Codec = Literal["deflate", "null"]
Value = TypeVar("Value")

NULL = b"\x00"
"""The index of `null` in the union `["null", T]`: how an absent optional value is written."""
PRESENT = b"\x02"
"""The index of `T` in the union `["null", T]`; the value follows."""

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_BLOCK_SIZE = 64 * 1024
_COMPRESSION_LEVEL = 1  # level 6 made manifests 0.5 % smaller at two thirds of the speed
_RAW_DEFLATE = -15
_KEPT_KEY_SETS = 256

# Base-128 digits are taken two at a time: 14 bits index a table of finished bytes.
_PAIR_BITS = 14
_PAIR = 1 << _PAIR_BITS
_MASK = _PAIR - 1
_LAST = tuple(bytes((n,)) if n < 0x80 else bytes((n & 0x7F | 0x80, n >> 7)) for n in range(_PAIR))
_CONTINUED = tuple(bytes((n & 0x7F | 0x80, n >> 7 | 0x80)) for n in range(_PAIR))
_ONE_PAIR = 1 << (_PAIR_BITS - 1)
_TWO_PAIRS = 1 << (2 * _PAIR_BITS - 1)
_LENGTHS = _LAST[0:512:2]


class Stream(Protocol):
    """Where the bytes go: what PyIceberg's `OutputStream` offers of a file."""

    def write(self, b: bytes) -> int: ...


def encode_long(value: int) -> bytes:
    """An Avro `int` or `long`: zigzag, then base 128 with the lowest digits first. OverflowError past 64 bits."""
    number = (value << 1) ^ (value >> 63)
    if number >> 64:
        raise OverflowError(f"{value} does not fit into the 64 bits of an Avro long")
    head = b""
    while number >= _PAIR:
        head += _CONTINUED[number & _MASK]
        number >>= _PAIR_BITS
    return head + _LAST[number]


def encode_bytes(value: bytes) -> bytes:
    """Avro `bytes`: the length, then the bytes."""
    return encode_long(len(value)) + value


def encode_string(value: str) -> bytes:
    """An Avro `string`: the length in bytes, then UTF-8."""
    return encode_bytes(value.encode())


def encode_boolean(value: bool) -> bytes:
    """An Avro `boolean`."""
    return b"\x01" if value else b"\x00"


def encode_array(items: Sequence[bytes]) -> bytes:
    """An Avro array of items that are already encoded."""
    return encode_long(len(items)) + b"".join(items) + b"\x00" if items else b"\x00"


def encode_longs(values: Iterable[int]) -> bytes:
    """An Avro array of `int` or `long`."""
    return encode_array(_encode_each(values))


def optional(encode: Callable[[Value], bytes]) -> Callable[[Value | None], bytes]:
    """The encoder of the union `["null", T]`, from the encoder of `T`."""
    return lambda value: NULL if value is None else PRESENT + encode(value)


class _KeySets:
    """The encoded keys of an optional int-keyed map, kept per set of keys; the first opens with union and count."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, ...], list[bytes]] = {}

    def __getitem__(self, keys: tuple[int, ...]) -> list[bytes]:
        found = self._keys.get(keys)
        return self._encode(keys) if found is None else found

    def _encode(self, keys: tuple[int, ...]) -> list[bytes]:
        if len(self._keys) >= _KEPT_KEY_SETS:
            self._keys.clear()
        encoded = [encode_long(key) for key in keys]
        encoded[0] = PRESENT + encode_long(len(keys)) + encoded[0]
        self._keys[keys] = [*encoded, b"\x00"]
        return self._keys[keys]


def optional_long_map() -> Callable[[Mapping[int, int]], bytes]:
    """The encoder of an optional map from int to long, as the format's array of key-value records. Empty is null."""
    key_sets = _KeySets()

    def encode(counts: Mapping[int, int]) -> bytes:
        if not counts:
            return NULL
        keys = key_sets[tuple(counts)]
        values = list(counts.values())
        # Often every column has the same count (as many values as rows, no nulls): then it separates the keys.
        if values[0] == values[-1] and values.count(values[0]) == len(values):
            return encode_long(values[0]).join(keys)
        pieces = [b""] * (2 * len(values) + 1)
        pieces[0::2] = keys
        pieces[1::2] = _encode_each(values)
        return b"".join(pieces)

    return encode


def _encode_each(values: Iterable[int]) -> list[bytes]:
    # This is `encode_long` written out: the call alone would cost as much as the work.
    return [
        _LAST[value << 1]
        if 0 <= value < _ONE_PAIR
        else _CONTINUED[value << 1 & _MASK] + _LAST[value >> _PAIR_BITS - 1]
        if 0 <= value < _TWO_PAIRS
        else encode_long(value)
        for value in values
    ]


def optional_bytes_map() -> Callable[[Mapping[int, bytes]], bytes]:
    """The encoder of an optional map from int to bytes, as the format's array of key-value records. Empty is null."""
    key_sets = _KeySets()

    def encode(bounds: Mapping[int, bytes]) -> bytes:
        if not bounds:
            return NULL
        values = bounds.values()
        pieces = [b""] * (3 * len(bounds) + 1)
        pieces[0::3] = key_sets[tuple(bounds)]
        pieces[1::3] = _encode_lengths(values)
        pieces[2::3] = values
        return b"".join(pieces)

    return encode


def _encode_lengths(values: Iterable[bytes]) -> list[bytes]:
    try:
        return [_LENGTHS[length] for length in map(len, values)]
    except IndexError:
        return [encode_long(len(value)) for value in values]


class ContainerWriter:
    """Writes an Avro container file block by block: it never holds more than one block of encoded records.

    Nothing is written before the first block is full or `finish` is called, so the stream is asked for as late as that.
    The one who made the stream closes it.
    """

    def __init__(
        self, open_stream: Callable[[], Stream], *, schema: str, metadata: Mapping[str, str], codec: Codec = "deflate"
    ) -> None:
        self._open_stream = open_stream
        self._stream: Stream | None = None
        self._sync = os.urandom(_SYNC_SIZE)
        self._header = _encode_header(schema, metadata, codec, self._sync)
        self._compress = _deflate if codec == "deflate" else _keep
        self._records: list[bytes] = []
        self._pending = 0
        self.length = 0
        """Bytes written so far; after `finish`, the length of the file."""

    def append(self, record: bytes) -> None:
        """Take one encoded record."""
        self._records.append(record)
        self._pending += len(record)
        if self._pending >= _BLOCK_SIZE:
            self._write_block()

    def finish(self) -> int:
        """Write what is left. Returns the length of the file."""
        self._write_block()
        return self.length

    def _write_block(self) -> None:
        block = b""
        if self._records:
            content = self._compress(b"".join(self._records))
            block = encode_long(len(self._records)) + encode_bytes(content) + self._sync
        if self._stream is None:
            self._stream = self._open_stream()
            block = self._header + block
        self._stream.write(block)
        self.length += len(block)
        self._records.clear()
        self._pending = 0


def _encode_header(schema: str, metadata: Mapping[str, str], codec: Codec, sync: bytes) -> bytes:
    entries = {**metadata, "avro.schema": schema, "avro.codec": codec}
    items = [encode_string(key) + encode_string(value) for key, value in entries.items()]
    return _MAGIC + encode_array(items) + sync


def _deflate(content: bytes) -> bytes:
    return zlib.compress(content, _COMPRESSION_LEVEL, _RAW_DEFLATE)


def _keep(content: bytes) -> bytes:
    return content
