"""The draft of a table's next metadata: a copy on write, so that a commit costs what it changes.

A draft starts as a shallow copy of the document. The first change of a list or map within copies that list or map (its
elements are shared); nothing else is copied, and nothing is looked at that no update names.
"""

from __future__ import annotations

from functools import cached_property
from operator import itemgetter
from typing import Any, Final

from frazil.catalog.document import Document
from frazil.catalog.requirements import refs_of
from frazil.catalog.schema import SchemaIndex

NO_SNAPSHOT: Final = -1
UNPARTITIONED_LAST_ID: Final = 999
"""Partition field ids begin at 1000."""

MAIN: Final = "main"


class TableDraft:
    """Metadata under change. Read `document`; change it through `put`, `own_list` and `own_map` alone.

    The remaining attributes remember, for the end of the commit and for the id -1 ("the last one added"), what was changed.
    """

    def __init__(self, base: Document, now_ms: int) -> None:
        self.document: Document = with_modern_fields(base)
        self.now_ms = max(now_ms, base.get("last-updated-ms", now_ms))
        self.changed = False
        self.layout_changed = False
        self.snapshots_removed = False
        self.last_added_schema: int | None = None
        self.last_added_spec: int | None = None
        self.last_added_order: int | None = None
        self.added_snapshots: dict[int, Document] = {}
        self.snapshots_once_current: list[int] = []
        self._own: set[str] = set()

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        version: int = self.document["format-version"]
        return version

    def put(self, name: str, value: Any) -> None:
        """Set a top-level field."""
        self.document[name] = value
        self.changed = True

    def own_list(self, name: str) -> list[Any]:
        """A top-level list that may be changed."""
        owned: list[Any] = self._owned(name, list)
        return owned

    def own_map(self, name: str) -> dict[str, Any]:
        """A top-level map that may be changed."""
        owned: dict[str, Any] = self._owned(name, dict)
        return owned

    def _owned(self, name: str, kind: type[Any]) -> Any:
        self.changed = True
        if name not in self._own:
            self.document[name] = kind(self.document.get(name) or ())
            self._own.add(name)
        return self.document[name]

    def schema_index(self) -> SchemaIndex:
        """The fields of the current schema."""
        return SchemaIndex(
            find(self.document["schemas"], "schema-id", self.document["current-schema-id"]) or {"fields": []}
        )

    @cached_property
    def _base_snapshots(self) -> dict[int, Document]:
        return {snapshot["snapshot-id"]: snapshot for snapshot in self.document.get("snapshots") or ()}

    def has_snapshot(self, snapshot_id: int) -> bool:
        """Whether there is a snapshot of that id. For a single look, this is quicker than an index of them all."""
        return snapshot_id in map(itemgetter("snapshot-id"), self.document.get("snapshots") or ())

    def find_snapshot(self, snapshot_id: int) -> Document | None:
        """The snapshot of that id, or None."""
        if snapshot_id in self.added_snapshots:
            return self.added_snapshots[snapshot_id]
        return self._base_snapshots.get(snapshot_id)

    def note_added(self, snapshot: Document) -> None:
        """Remember a snapshot that this commit adds."""
        self.added_snapshots[snapshot["snapshot-id"]] = snapshot

    def forget_snapshots(self, ids: set[int]) -> None:
        """Forget snapshots that this commit removes."""
        for snapshot_id in ids:
            self._base_snapshots.pop(snapshot_id, None)
            self.added_snapshots.pop(snapshot_id, None)
        self.snapshots_removed = True


def find(documents: list[Document], key: str, number: int) -> Document | None:
    """The document with that number under `key`, or None."""
    return next((document for document in documents if document[key] == number), None)


def with_modern_fields(base: Document) -> Document:
    """A shallow copy that has every list which a v1 document from before v2 may express otherwise, or not at all."""
    document = dict(base)
    if document.get("schemas") is None:
        schema = document.get("schema") or {"type": "struct", "fields": []}
        number = schema.get("schema-id") or 0
        document["schemas"], document["current-schema-id"] = [{**schema, "schema-id": number}], number
    if document.get("partition-specs") is None:
        spec = {"spec-id": 0, "fields": document.get("partition-spec") or []}
        document["partition-specs"], document["default-spec-id"] = [spec], 0
    if any(field.get("field-id") is None for spec in document["partition-specs"] for field in spec["fields"]):
        document["partition-specs"] = [_with_field_ids(spec) for spec in document["partition-specs"]]
    if document.get("last-partition-id") is None:
        document["last-partition-id"] = max(
            (field["field-id"] for spec in document["partition-specs"] for field in spec["fields"]),
            default=UNPARTITIONED_LAST_ID,
        )
    if document.get("sort-orders") is None:
        document["sort-orders"], document["default-sort-order-id"] = [{"order-id": 0, "fields": []}], 0
    for name, empty in (("properties", {}), ("snapshots", []), ("snapshot-log", []), ("metadata-log", [])):
        if document.get(name) is None:
            document[name] = empty
    if document.get("refs") is None:
        document["refs"] = refs_of(document)
    return document


def _with_field_ids(spec: Document) -> Document:
    """The spec with the field ids that v1 leaves out: a field's position."""
    numbered = enumerate(spec["fields"], start=UNPARTITIONED_LAST_ID + 1)
    return {**spec, "fields": [{**field, "field-id": field.get("field-id") or place} for place, field in numbered]}
