"""What became of a commit: a type for each answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Landed:
    """The snapshot is in the table, once. `leftovers`: spare files that could not be removed; a sweep finds them."""

    table: str
    snapshot_id: int
    sequence_number: int
    manifest_list: str
    attempts: int = 1
    reply_lost: bool = False
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotLanded:
    """Proven: this attempt changed nothing. `conflict` says that another writer was first."""

    reason: str
    conflict: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """The catalog gave no usable answer, so the attempt may have landed or may land yet."""

    reason: str


Outcome = Landed | NotLanded | Unknown
