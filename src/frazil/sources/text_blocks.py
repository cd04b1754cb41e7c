"""Ranges of text files, read as blocks of whole records in bounded memory; and where a file may be cut into ranges.

A range begins where a record begins. Each reader of a range checks that it ends where a record ends, as its format
tells records apart: so if no reader of a file complains, every range began rightly, and each record was read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.errors import SourceUnreadable
from frazil.sources.compression import open_decompressed
from frazil.sources.files import SourceFile, check_unchanged, source_system

_MEBIBYTE = 1024 * 1024
BLOCK_BYTES = 8 * _MEBIBYTE
_WINDOW_BYTES = 64 * 1024
LONGEST_RECORD = 64 * _MEBIBYTE

LastEnd = Callable[[bytes], int]
"""How many of these bytes, which begin with a record, are whole records with their line ends."""


@dataclass(frozen=True, slots=True)
class TextRange:
    """Records of one file from the byte `start` on, before `end` or to the end of the file.

    Of a compressed file the bytes are those of the text in it, and it is never cut; `is_cut` says that the file has
    other ranges. `columns` are the names that the file itself gives its columns, where its head has them.
    """

    file: SourceFile
    start: int
    end: int | None
    compression: str | None = None
    columns: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.file.size if self.compression else (self.end or self.file.size) - self.start

    @property
    def unit(self) -> str:
        """What an offset counts."""
        return "byte of the text in it" if self.compression else "byte"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Records and the offset of their first byte. A tail is a file's last record, not yet known to be finished."""

    offset: int
    text: bytes
    is_tail: bool = False


def read_blocks(
    piece: TextRange, storage: Mapping[str, str], last_end: LastEnd, block_bytes: int = BLOCK_BYTES
) -> Iterator[TextBlock]:
    """Blocks of whole records; only the last of a file may lack its line end.

    SourceUnreadable if the file changed since it was planned, cannot be read, or if the range ends within a record.
    """
    system, path = source_system(piece.file.path, storage)
    check_unchanged(system, path, piece.file)
    try:
        with _opened(system, path, piece) as stream:
            yield from _blocks(piece, stream, last_end, block_bytes)
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(f"source {piece.file.path} cannot be read: {error}") from error


def cut_points(
    piece: TextRange, storage: Mapping[str, str], targets: Sequence[int], last_end: LastEnd | None
) -> list[int]:
    """Where the file may be cut near each of `targets` (ascending): after the first line end that follows.

    With `last_end` the file is read from its start, and it is always a record that ends there.
    """
    if not targets:
        return []
    if last_end is not None:
        return _exact_cuts(piece, storage, targets, last_end)
    system, path = source_system(piece.file.path, storage)
    try:
        with system.open_input_file(path) as stream:
            found = {_line_end(stream, target, piece.file.size) for target in targets}
    except OSError as error:
        raise SourceUnreadable(f"source {piece.file.path} cannot be read: {error}") from error
    return sorted(cut for cut in found if cut < piece.file.size)


def _exact_cuts(piece: TextRange, storage: Mapping[str, str], targets: Sequence[int], last_end: LastEnd) -> list[int]:
    waiting, cuts = list(targets), []
    for block in read_blocks(piece, storage, last_end):
        end = block.offset + len(block.text)
        if end >= piece.file.size or not waiting:
            break
        if end >= waiting[0]:
            cuts.append(end)
            waiting = [target for target in waiting if target > end]
    return cuts


def _line_end(stream: Any, target: int, size: int) -> int:
    window = _WINDOW_BYTES
    while target < size and window <= LONGEST_RECORD:
        stream.seek(target)
        at = stream.read(window).find(b"\n")
        if at >= 0:
            return int(target + at + 1)
        target, window = target + window, window * 4
    return size


def _opened(system: Any, path: str, piece: TextRange) -> Any:
    if piece.compression is None:
        stream = system.open_input_file(path)
        stream.seek(piece.start)
        return stream
    stream = open_decompressed(system, path, piece.compression)
    stream.read(piece.start)
    return stream


def _blocks(piece: TextRange, stream: Any, last_end: LastEnd, block_bytes: int) -> Iterator[TextBlock]:
    offset, rest = piece.start, b""
    while chunk := stream.read(_wanted(piece, offset + len(rest), block_bytes)):
        text = rest + chunk if rest else chunk
        end = last_end(text)
        if end:
            yield TextBlock(offset, text if end == len(text) else text[:end])
        elif len(text) > LONGEST_RECORD:
            raise SourceUnreadable(
                f"source {piece.file.path}: the record that begins at {piece.unit} {offset} does not end within "
                f"{LONGEST_RECORD // _MEBIBYTE} MB; is a quote in it never closed?"
            )
        offset, rest = offset + end, text[end:]
    if piece.end is not None and (rest or offset != piece.end):
        raise SourceUnreadable(
            f"source {piece.file.path}: byte {piece.end}, where the file was cut at a line end, lies within a quoted field "
            f"(of the record that begins at byte {offset}); run it again with --option multiline=true"
        )
    if rest:
        yield TextBlock(offset, rest, is_tail=True)


def _wanted(piece: TextRange, position: int, block_bytes: int) -> int:
    return block_bytes if piece.end is None else min(block_bytes, piece.end - position)
