"""Updates of a commit to a table: from one metadata document to the next.

Pure functions on documents as they stand in JSON. The document that comes in is never changed; the one that goes out shares
with it all that the commit did not touch. Fields that nobody here knows survive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from frazil.catalog import layout_updates, snapshot_updates, table_updates
from frazil.catalog.document import Document, as_json, as_object, join, read_string
from frazil.catalog.errors import IllegalArgument, InvalidRequest
from frazil.catalog.table_draft import NO_SNAPSHOT, TableDraft, find

PREVIOUS_VERSIONS_MAX: Final = "write.metadata.previous-versions-max"
_PREVIOUS_VERSIONS_DEFAULT: Final = 100

Update = Callable[[TableDraft, Document], None]

UPDATES: Final[dict[str, Update]] = {
    "assign-uuid": table_updates.assign_uuid,
    "upgrade-format-version": table_updates.upgrade_format_version,
    "add-schema": layout_updates.add_schema,
    "set-current-schema": layout_updates.set_current_schema,
    "remove-schemas": layout_updates.remove_schemas,
    "add-spec": layout_updates.add_spec,
    "set-default-spec": layout_updates.set_default_spec,
    "remove-partition-specs": layout_updates.remove_specs,
    "add-sort-order": layout_updates.add_sort_order,
    "set-default-sort-order": layout_updates.set_default_sort_order,
    "add-snapshot": snapshot_updates.add_snapshot,
    "set-snapshot-ref": snapshot_updates.set_snapshot_ref,
    "remove-snapshot-ref": snapshot_updates.remove_snapshot_ref,
    "remove-snapshots": snapshot_updates.remove_snapshots,
    "set-statistics": table_updates.set_statistics,
    "remove-statistics": table_updates.remove_statistics,
    "set-partition-statistics": table_updates.set_partition_statistics,
    "remove-partition-statistics": table_updates.remove_partition_statistics,
    "set-location": table_updates.set_location,
    "set-properties": table_updates.set_properties,
    "remove-properties": table_updates.remove_properties,
    "add-encryption-key": table_updates.add_encryption_key,
    "remove-encryption-key": table_updates.remove_encryption_key,
}
"""Every update that the document of the REST catalog knows for a table."""

_OF_VIEWS: Final = ("add-view-version", "set-current-view-version")


def apply_updates(
    metadata: Document, updates: Iterable[Any], *, now_ms: int, previous_location: str | None = None
) -> Document:
    """The metadata after the updates, applied in their order; the very same object when they change nothing.

    `previous_location` is the file that `metadata` was read from; it enters the metadata log. Raises `InvalidRequest` for an
    update that is malformed or would make invalid metadata, `CommitFailed` for one that rests on metadata since replaced.
    """
    draft = TableDraft(metadata, now_ms)
    run_updates(draft, updates)
    if not draft.changed:
        return metadata
    return finish(draft, metadata, previous_location)


def run_updates(draft: TableDraft, updates: Iterable[Any]) -> None:
    """Apply the updates to the draft, one after the other."""
    for update in updates:
        document = as_object(update, "metadata update")
        _update_for(document)(draft, document)


def finish(draft: TableDraft, base: Document, previous_location: str | None) -> Document:
    """The draft's document, checked, with what follows from its changes: logs, times and the fields of its version."""
    if draft.layout_changed:
        layout_updates.check_layout(draft)
    snapshot_updates.finish_snapshot_log(draft)
    if previous_location is not None:
        _log_metadata(draft, base, previous_location)
    draft.document["last-updated-ms"] = draft.now_ms
    _fit_version(draft.document)
    return draft.document


def _update_for(update: Document) -> Update:
    if update.get("action") is None:
        raise IllegalArgument("Cannot parse metadata update. Missing field: action")
    action = read_string(update, "action").lower()
    if action in UPDATES:
        return UPDATES[action]
    if action in _OF_VIEWS:
        raise InvalidRequest(f"Cannot apply update {action} to a table")
    raise InvalidRequest(f"Unrecognized metadata update: {as_json(action)}; a table takes one of {join(UPDATES)}")


def _log_metadata(draft: TableDraft, base: Document, previous_location: str) -> None:
    """Note the file that this commit replaces, and forget the oldest when there are more than the table keeps."""
    entry = {"metadata-file": previous_location, "timestamp-ms": base.get("last-updated-ms", draft.now_ms)}
    log = [*draft.document["metadata-log"], entry]
    draft.put("metadata-log", log[-_previous_versions_max(draft.document["properties"]) :])


def _previous_versions_max(properties: dict[str, str]) -> int:
    text = properties.get(PREVIOUS_VERSIONS_MAX)
    if text is None:
        return _PREVIOUS_VERSIONS_DEFAULT
    try:
        return max(1, int(text))
    except ValueError:
        raise IllegalArgument(f"Table property {PREVIOUS_VERSIONS_MAX} must have integer value: {text}") from None


def _fit_version(document: Document) -> None:
    """Keep the fields that only v1 has in step, or drop them; say "no snapshot" as each version does."""
    if document["format-version"] == 1:
        spec = find(document["partition-specs"], "spec-id", document["default-spec-id"]) or {"fields": []}
        document["schema"] = find(document["schemas"], "schema-id", document["current-schema-id"])
        document["partition-spec"] = spec["fields"]
    else:
        document.pop("schema", None)
        document.pop("partition-spec", None)
    if document.get("current-snapshot-id") in (None, NO_SNAPSHOT):
        document.pop("current-snapshot-id", None)
        if document["format-version"] < snapshot_updates.ROW_LINEAGE_SINCE:
            document["current-snapshot-id"] = NO_SNAPSHOT
