"""Updates of a commit to a view: from one metadata document to the next. As with tables, nothing that comes in is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from frazil.catalog.document import (
    Document,
    as_json,
    as_object,
    join,
    read_int,
    read_object,
    read_string,
    read_string_map,
    read_strings,
)
from frazil.catalog.errors import IllegalArgument, InvalidRequest, ValidationFailed
from frazil.catalog.schema import check_schema, same_schema
from frazil.catalog.table_draft import find
from frazil.catalog.table_updates import SUPPORTED_VERSION, strip_slashes
from frazil.catalog.view_version import check_no_dialect_lost, parse_version, same_version

LAST_ADDED: Final = -1
SUPPORTED_VIEW_VERSION: Final = 1
HISTORY_SIZE: Final = "version.history.num-entries"
_HISTORY_SIZE_DEFAULT: Final = 10


class ViewDraft:
    """A view's metadata under change: a shallow copy whose lists and maps are replaced, never changed."""

    def __init__(self, base: Document, now_ms: int) -> None:
        self.document = {**base, "properties": base.get("properties") or {}}
        self.now_ms = now_ms
        self.changed = False
        self.last_added_schema: int | None = None
        self.last_added_version: int | None = None
        self.added_versions: set[int] = set()
        self.previous = find(base["versions"], "version-id", base["current-version-id"])
        self.log_entry: Document | None = None

    def put(self, name: str, value: Any) -> None:
        """Set a top-level field."""
        self.document[name] = value
        self.changed = True


def apply_view_updates(metadata: Document, updates: Iterable[Any], *, now_ms: int) -> Document:
    """The metadata after the updates; the very same object when they change nothing. Raises as `apply_updates` does."""
    draft = ViewDraft(metadata, now_ms)
    for update in updates:
        document = as_object(update, "metadata update")
        _update_for(document)(draft, document)
    return finish_view(draft) if draft.changed else metadata


def finish_view(draft: ViewDraft) -> Document:
    """The draft's document, checked, with the version log continued and old versions forgotten."""
    document = draft.document
    if not document["versions"]:
        raise IllegalArgument("Invalid view: no versions were added")
    current = find(document["versions"], "version-id", document["current-version-id"])
    if current is None:
        numbers = join(version["version-id"] for version in document["versions"])
        raise IllegalArgument(
            f"Cannot find current version {document['current-version-id']} in view versions: [{numbers}]"
        )
    if draft.log_entry is not None:
        draft.put("version-log", [*document["version-log"], draft.log_entry])
    if draft.previous is not None:
        check_no_dialect_lost(draft.previous, current, document["properties"])
    _forget_old_versions(draft)
    return document


def _forget_old_versions(draft: ViewDraft) -> None:
    document, current = draft.document, draft.document["current-version-id"]
    kept_count = max(len(draft.added_versions | {current}), _history_size(document["properties"]))
    if len(document["versions"]) <= kept_count:
        return
    newest_first = sorted((version["version-id"] for version in document["versions"]), reverse=True)
    kept = {current, *[number for number in newest_first if number != current][: kept_count - 1]}
    log: list[Document] = []
    for entry in document["version-log"]:
        log = [*log, entry] if entry["version-id"] in kept else []
    draft.put("versions", [version for version in document["versions"] if version["version-id"] in kept])
    draft.put("version-log", log)


def _history_size(properties: dict[str, str]) -> int:
    text = properties.get(HISTORY_SIZE, str(_HISTORY_SIZE_DEFAULT))
    try:
        size = int(text)
    except ValueError:
        raise IllegalArgument(f"View property {HISTORY_SIZE} must have integer value: {text}") from None
    if size <= 0:
        raise IllegalArgument(f"{HISTORY_SIZE} must be positive but was {size}")
    return size


def _update_for(update: Document) -> Callable[[ViewDraft, Document], None]:
    if update.get("action") is None:
        raise IllegalArgument("Cannot parse metadata update. Missing field: action")
    action = read_string(update, "action").lower()
    if action not in VIEW_UPDATES:
        raise InvalidRequest(
            f"Cannot apply update {as_json(action)} to a view, which takes one of {join(VIEW_UPDATES)}"
        )
    return VIEW_UPDATES[action]


