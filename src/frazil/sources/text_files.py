"""Text files as they are looked at when a job is planned: what each begins with, and where it is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from frazil.errors import BadInput, SourceUnreadable
from frazil.sources.compression import MAGIC_BYTES, compression_of, open_decompressed
from frazil.sources.files import SourceFile, first_bytes, source_system
from frazil.sources.pieces import grouped
from frazil.sources.text_blocks import LastEnd, TextRange, cut_points

_AT_ONCE = 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SMALLEST_SAMPLE = 4 * 1024
_LONGEST_FIRST_LINE = 4 * 1024 * 1024
_SMALLEST_RANGE = 64 * 1024
_INFLATION = 4  # what a compressed byte is taken to become when shards are made of like size

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TextHead:
    """The beginning of a text file: its text without a byte order mark, and whether that is all of it."""

    file: SourceFile
    compression: str | None
    skipped: int
    text: bytes
    is_all: bool

    def whole_records(self, last_end: LastEnd) -> bytes:
        """The text up to the last record that is sure to be whole."""
        return self.text if self.is_all else self.text[: last_end(self.text)]


def each_at_once(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results of `work`, which mostly waits for storage."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, items))


def read_heads(files: Sequence[SourceFile], storage: Mapping[str, str], budget: int, most: int) -> list[TextHead]:
    """The beginning of every file: of all together about `budget` bytes, of each `most` and at least its first line."""
    size = max(_SMALLEST_SAMPLE, min(most, budget // max(1, len(files))))
    return each_at_once(lambda file: _head(file, storage, size), files)


def shards_of_ranges(
    ranges: Sequence[TextRange], count: int, storage: Mapping[str, str], last_end: LastEnd | None
) -> list[list[TextRange]]:
    """The ranges, large ones cut, as about `count` groups of like size."""
    total = sum(_weight(piece) for piece in ranges)
    step = max(_SMALLEST_RANGE, -(-total // max(1, count)))
    cut = each_at_once(lambda piece: _cut(piece, step, storage, last_end), ranges)
    return grouped([piece for pieces in cut for piece in pieces], _weight, count)


def _cut(piece: TextRange, step: int, storage: Mapping[str, str], last_end: LastEnd | None) -> list[TextRange]:
    if piece.compression is not None:
        return [piece]
    parts = round(piece.bytes / step)
    targets = [piece.start + piece.bytes * part // parts for part in range(1, parts)]
    cuts = cut_points(piece, storage, targets, last_end)
    borders = [piece.start, *cuts, None]
    return [replace(piece, start=start or 0, end=end, is_cut=bool(cuts)) for start, end in pairwise(borders)]


def _weight(piece: TextRange) -> int:
    return piece.bytes * (_INFLATION if piece.compression else 1)


def _head(file: SourceFile, storage: Mapping[str, str], size: int) -> TextHead:
    codec = compression_of(first_bytes(file, storage, MAGIC_BYTES))
    system, path = source_system(file.path, storage)
    try:
        with open_decompressed(system, path, codec) as stream:
            text = stream.read(size + 1)
            if len(text) > size and b"\n" not in text[:size] and b"\r" not in text[:size]:
                text += stream.read(_LONGEST_FIRST_LINE)
                size += _LONGEST_FIRST_LINE
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(f"source {file.path} cannot be read: {error}") from error
    if text.startswith(_WIDE_MARKS):
        raise BadInput(f"source {file.path} is in UTF-16; convert it to UTF-8 first")
    skipped = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    return TextHead(file, codec, skipped, text[skipped:size], len(text) <= size)
