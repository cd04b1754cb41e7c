"""The right to publish one snapshot: taken, prolonged, given back, checked.

A reservation is a table property, `frazil.reservation.<snapshot-id>`, set and removed under the ordinary optimistic
requirements, so that it works on every catalog. Publishing removes it in the same update that adds the snapshot and
that asserts the ref's head: of two coordinators one moves the head, and the other finds the reservation consumed.

No catalog can be made to assert a property, so a publisher that has just looked may still land after a cancel, and a
renewal may set again what a sweep has just removed. Therefore ending a reservation leaves a mark of its own,
`frazil.ended.<snapshot-id>`, that nobody overwrites, and files go only a grace period after it.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate

from frazil.errors import (
    AlreadyConsumed,
    BadInput,
    ReservationCancelled,
    ReservationExpired,
)
from frazil.snapshot.descriptor import RESERVATION_PROPERTY_PREFIX, DistributedSnapshot
from frazil.snapshot.summary import check_summary
from frazil.snapshot.table import CatalogTable, assert_ref
from frazil.snapshot.table_change import Asked, TableChange, change_table
from frazil.steps import step

DEFAULT_TTL = timedelta(hours=24)

ENDED_PROPERTY_PREFIX = "frazil.ended."

# What writers need of the table's properties; everything else stays at home.
_WRITER_PROPERTIES = ("write.", "commit.manifest", "schema.name-mapping.", "format-version")
_CHANGE = TableChange(
    "changing a reservation", begun=lambda: step("reserve:begun"), committed=lambda: step("reserve:committed")
)
_REF_NAME = re.compile(r"[^\s/][^\s]*")


@dataclass(frozen=True, slots=True)
class Reservation:
    """What the table remembers of a reservation. Never a credential."""

    snapshot_id: int
    commit_uuid: str
    ref: str
    parent_snapshot_id: int | None
    sequence_hint: int
    expires_at_ms: int

    def to_property(self) -> str:
        """The property's value."""
        return json.dumps(
            {
                "commit-uuid": self.commit_uuid,
                "ref": self.ref,
                "parent-snapshot-id": self.parent_snapshot_id,
                "sequence-hint": self.sequence_hint,
                "expires-at-ms": self.expires_at_ms,
            }
        )

    @classmethod
    def from_property(cls, key: str, value: str) -> Reservation:
        """The reservation that a table property holds."""
        try:
            document = json.loads(value)
            return cls(
                snapshot_id=int(key.removeprefix(RESERVATION_PROPERTY_PREFIX)),
                commit_uuid=document["commit-uuid"],
                ref=document["ref"],
                parent_snapshot_id=document["parent-snapshot-id"],
                sequence_hint=document["sequence-hint"],
                expires_at_ms=document["expires-at-ms"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(key, value) from error

    @classmethod
    def of(cls, snapshot: DistributedSnapshot) -> Reservation:
        """The part of a descriptor that stands in the table."""
        return cls(
            snapshot_id=snapshot.snapshot_id,
            commit_uuid=snapshot.commit_uuid,
            ref=snapshot.ref,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_hint=snapshot.sequence_hint,
            expires_at_ms=snapshot.expires_at_ms,
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """The mark of a reservation that was cancelled or swept, kept until no late publisher or renewal can come."""

    snapshot_id: int
    commit_uuid: str
    ended_at_ms: int

    @property
    def key(self) -> str:
        """The table property that holds the mark."""
        return f"{ENDED_PROPERTY_PREFIX}{self.snapshot_id}"

    def to_property(self) -> str:
        """The property's value."""
        return json.dumps({"commit-uuid": self.commit_uuid, "ended-at-ms": self.ended_at_ms})

    @classmethod
    def from_property(cls, key: str, value: str) -> Ended:
        """The mark that a table property holds."""
        try:
            document = json.loads(value)
            snapshot_id = int(key.removeprefix(ENDED_PROPERTY_PREFIX))
            return cls(snapshot_id, document["commit-uuid"], document["ended-at-ms"])
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(key, value) from error


def _damaged(key: str, value: str) -> BadInput:
    return BadInput(
        f"the table property {key} is {value!r}, which no Frazil has written; remove it from the table's properties"
    )


def ended(metadata: TableMetadata) -> list[Ended]:
    """Every mark of an ended reservation that a table holds."""
    return [
        Ended.from_property(key, value)
        for key, value in metadata.properties.items()
        if key.startswith(ENDED_PROPERTY_PREFIX)
    ]


def reservations(metadata: TableMetadata) -> list[Reservation]:
    """Every reservation that a table holds, live or expired."""
    return [
        Reservation.from_property(key, value)
        for key, value in metadata.properties.items()
        if key.startswith(RESERVATION_PROPERTY_PREFIX)
    ]


def now_ms() -> int:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def begin_snapshot(
    table: Table,
    properties: Mapping[str, str] | None = None,
    ref: str = "main",
    ttl: timedelta = DEFAULT_TTL,
    *,
    credentials: bool = False,
    clock_ms: Callable[[], int] = now_ms,
    new_uuid: Callable[[], uuid.UUID] = uuid.uuid4,
) -> DistributedSnapshot:
    """Reserve one snapshot of `table` on branch `ref` and return the descriptor to send to writers.

    `properties` go into the snapshot's summary. The reservation ends after `ttl` unless renewed. With `credentials`
    the descriptor carries the storage properties of the table's FileIO, secrets included; otherwise writers bring
    their own. Nothing becomes visible to readers.
    """
    if ttl <= timedelta(0):
        raise BadInput(
            f"ttl is {ttl}, but a reservation of table {'.'.join(table.name())} must last longer than nothing"
        )
    target = CatalogTable(table)
    check_summary(target.name, properties or {})
    commit_uuid = str(new_uuid())
    chosen: list[int] = []

    def describe(metadata: TableMetadata) -> DistributedSnapshot:
        if not chosen:
            chosen.append(new_snapshot_id(metadata, new_uuid))
        return DistributedSnapshot(
            table=tuple(table.name()),
            table_uuid=str(metadata.table_uuid),
            snapshot_id=chosen[0],
            parent_snapshot_id=head_of(metadata, ref),
            ref=ref,
            commit_uuid=commit_uuid,
            sequence_hint=metadata.next_sequence_number(),
            format_version=metadata.format_version,
            schema=metadata.schema(),
            spec=metadata.spec(),
            location=metadata.location,
            table_properties={k: v for k, v in metadata.properties.items() if k.startswith(_WRITER_PROPERTIES)},
            properties=dict(properties or {}),
            expires_at_ms=clock_ms() + int(ttl.total_seconds() * 1000),
            storage=dict(table.io.properties) if credentials else {},
        )

    return _write_reservation(target, describe)


def renew(
    table: Table,
    snapshot: DistributedSnapshot,
    ttl: timedelta = DEFAULT_TTL,
    *,
    clock_ms: Callable[[], int] = now_ms,
) -> DistributedSnapshot:
    """Prolong a reservation: it now ends `ttl` from now. Returns the descriptor with the new end.

    One that has expired can be renewed as long as the table still holds it: a sweep ends it before it deletes.
    """
    target = CatalogTable(table)

    def describe(metadata: TableMetadata) -> DistributedSnapshot:
        check_reservation(metadata, snapshot, at_ms=0)
        return snapshot.expiring_at(clock_ms() + int(ttl.total_seconds() * 1000))

    renewed = _write_reservation(target, describe, table_uuid=snapshot.table_uuid, assert_head=False)
    _check_not_ended(target.metadata, snapshot)  # a sweep may have come between the look and the renewal
    return renewed


def cancel(table: Table, snapshot: DistributedSnapshot, *, clock_ms: Callable[[], int] = now_ms) -> bool:
    """Give a reservation back. True if it was held, False if it was gone already; AlreadyConsumed if it is published.

    The files that writers have made stay; `sweep` removes them a grace period later, or at once when forced.
    """
    mark = Ended(snapshot.snapshot_id, snapshot.commit_uuid, clock_ms())
    return release(CatalogTable(table), mark, snapshot.table_uuid)


def release(target: CatalogTable, mark: Ended, table_uuid: str, *, leave_mark: bool = True) -> bool:
    """End the reservation of a snapshot id; see `cancel`. Without a mark it is as if it had never been."""
    key = f"{RESERVATION_PROPERTY_PREFIX}{mark.snapshot_id}"

    def attempt(metadata: TableMetadata) -> list[Any] | None:
        if metadata.snapshot_by_id(mark.snapshot_id) is not None:
            raise AlreadyConsumed(
                f"snapshot {mark.snapshot_id} of table {target.name} is published and cannot be cancelled"
            )
        if key not in metadata.properties:
            return None
        marks = [SetPropertiesUpdate(updates={mark.key: mark.to_property()})] if leave_mark else []
        return [*marks, RemovePropertiesUpdate(removals=[key])]

    return _change(target, attempt, table_uuid=table_uuid)


def forget(target: CatalogTable, marks: Iterable[Ended], table_uuid: str) -> None:
    """Remove marks, and reservations that were set again behind them."""
    keys = [key for mark in marks for key in (mark.key, f"{RESERVATION_PROPERTY_PREFIX}{mark.snapshot_id}")]

    def attempt(metadata: TableMetadata) -> list[Any] | None:
        there = [key for key in keys if key in metadata.properties]
        return [RemovePropertiesUpdate(removals=there)] if there else None

    _change(target, attempt, table_uuid=table_uuid)


def check_reservation(metadata: TableMetadata, snapshot: DistributedSnapshot, at_ms: int) -> None:
    """Raise unless this descriptor still holds the right to publish, by this metadata and at this time."""
    subject = f"snapshot {snapshot.snapshot_id} of table {snapshot.name}"
    if metadata.snapshot_by_id(snapshot.snapshot_id) is not None:
        raise AlreadyConsumed(f"{subject} is already consumed: a coordinator has published it, and its rows are there")
    _check_not_ended(metadata, snapshot)
    value = metadata.properties.get(snapshot.reservation_key)
    if value is None:
        raise ReservationCancelled(
            f"{subject} is no longer reserved: it was cancelled, swept after it expired, or already consumed and since "
            "removed from the table; begin a new snapshot"
        )
    held = Reservation.from_property(snapshot.reservation_key, value)
    if held.commit_uuid != snapshot.commit_uuid:
        raise ReservationCancelled(
            f"{subject} is reserved by another commit ({held.commit_uuid}); begin a new snapshot"
        )
    if held.expires_at_ms <= at_ms:
        raise ReservationExpired(
            f"the reservation of {subject} expired {(at_ms - held.expires_at_ms) / 1000:.0f} s ago; begin a new "
            "snapshot with a longer ttl, or renew it in time"
        )


def _check_not_ended(metadata: TableMetadata, snapshot: DistributedSnapshot) -> None:
    if f"{ENDED_PROPERTY_PREFIX}{snapshot.snapshot_id}" in metadata.properties:
        raise ReservationCancelled(
            f"snapshot {snapshot.snapshot_id} of table {snapshot.name} is no longer reserved: it was cancelled, or "
            "swept after it expired; begin a new snapshot"
        )


def head_of(metadata: TableMetadata, ref: str) -> int | None:
    """The snapshot that a commit to `ref` builds upon: the branch's head, or the table's for a branch to be made."""
    known = metadata.refs.get(ref)
    if known is None and ref == "main":
        return None
    if known is None and metadata.current_snapshot_id is None:
        raise BadInput(f"branch {ref!r} cannot be made on a table without a snapshot; write to main first")
    if known is None:
        return metadata.current_snapshot_id
    if known.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise BadInput(f"ref {ref!r} is a tag, and a tag cannot be written to; name a branch")
    return known.snapshot_id


def asserted_head(metadata: TableMetadata, ref: str) -> int | None:
    """What `assert-ref-snapshot-id` must say of `ref`: its snapshot, or None where it does not exist."""
    known = metadata.refs.get(ref)
    return known.snapshot_id if known else None


def new_snapshot_id(metadata: TableMetadata, new_uuid: Callable[[], uuid.UUID]) -> int:
    """A positive 63-bit id that no snapshot and no reservation of the table uses."""
    taken = {s.snapshot_id for s in metadata.snapshots}
    taken |= {r.snapshot_id for r in reservations(metadata)} | {mark.snapshot_id for mark in ended(metadata)}
    while True:
        bits = new_uuid().int
        candidate = ((bits >> 64) ^ bits) & 0x7FFF_FFFF_FFFF_FFFF
        if candidate and candidate not in taken:
            return candidate


def _write_reservation(
    target: CatalogTable,
    describe: Callable[[TableMetadata], DistributedSnapshot],
    *,
    table_uuid: str | None = None,
    assert_head: bool = True,
) -> DistributedSnapshot:
    described: list[DistributedSnapshot] = []

    def attempt(metadata: TableMetadata) -> list[Any] | None:
        snapshot = describe(metadata)
        if not _REF_NAME.fullmatch(snapshot.ref):
            raise BadInput(f"ref {snapshot.ref!r} is not a branch name: it must not be empty or hold spaces")
        described.append(snapshot)
        value = Reservation.of(snapshot).to_property()
        if metadata.properties.get(snapshot.reservation_key) == value:
            return None
        return [SetPropertiesUpdate(updates={snapshot.reservation_key: value})]

    def requirements(metadata: TableMetadata) -> Iterable[Any]:
        return [assert_ref(described[-1].ref, asserted_head(metadata, described[-1].ref))] if assert_head else []

    def holds(metadata: TableMetadata) -> bool:
        return metadata.properties.get(described[-1].reservation_key) == Reservation.of(described[-1]).to_property()

    _change(target, attempt, requirements, holds, table_uuid=table_uuid)
    return described[-1]


def _change(
    target: CatalogTable,
    attempt: Callable[[TableMetadata], list[Any] | None],
    requirements: Callable[[TableMetadata], Iterable[Any]] = lambda _metadata: (),
    holds: Callable[[TableMetadata], bool] = lambda _metadata: False,
    *,
    table_uuid: str | None,
) -> bool:
    """Change properties until it is done. `attempt` gives the updates, or None for nothing left to do."""

    def asked(metadata: TableMetadata) -> Asked | None:
        updates = attempt(metadata)
        return None if updates is None else Asked(tuple(updates), tuple(requirements(metadata)))

    return change_table(target, _CHANGE, asked, holds, table_uuid=table_uuid)