def _assign_uuid(draft: ViewDraft, update: Document) -> None:
    uuid, current = read_string(update, "uuid"), draft.document.get("view-uuid")
    if current is not None and uuid.lower() != current.lower():
        raise IllegalArgument("Cannot reassign uuid")
    if current is None:
        draft.put("view-uuid", uuid)


def _upgrade_format_version(draft: ViewDraft, update: Document) -> None:
    version, current = read_int(update, "format-version"), draft.document["format-version"]
    if version < current:
        raise IllegalArgument(f"Cannot downgrade v{current} view to v{version}")
    if version > SUPPORTED_VIEW_VERSION:
        raise IllegalArgument(f"Unsupported format version: {version}")


def _set_location(draft: ViewDraft, update: Document) -> None:
    location = strip_slashes(read_string(update, "location"))
    if location != draft.document["location"]:
        draft.put("location", location)


def _set_properties(draft: ViewDraft, update: Document) -> None:
    if updates := read_string_map(update, "updates" if "updates" in update else "updated"):
        draft.put("properties", {**draft.document["properties"], **updates})


def _remove_properties(draft: ViewDraft, update: Document) -> None:
    removals = set(read_strings(update, "removals" if "removals" in update else "removed"))
    if removals:
        kept = {name: value for name, value in draft.document["properties"].items() if name not in removals}
        draft.put("properties", kept)


def _add_schema(draft: ViewDraft, update: Document) -> None:
    add_view_schema(draft, read_object(update, "schema"))


def add_view_schema(draft: ViewDraft, schema: Document) -> int:
    """Add a schema under the next free id, or find it among those the view has; its id."""
    check_schema(schema, SUPPORTED_VERSION)
    schemas = draft.document["schemas"]
    known = next((one for one in schemas if same_schema(one, schema)), None)
    number: int = known["schema-id"] if known else max((one["schema-id"] + 1 for one in schemas), default=0)
    if known is None:
        draft.put("schemas", [*schemas, {**schema, "type": "struct", "schema-id": number}])
    draft.last_added_schema = number
    return number


def _add_version(draft: ViewDraft, update: Document) -> None:
    add_version(draft, parse_version(read_object(update, "view-version")))


def add_version(draft: ViewDraft, version: Document) -> int:
    """Add a version under its id or, when that is taken, the next free one; or find the same one. Its id."""
    if version["schema-id"] == LAST_ADDED:
        if draft.last_added_schema is None:
            raise ValidationFailed("Cannot set last added schema: no schema has been added")
        version = {**version, "schema-id": draft.last_added_schema}
    versions = draft.document["versions"]
    known = next((one for one in versions if same_version(one, version)), None)
    if known is None:
        if find(draft.document["schemas"], "schema-id", version["schema-id"]) is None:
            raise IllegalArgument(f"Cannot add version with unknown schema: {version['schema-id']}")
        number = max([int(version["version-id"]), *(int(one["version-id"]) + 1 for one in versions)])
        draft.put("versions", [*versions, {**version, "version-id": number}])
        draft.added_versions.add(number)
    else:
        number = int(known["version-id"])
    draft.last_added_version = number
    return number


def _set_current_version(draft: ViewDraft, update: Document) -> None:
    set_current_version(draft, read_int(update, "view-version-id"))


def set_current_version(draft: ViewDraft, number: int) -> None:
    """Make a version the current one, and note when in the log."""
    if number == LAST_ADDED:
        if draft.last_added_version is None:
            raise ValidationFailed("Cannot set last version id: no current version id has been set")
        number = draft.last_added_version
    if number == draft.document["current-version-id"]:
        return
    version = find(draft.document["versions"], "version-id", number)
    if version is None:
        raise IllegalArgument(f"Cannot set current version to unknown version: {number}")
    draft.put("current-version-id", number)
    time = version["timestamp-ms"] if number in draft.added_versions else draft.now_ms
    draft.log_entry = {"version-id": number, "timestamp-ms": time}


VIEW_UPDATES: Final[dict[str, Callable[[ViewDraft, Document], None]]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade_format_version,
    "add-schema": _add_schema,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "add-view-version": _add_version,
    "set-current-view-version": _set_current_version,
}
"""Every update that the document of the REST catalog knows for a view."""
