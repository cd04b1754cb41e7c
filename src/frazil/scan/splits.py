"""Files cut and put together into splits of about the same size, each for one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from frazil.errors import BadInput
from frazil.scan.plan import FileTask

_MEBIBYTE = 1024 * 1024
TARGET_PROPERTY = "read.split.target-size"
OPEN_COST_PROPERTY = "read.split.open-file-cost"


@dataclass(frozen=True, slots=True)
class SplitSize:
    """How large a split shall be. Opening a file costs as much as reading `open_cost` bytes.

    Handing rows to Spark costs several times what reading them does, so splits are half as large as Iceberg's usual ones.
    """

    target: int = 64 * _MEBIBYTE
    open_cost: int = 4 * _MEBIBYTE

    @classmethod
    def of_table(cls, properties: Mapping[str, str], target: int | None = None) -> SplitSize:
        """What the reader says, else what the table's properties say."""
        return cls(
            target=target if target is not None else _number(properties, TARGET_PROPERTY, cls().target),
            open_cost=_number(properties, OPEN_COST_PROPERTY, cls().open_cost),
        )

    def __post_init__(self) -> None:
        if self.target <= 0 or self.open_cost < 0:
            raise BadInput(f"a split of {self.target} bytes cannot be read; give a size greater than nothing")


@dataclass(frozen=True, slots=True)
class Piece:
    """The row groups of a file that begin in `start` to `end`."""

    file: FileTask
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """What is to be read, deletes included."""
        return self.end - self.start + sum(each.bytes_to_read for each in self.file.deletes)


@dataclass(frozen=True, slots=True)
class Split:
    """What one task reads, in this order."""

    pieces: tuple[Piece, ...]


def plan_splits(files: Iterable[FileTask], size: SplitSize) -> list[Split]:
    """Every row group of every file in exactly one split: large files are cut, small ones put together.

    The splits are as few as the target allows, and about equal: tasks that end together keep all cores at work.
    """
    pieces = [piece for file in files for piece in _cut(file, size.target)]
    costs = [max(piece.bytes, size.open_cost) for piece in pieces]
    total = sum(costs)
    share = total / max(1, -(-total // size.target))
    members: dict[int, list[Piece]] = {}
    before = 0
    for piece, cost in zip(pieces, costs, strict=True):
        members.setdefault(int((before + cost / 2) / share), []).append(piece)
        before += cost
    return [Split(tuple(each)) for each in members.values()]


def _cut(file: FileTask, target: int) -> Iterator[Piece]:
    """At the row groups that the manifest tells of. Where it tells of none, or of what cannot be, the file stays whole."""
    borders = file.split_offsets[1:] if _in_order(file) else ()
    start = 0
    for border, following in zip(borders, (*borders[1:], file.size), strict=False):
        if following - start > target:
            yield Piece(file, start, border)
            start = border
    yield Piece(file, start, file.size)


def _in_order(file: FileTask) -> bool:
    borders = (*file.split_offsets, file.size)
    return all(earlier < later for earlier, later in pairwise(borders))


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name, str(default))
    if not text.isdigit():
        raise BadInput(f"the table property {name} is {text!r}, but it must be a number of bytes")
    return int(text)
