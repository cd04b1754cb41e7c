"""Updates of a table's snapshots and refs, and the snapshot log that follows from them."""

from __future__ import annotations

from typing import Any, Final

from frazil.catalog.document import (
    Document,
    join,
    read_int,
    read_long,
    read_longs,
    read_object,
    read_optional_int,
    read_optional_long,
    read_string,
    read_string_map,
    without_nulls,
)
from frazil.catalog.errors import CommitFailed, IllegalArgument, ValidationFailed
from frazil.catalog.table_draft import MAIN, NO_SNAPSHOT, TableDraft

ROW_LINEAGE_SINCE: Final = 3
CLOCK_TOLERANCE_MS: Final = 60_000
"""How far the clocks of two writers may lie apart."""


def add_snapshot(draft: TableDraft, update: Document) -> None:
    """Add a snapshot, which no ref need name."""
    snapshot = parse_snapshot(read_object(update, "snapshot"), draft.format_version)
    if draft.has_snapshot(snapshot["snapshot-id"]):
        raise ValidationFailed(f"Snapshot already exists for id: {snapshot['snapshot-id']}")
    if draft.format_version > 1:
        _advance_sequence_number(draft, snapshot)
    if draft.format_version >= ROW_LINEAGE_SINCE:
        _assign_rows(draft, snapshot)
    draft.own_list("snapshots").append(snapshot)
    draft.note_added(snapshot)


def parse_snapshot(snapshot: Document, format_version: int) -> Document:
    """The snapshot without its null fields, if it is well-formed."""
    read_long(snapshot, "snapshot-id")
    read_long(snapshot, "timestamp-ms")
    summary = read_string_map(snapshot, "summary")
    if summary:
        read_string(summary, "operation")
    if format_version > 1 or snapshot.get("manifests") is None:
        read_string(snapshot, "manifest-list")
    read_optional_long(snapshot, "parent-snapshot-id")
    read_optional_int(snapshot, "schema-id")
    sequence_number = read_optional_long(snapshot, "sequence-number") or 0
    if format_version == 1 and sequence_number != 0:
        raise IllegalArgument(f"Sequence number must be 0 in v1: {sequence_number}")
    _check_row_range(read_optional_long(snapshot, "first-row-id"), read_optional_long(snapshot, "added-rows"))
    return without_nulls(snapshot)


def _check_row_range(first_row_id: int | None, added_rows: int | None) -> None:
    if first_row_id is not None and first_row_id < 0:
        raise IllegalArgument(f"Invalid first-row-id (cannot be negative): {first_row_id}")
    if added_rows is not None and added_rows < 0:
        raise IllegalArgument(f"Invalid added-rows (cannot be negative): {added_rows}")
    if first_row_id is not None and added_rows is None:
        raise IllegalArgument("Invalid added-rows (required when first-row-id is set): null")


def _advance_sequence_number(draft: TableDraft, snapshot: Document) -> None:
    number, last = snapshot.get("sequence-number", 0), draft.document.get("last-sequence-number", 0)
    if number <= last and snapshot.get("parent-snapshot-id") is not None:
        raise CommitFailed(
            "Validation failed, please retry: "
            f"Cannot add snapshot with sequence number {number} older than last sequence number {last}"
        )
    if number < last and any(one.get("sequence-number", 0) > number for one in draft.document["snapshots"]):
        raise ValidationFailed(
            f"Invalid snapshot with sequence number {last} greater than last sequence number {number}"
        )
    draft.put("last-sequence-number", number)


def _assign_rows(draft: TableDraft, snapshot: Document) -> None:
    first, next_row_id = snapshot.get("first-row-id"), draft.document.get("next-row-id", 0)
    if first is None:
        raise ValidationFailed("Cannot add a snapshot: first-row-id is null")
    if first < next_row_id:
        raise CommitFailed(
            "Validation failed, please retry: "
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {next_row_id}"
        )
    draft.put("next-row-id", next_row_id + snapshot["added-rows"])


def set_snapshot_ref(draft: TableDraft, update: Document) -> None:
    """Make a branch or tag name a snapshot."""
    name, ref = read_string(update, "ref-name"), parse_ref(update)
    if draft.document["refs"].get(name) == ref:
        return
    snapshot = draft.find_snapshot(ref["snapshot-id"])
    if snapshot is None:
        raise ValidationFailed(f"Cannot set {name} to unknown snapshot: {ref['snapshot-id']}")
    if name == MAIN:
        if ref["type"] != "branch":
            raise ValidationFailed("Cannot set main to a tag, it must be a branch")
        _move_main(draft, snapshot)
    draft.own_map("refs")[name] = ref


