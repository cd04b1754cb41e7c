"""Which snapshot of a table to read, or which rows were appended between two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot

from frazil.errors import BadInput

# A rewrite moves rows to other files and leaves the rows as they are, so it appends nothing and removes nothing.
_LEAVES_ROWS = (Operation.APPEND, Operation.REPLACE)


@dataclass(frozen=True, slots=True)
class SnapshotChoice:
    """What a reader asked for; nothing at all means the head of `main`.

    At most one of `snapshot_id`, `as_of_ms`, `branch` and `tag`; or `start_snapshot_id`, with which only the rows are
    read that were appended after it, up to `end_snapshot_id` or the head (of `branch`).
    """

    snapshot_id: int | None = None
    as_of_ms: int | None = None
    branch: str | None = None
    tag: str | None = None
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None

    def __post_init__(self) -> None:
        points = {
            "snapshot-id": self.snapshot_id,
            "as-of-timestamp": self.as_of_ms,
            "branch": self.branch,
            "tag": self.tag,
            "end-snapshot-id": self.end_snapshot_id,
        }
        given = [name for name, value in points.items() if value is not None]
        if len(given) > 1:
            raise BadInput(f"{' and '.join(given)} each say which snapshot to read; give one of them")
        if self.end_snapshot_id is not None and self.start_snapshot_id is None:
            raise BadInput("end-snapshot-id needs start-snapshot-id beside it; to read one snapshot, give snapshot-id")
        if self.start_snapshot_id is not None and given not in ([], ["branch"], ["end-snapshot-id"]):
            raise BadInput(f"start-snapshot-id goes with end-snapshot-id or branch, not with {given[0]}")


@dataclass(frozen=True, slots=True)
class ChosenSnapshots:
    """`snapshot` as it is, or, where `appended` is not None, what these snapshots appended. None: there is no snapshot."""

    snapshot: Snapshot | None
    schema: Schema
    appended: tuple[Snapshot, ...] | None = None


def choose_snapshots(metadata: TableMetadata, choice: SnapshotChoice, table: str) -> ChosenSnapshots:
    """Find what was asked for in the table. BadInput names what is not there.

    A snapshot chosen by its id, a time or a tag is read with the schema it was written with, a branch with the table's.
    """
    current = metadata.schema()
    if choice.start_snapshot_id is not None:
        end = (
            _snapshot(metadata, choice.end_snapshot_id, table)
            if choice.end_snapshot_id
            else _head(metadata, choice, table)
        )
        return ChosenSnapshots(end, current, appended_between(metadata, choice.start_snapshot_id, end, table))
    if choice.snapshot_id is not None:
        found = _snapshot(metadata, choice.snapshot_id, table)
    elif choice.as_of_ms is not None:
        found = _as_of(metadata, choice.as_of_ms, table)
    elif choice.tag is not None:
        found = _named(metadata, choice.tag, SnapshotRefType.TAG, table)
    else:
        return ChosenSnapshots(_head(metadata, choice, table), current)
    return ChosenSnapshots(found, _schema_of(metadata, found))


def appended_between(metadata: TableMetadata, start_id: int, end: Snapshot | None, table: str) -> tuple[Snapshot, ...]:
    """The appends after `start_id` up to `end`, oldest first. BadInput if rows were removed in between.

    The start itself may have been expired since: it is enough that the line of `end` leads back to it.
    """
    line: list[Snapshot] = []
    for snapshot in _line(metadata, end):
        if snapshot.snapshot_id == start_id:
            break
        line.append(snapshot)
        if snapshot.parent_snapshot_id == start_id:
            break
    else:
        end_name = "the empty table" if end is None else f"snapshot {end.snapshot_id}"
        raise BadInput(
            f"snapshot {start_id} of table {table} is no ancestor of {end_name}, or what lies between was expired; "
            "begin with a snapshot of the same branch that is still there"
        )
    for snapshot in line:
        operation = snapshot.summary.operation if snapshot.summary else None
        if operation not in _LEAVES_ROWS:
            raise BadInput(
                f"between snapshots {start_id} and {line[0].snapshot_id} of table {table}, snapshot "
                f"{snapshot.snapshot_id} removed rows (its operation is {operation and operation.value}), and only "
                "appends can be read as an increment; begin after it, or read the whole table"
            )
    return tuple(s for s in reversed(line) if s.summary and s.summary.operation == Operation.APPEND)


def _line(metadata: TableMetadata, end: Snapshot | None) -> Iterator[Snapshot]:
    while end is not None:
        yield end
        end = metadata.snapshot_by_id(end.parent_snapshot_id) if end.parent_snapshot_id is not None else None


def _snapshot(metadata: TableMetadata, snapshot_id: int, table: str) -> Snapshot:
    found = metadata.snapshot_by_id(snapshot_id)
    if found is None:
        raise BadInput(f"table {table} has no snapshot {snapshot_id}: it was expired, or is of another table")
    return found


def _as_of(metadata: TableMetadata, as_of_ms: int, table: str) -> Snapshot:
    """The head of `main` at that time, by the table's own log."""
    entries = [entry for entry in metadata.snapshot_log if entry.timestamp_ms <= as_of_ms]
    if not entries:
        raise BadInput(f"table {table} remembers no snapshot as old as {as_of_ms} ms since 1970; choose a later time")
    return _snapshot(metadata, entries[-1].snapshot_id, table)


def _named(metadata: TableMetadata, name: str, kind: SnapshotRefType, table: str) -> Snapshot:
    ref = metadata.refs.get(name)
    if ref is None or ref.snapshot_ref_type != kind:
        there = sorted(key for key, value in metadata.refs.items() if value.snapshot_ref_type == kind)
        raise BadInput(
            f"table {table} has no {kind.value} {name!r}; " + (f"it has {', '.join(there)}" if there else "it has none")
        )
    return _snapshot(metadata, ref.snapshot_id, table)


def _head(metadata: TableMetadata, choice: SnapshotChoice, table: str) -> Snapshot | None:
    if choice.branch in (None, "main") and "main" not in metadata.refs:
        return metadata.current_snapshot()
    return _named(metadata, choice.branch or "main", SnapshotRefType.BRANCH, table)


def _schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    schemas = {schema.schema_id: schema for schema in metadata.schemas}
    if snapshot.schema_id is None or snapshot.schema_id not in schemas:
        return metadata.schema()
    return schemas[snapshot.schema_id]
