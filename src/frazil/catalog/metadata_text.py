"""A table's metadata as JSON, written again without being serialised again.

A table's snapshots and its snapshot log grow by one entry a commit, and everything else stays short. So their JSON is kept
in blocks, as text and packed, and a commit serialises and packs only the blocks it touches: the text of a table with
10,000 snapshots costs little more than that of one with 10. A gzip file may be made of members that follow one another,
which is what lets packed blocks be reused.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import orjson

from frazil.catalog.document import Document

GROWING: Final = ("snapshots", "snapshot-log")
"""Lists that change only by entries appended at the end and entries filtered out, which the reuse of blocks rests on."""

LARGEST_BLOCK: Final = 256
_LEVEL: Final = 6
_SIZE_OF_THE_REST: Final = 4096


@dataclass(eq=False)
class Block:
    """Entries that follow one another in a list, and their JSON with commas between them."""

    entries: Sequence[Any]

    @cached_property
    def text(self) -> bytes:
        """The JSON."""
        return orjson.dumps(self.entries)[1:-1]

    @cached_property
    def packed(self) -> bytes:
        """A gzip member of the JSON."""
        return pack(self.text)


@dataclass(eq=False)
class MetadataText:
    """One metadata document as JSON. Made of the previous one of the same table, it shares that one's blocks."""

    metadata: Document
    blocks: dict[str, list[Block]] = field(repr=False)

    @classmethod
    def of(cls, metadata: Document, previous: MetadataText | None = None) -> MetadataText:
        """The text of a document; `previous` is that of the document it was made from, where that is at hand."""
        known = previous.blocks if previous is not None else {}
        return cls(metadata, {name: _blocks_of(metadata.get(name) or [], known.get(name, [])) for name in GROWING})

    def parts(self, packed: bool = False) -> Iterator[bytes]:
        """The document in pieces that follow one another: as JSON, or packed as gzip."""
        rest = {name: value for name, value in self.metadata.items() if name not in GROWING}
        opening = orjson.dumps(rest)[:-1]
        for name in GROWING:
            if name in self.metadata:
                opening += b'%s"%s":[' % (b"" if opening == b"{" else b",", name.encode())
                yield pack(opening) if packed else opening
                yield from self._joined(name, packed)
                opening = b"]"
        closing = opening + b"}"
        yield pack(closing) if packed else closing

    def json(self) -> bytes:
        """The document as JSON, in one piece."""
        return b"".join(self.parts())

    def gzip(self) -> bytes:
        """The document packed, in one piece."""
        return b"".join(self.parts(packed=True))

    def within(self, before: bytes, after: bytes) -> bytes:
        """The document packed, between two other texts."""
        return b"".join((pack(before), *self.parts(packed=True), pack(after)))

    @cached_property
    def size(self) -> int:
        """About how long the JSON is."""
        entries = sum(len(block.text) for blocks in self.blocks.values() for block in blocks)
        return entries + _SIZE_OF_THE_REST

    def _joined(self, name: str, packed: bool) -> Iterator[bytes]:
        for position, block in enumerate(self.blocks[name]):
            if position:
                yield _PACKED_COMMA if packed else b","
            yield block.packed if packed else block.text


def _blocks_of(entries: list[Any], known: list[Block]) -> list[Block]:
    """The list in blocks, with those that are known and still hold."""
    blocks: list[Block] = []
    position = 0
    for block in known:
        block = _still_held(block, entries, position)
        if block.entries:
            blocks.append(block)
            position += len(block.entries)
    for start in range(position, len(entries), LARGEST_BLOCK):
        blocks.append(Block(entries[start : start + LARGEST_BLOCK]))
    return _merged(blocks)


def _still_held(block: Block, entries: list[Any], position: int) -> Block:
    """The block if the list has it at that place; else one of those of its entries that the list has there."""
    end = position + len(block.entries)
    if end <= len(entries) and entries[position] is block.entries[0] and entries[end - 1] is block.entries[-1]:
        return block
    held = {id(entry) for entry in block.entries}
    end = position
    while end < len(entries) and id(entries[end]) in held:
        end += 1
    return Block(entries[position:end])


def _merged(blocks: list[Block]) -> list[Block]:
    """Few blocks instead of many small ones. Each entry is serialised again once per doubling of its block, no more."""
    merged: list[Block] = []
    for block in blocks:
        while merged and len(merged[-1].entries) <= len(block.entries) <= LARGEST_BLOCK - len(merged[-1].entries):
            block = Block([*merged.pop().entries, *block.entries])
        merged.append(block)
    return merged


def pack(text: bytes) -> bytes:
    """A gzip member, which may follow others and be followed by others."""
    return gzip.compress(text, _LEVEL, mtime=0)


_PACKED_COMMA: Final = pack(b",")
