"""Updates of the table as a whole: its uuid, format version, location and properties, statistics files and encryption keys."""

from __future__ import annotations

from typing import Final

from frazil.catalog.document import (
    Document,
    read_int,
    read_list,
    read_long,
    read_object,
    read_optional_string,
    read_string,
    read_string_map,
    read_strings,
)
from frazil.catalog.errors import IllegalArgument, ValidationFailed
from frazil.catalog.snapshot_updates import ROW_LINEAGE_SINCE
from frazil.catalog.table_draft import TableDraft

SUPPORTED_VERSION: Final = 3


def assign_uuid(draft: TableDraft, update: Document) -> None:
    """Give a uuid to a table that has none; one that has keeps its own."""
    uuid, current = read_string(update, "uuid"), draft.document.get("table-uuid")
    if current is None:
        draft.put("table-uuid", uuid)
    elif uuid.lower() != current.lower():
        raise ValidationFailed(f"Cannot reassign table uuid: {current} != {uuid}")


def upgrade_format_version(draft: TableDraft, update: Document) -> None:
    """Raise the format version, and give the table what that version must have."""
    version, current = read_int(update, "format-version"), draft.format_version
    if version > SUPPORTED_VERSION:
        raise IllegalArgument(
            f"Cannot upgrade table to unsupported format version: v{version} (supported: v{SUPPORTED_VERSION})"
        )
    if version < current:
        raise IllegalArgument(f"Cannot downgrade v{current} table to v{version}")
    if version == current:
        return
    draft.put("format-version", version)
    draft.document.setdefault("last-sequence-number", 0)
    if version >= ROW_LINEAGE_SINCE:
        draft.document.setdefault("next-row-id", 0)


def set_location(draft: TableDraft, update: Document) -> None:
    """Move the table's location. Files that it has stay where they are."""
    location = strip_slashes(read_string(update, "location"))
    if location != draft.document.get("location"):
        draft.put("location", location)


def strip_slashes(location: str) -> str:
    """The location without slashes at its end, unless they belong to the scheme."""
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    if not location:
        raise IllegalArgument("path must not be null or empty")
    return location


def set_properties(draft: TableDraft, update: Document) -> None:
    """Set properties."""
    if updates := read_string_map(update, "updates" if "updates" in update else "updated"):
        draft.own_map("properties").update(updates)


def remove_properties(draft: TableDraft, update: Document) -> None:
    """Remove properties; one that is not there is no error."""
    for name in read_strings(update, "removals" if "removals" in update else "removed"):
        draft.own_map("properties").pop(name, None)


def set_statistics(draft: TableDraft, update: Document) -> None:
    """Set the statistics file of a snapshot."""
    statistics = read_object(update, "statistics")
    for name in ("snapshot-id", "file-size-in-bytes", "file-footer-size-in-bytes"):
        read_long(statistics, name)
    read_string(statistics, "statistics-path")
    read_list(statistics, "blob-metadata")
    _put(draft, "statistics", statistics)


def remove_statistics(draft: TableDraft, update: Document) -> None:
    """Forget the statistics file of a snapshot."""
    _drop(draft, "statistics", read_long(update, "snapshot-id"))


def set_partition_statistics(draft: TableDraft, update: Document) -> None:
    """Set the partition statistics file of a snapshot."""
    statistics = read_object(update, "partition-statistics")
    for name in ("snapshot-id", "file-size-in-bytes"):
        read_long(statistics, name)
    read_string(statistics, "statistics-path")
    _put(draft, "partition-statistics", statistics)


def remove_partition_statistics(draft: TableDraft, update: Document) -> None:
    """Forget the partition statistics file of a snapshot."""
    _drop(draft, "partition-statistics", read_long(update, "snapshot-id"))


def _put(draft: TableDraft, name: str, statistics: Document) -> None:
    others = [one for one in draft.document.get(name) or () if one["snapshot-id"] != statistics["snapshot-id"]]
    draft.put(name, [*others, statistics])


def _drop(draft: TableDraft, name: str, snapshot_id: int) -> None:
    files = draft.document.get(name) or []
    if any(one["snapshot-id"] == snapshot_id for one in files):
        draft.put(name, [one for one in files if one["snapshot-id"] != snapshot_id])


def add_encryption_key(draft: TableDraft, update: Document) -> None:
    """Add an encrypted key, unless one of its id is there."""
    key = read_object(update, "encryption-key")
    read_string(key, "encrypted-key-metadata")
    read_optional_string(key, "encrypted-by-id")
    key_id = read_string(key, "key-id")
    if all(one["key-id"] != key_id for one in draft.document.get("encryption-keys") or ()):
        draft.own_list("encryption-keys").append(key)


def remove_encryption_key(draft: TableDraft, update: Document) -> None:
    """Remove an encrypted key; one that is not there is no error."""
    key_id = read_string(update, "key-id")
    keys = draft.document.get("encryption-keys") or []
    if any(one["key-id"] == key_id for one in keys):
        draft.put("encryption-keys", [one for one in keys if one["key-id"] != key_id])
