"""Privileges, the places they are granted on, and how they are inherited. No I/O.

    manage ─┬─ write ─── read ─── see
            ├─ create ── see
            ├─ drop ──── see
            └─ locate ── see

A place is a path: `()` is the catalog, `("db",)` a namespace, and with a name it is a table or view, which share their
names. A grant holds for its place and everything below it, and lets its holder see the way down to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from frazil.catalog.naming import Namespace, text_of


class Privilege(StrEnum):
    """What a role may be allowed."""

    SEE = "see"
    """list it, learn that it is there, read a namespace's properties"""
    READ = "read"
    """load the metadata, read the files"""
    WRITE = "write"
    """commit, change properties, write files"""
    CREATE = "create"
    """make namespaces, tables and views in it"""
    DROP = "drop"
    """remove it, or rename it away"""
    LOCATE = "locate"
    """choose where files lie: a location of one's own, or metadata to register"""
    MANAGE = "manage"
    """all of these"""


IMPLIED: Final[dict[Privilege, frozenset[Privilege]]] = {
    Privilege.SEE: frozenset({Privilege.SEE}),
    Privilege.READ: frozenset({Privilege.READ, Privilege.SEE}),
    Privilege.WRITE: frozenset({Privilege.WRITE, Privilege.READ, Privilege.SEE}),
    Privilege.CREATE: frozenset({Privilege.CREATE, Privilege.SEE}),
    Privilege.DROP: frozenset({Privilege.DROP, Privilege.SEE}),
    Privilege.LOCATE: frozenset({Privilege.LOCATE, Privilege.SEE}),
    Privilege.MANAGE: frozenset(Privilege),
}


@dataclass(frozen=True, slots=True)
class Place:
    """What a privilege is about: the catalog, a namespace, or a table or view in one."""

    namespace: Namespace = ()
    name: str | None = None

    def and_above(self) -> list[Place]:
        """This place, the namespaces it lies in, and the catalog."""
        above = [Place(self.namespace[:depth]) for depth in range(len(self.namespace), -1, -1)]
        return above if self.name is None else [self, *above]

    def __str__(self) -> str:
        if self.name is not None:
            return f"table or view {text_of(self.namespace, self.name)}"
        return f"namespace {text_of(self.namespace)}" if self.namespace else "catalog"


CATALOG: Final = Place()


class Privileges:
    """What somebody holds, ready to be asked."""

    def __init__(self, grants: Iterable[tuple[Privilege, Place]]) -> None:
        self.grants: Final = frozenset(grants)
        self._held = {(implied, place) for privilege, place in self.grants for implied in IMPLIED[privilege]}
        self._everywhere = {privilege for privilege, place in self._held if place == CATALOG}
        self._on_the_way = {above for _, place in self.grants for above in place.and_above()}

    def allow(self, privilege: Privilege, place: Place) -> bool:
        """Whether the privilege is held on this place, or on one above it."""
        if privilege in self._everywhere or (privilege is Privilege.SEE and place in self._on_the_way):
            return True
        return any((privilege, above) in self._held for above in place.and_above())


NOTHING: Final = Privileges(())
EVERYTHING: Final = Privileges([(Privilege.MANAGE, CATALOG)])
