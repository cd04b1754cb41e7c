"""The right to publish one snapshot: taken, prolonged, given back, checked.

A reservation is a table property, `frazil.reservation.<snapshot-id>`, set and removed under the ordinary optimistic
requirements, so that it works on every catalog. Publishing removes it in the same update that adds the snapshot and
that asserts the ref's head: of two coordinators one moves the head, and the other finds the reservation consumed.
"""

from __future__ import annotations

import json
import re
import secrets
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
    CommitConflict,
    CommitRefused,
    OutcomeUnknown,
    ReservationCancelled,
    ReservationExpired,
)
from frazil.snapshot.descriptor import RESERVATION_PROPERTY_PREFIX, DistributedSnapshot
from frazil.snapshot.outcome import NotLanded, Unknown
from frazil.snapshot.retry import RetryPolicy
from frazil.snapshot.table import Accepted, CatalogTable, assert_ref, assert_table
from frazil.steps import step

DEFAULT_TTL = timedelta(hours=24)

# What writers need of the table's properties; everything else stays at home.
_WRITER_PROPERTIES = ("write.", "commit.manifest", "schema.name-mapping.", "format-version")
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
        document = json.loads(value)
        return cls(
            snapshot_id=int(key.removeprefix(RESERVATION_PROPERTY_PREFIX)),
            commit_uuid=document["commit-uuid"],
            ref=document["ref"],
            parent_snapshot_id=document["parent-snapshot-id"],
            sequence_hint=document["sequence-hint"],
            expires_at_ms=document["expires-at-ms"],
        )

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

    One that has expired can be renewed as long as the table still holds it: a sweep releases it before it deletes.
    """

    def describe(metadata: TableMetadata) -> DistributedSnapshot:
        check_reservation(metadata, snapshot, at_ms=0)
        return snapshot.expiring_at(clock_ms() + int(ttl.total_seconds() * 1000))

    return _write_reservation(CatalogTable(table), describe, table_uuid=snapshot.table_uuid, assert_head=False)


def cancel(table: Table, snapshot: DistributedSnapshot) -> bool:
    """Give a reservation back. True if it was held, False if it was gone already; a published one raises AlreadyConsumed.

    The files that writers have made stay; `sweep(table, commit_uuid=…)` removes them.
    """
    return release(CatalogTable(table), snapshot.snapshot_id, snapshot.table_uuid)


def release(target: CatalogTable, snapshot_id: int, table_uuid: str) -> bool:
    """Remove the reservation of a snapshot id; see `cancel`."""
    key = f"{RESERVATION_PROPERTY_PREFIX}{snapshot_id}"

    def attempt(metadata: TableMetadata) -> list[Any] | None:
        if metadata.snapshot_by_id(snapshot_id) is not None:
            raise AlreadyConsumed(f"snapshot {snapshot_id} of table {target.name} is published and cannot be cancelled")
        return [RemovePropertiesUpdate(removals=[key])] if key in metadata.properties else None

    return _update_properties(target, attempt, table_uuid=table_uuid)


def check_reservation(metadata: TableMetadata, snapshot: DistributedSnapshot, at_ms: int) -> None:
    """Raise unless this descriptor still holds the right to publish, by this metadata and at this time."""
    subject = f"snapshot {snapshot.snapshot_id} of table {snapshot.name}"
    if metadata.snapshot_by_id(snapshot.snapshot_id) is not None:
        raise AlreadyConsumed(f"{subject} is already consumed: a coordinator has published it, and its rows are there")
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
            f"the reservation of {subject} expired {(at_ms - held.expires_at_ms) / 1000:.0f} s ago; begin a new snapshot "
            "with a longer ttl, or renew it in time"
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
    taken = {s.snapshot_id for s in metadata.snapshots} | {r.snapshot_id for r in reservations(metadata)}
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

    _update_properties(target, attempt, requirements, holds, table_uuid=table_uuid)
    return described[-1]


def _update_properties(
    target: CatalogTable,
    attempt: Callable[[TableMetadata], list[Any] | None],
    requirements: Callable[[TableMetadata], Iterable[Any]] = lambda _metadata: (),
    holds: Callable[[TableMetadata], bool] = lambda _metadata: False,
    *,
    table_uuid: str | None,
) -> bool:
    """Change properties until it is done. `attempt` gives the updates, or None for nothing left to do."""
    doing = "changing a reservation"
    policy = RetryPolicy.from_properties(target.metadata.properties)
    waits = policy.waits(time.monotonic, secrets.SystemRandom().random)
    answer: Accepted | NotLanded | Unknown | None = None
    while True:
        with target.exclusive():
            metadata = target.refresh(table_uuid) if answer is None else target.look(table_uuid, doing)
            if isinstance(answer, Unknown) and holds(metadata):
                return True
            updates = attempt(metadata)
            if updates is None:
                return isinstance(answer, Unknown)  # it may have been this call that left nothing to do
            step("reserve:begun")
            answer = target.update([assert_table(metadata), *requirements(metadata)], updates)
        match answer:
            case Accepted():
                step("reserve:committed")
                return True
            case NotLanded(conflict=False):
                raise CommitRefused(f"table {target.name} refused a reservation: {answer.reason}")
        wait = next(waits, None)
        if wait is None:
            _give_up(target, answer, doing)
        time.sleep(wait or 0)


def _give_up(target: CatalogTable, answer: NotLanded | Unknown, doing: str) -> None:
    if isinstance(answer, Unknown):
        raise OutcomeUnknown(f"{doing} on table {target.name}: the catalog never gave a clear answer ({answer.reason})")
    raise CommitConflict(
        f"{doing} on table {target.name}: other writers were first at every try ({answer.reason}); try again, or "
        "raise the table property commit.retry.num-retries"
    )
