"""Neighbouring pieces of a source grouped into shards of like size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Piece = TypeVar("Piece")


def grouped(pieces: Sequence[Piece], size: Callable[[Piece], int], count: int) -> list[list[Piece]]:
    """About `count` groups of like size, in order, none empty; fewer where there are fewer pieces."""
    total = sum(map(size, pieces))
    members: dict[int, list[Piece]] = {}
    before = 0
    for piece in pieces:
        # By its middle: by its end, the smaller of two halves would draw the other into its group.
        place = (2 * before + size(piece)) * count // max(1, 2 * total)
        members.setdefault(place, []).append(piece)
        before += size(piece)
    return [members[place] for place in sorted(members)]


def shard_name(number: int) -> str:
    """What the shard of this number in its job is called."""
    return f"{number:05d}"