def parse_ref(update: Document) -> Document:
    """The ref that an update describes, if a ref of its kind may have what this one has."""
    ref = without_nulls(update, "action", "ref-name")
    read_long(ref, "snapshot-id")
    ref["type"] = read_string(ref, "type").lower()
    if ref["type"] not in ("branch", "tag"):
        raise IllegalArgument(f"Invalid snapshot ref type: {ref['type']}")
    _check_retention(ref, "min-snapshots-to-keep", "minSnapshotsToKeep", "Min snapshots to keep must be greater than 0")
    _check_retention(ref, "max-snapshot-age-ms", "maxSnapshotAgeMs", "Max snapshot age must be greater than 0 ms")
    _check_retention(ref, "max-ref-age-ms", None, "Max reference age must be greater than 0")
    return ref


def _check_retention(ref: Document, name: str, of_branches_only: str | None, bound: str) -> None:
    if name not in ref:
        return
    if of_branches_only and ref["type"] == "tag":
        raise IllegalArgument(f"Tags do not support setting {of_branches_only}")
    if (read_int(ref, name) if name == "min-snapshots-to-keep" else read_long(ref, name)) <= 0:
        raise IllegalArgument(bound)


def _move_main(draft: TableDraft, snapshot: Document) -> None:
    snapshot_id = snapshot["snapshot-id"]
    time = snapshot["timestamp-ms"] if snapshot_id in draft.added_snapshots else draft.now_ms
    log = draft.own_list("snapshot-log")
    if log and time - log[-1]["timestamp-ms"] < -CLOCK_TOLERANCE_MS:
        raise IllegalArgument(
            f"Invalid snapshot timestamp {time}: before last snapshot log entry at {log[-1]['timestamp-ms']}"
        )
    if draft.now_ms - time < -CLOCK_TOLERANCE_MS:
        raise IllegalArgument(f"Invalid update timestamp {draft.now_ms}: before last snapshot log entry at {time}")
    log.append({"snapshot-id": snapshot_id, "timestamp-ms": time})
    draft.put("current-snapshot-id", snapshot_id)
    draft.snapshots_once_current.append(snapshot_id)


def remove_snapshot_ref(draft: TableDraft, update: Document) -> None:
    """Remove a branch or tag. Without `main` the table has no current snapshot."""
    name = read_string(update, "ref-name")
    if name in draft.document["refs"]:
        _remove_ref(draft, name)


def _remove_ref(draft: TableDraft, name: str) -> None:
    del draft.own_map("refs")[name]
    if name == MAIN:
        draft.put("current-snapshot-id", NO_SNAPSHOT)


def remove_snapshots(draft: TableDraft, update: Document) -> None:
    """Remove snapshots, and with them their statistics and the refs that name them."""
    ids = set(read_longs(update, "snapshot-ids"))
    ids = {snapshot_id for snapshot_id in ids if draft.find_snapshot(snapshot_id) is not None}
    if not ids:
        return
    draft.put("snapshots", _without(draft.document["snapshots"], ids))
    for name in ("statistics", "partition-statistics"):
        if any(one["snapshot-id"] in ids for one in draft.document.get(name) or ()):
            draft.put(name, _without(draft.document[name], ids))
    for name in [name for name, ref in draft.document["refs"].items() if ref["snapshot-id"] in ids]:
        _remove_ref(draft, name)
    draft.forget_snapshots(ids)


def _without(documents: list[Document], snapshot_ids: set[int]) -> list[Document]:
    return [one for one in documents if one["snapshot-id"] not in snapshot_ids]


def finish_snapshot_log(draft: TableDraft) -> None:
    """Make the log tell what was current when, after all updates are applied.

    A snapshot that this commit both added and replaced was never current for anyone. A removed one ends the history before
    it: otherwise its successor would seem to have been current in its time.
    """
    current = draft.document.get("current-snapshot-id")
    passing = {one for one in draft.snapshots_once_current if one in draft.added_snapshots and one != current}
    if not passing and not draft.snapshots_removed:
        return
    log: list[Any] = []
    for entry in draft.document["snapshot-log"]:
        if draft.find_snapshot(entry["snapshot-id"]) is None:
            log = [] if draft.snapshots_removed else log
        elif entry["snapshot-id"] not in passing:
            log.append(entry)
    if current not in (None, NO_SNAPSHOT) and (not log or log[-1]["snapshot-id"] != current):
        raise ValidationFailed("Cannot set invalid snapshot log: latest entry is not the current snapshot")
    draft.put("snapshot-log", log)


def check_refs(draft: TableDraft) -> None:
    """Refuse a draft in which a ref names a snapshot that is not there."""
    lost = [name for name, ref in draft.document["refs"].items() if draft.find_snapshot(ref["snapshot-id"]) is None]
    if lost:
        raise IllegalArgument(f"Snapshot for reference {join(lost)} does not exist in the existing snapshots list")
