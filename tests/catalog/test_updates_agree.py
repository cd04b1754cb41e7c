"""Any history of commits gives what PyIceberg, an independent implementation of the same updates, makes of it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate, update_table_metadata

from catalog.documents import NOW, TAXI, Document, add, field, new_table, parsed, point, schema, snapshot, sort_field
from catalog.documents import spec_field as partition_field
from frazil.catalog.updates import apply_updates

UPDATES: TypeAdapter[TableUpdate] = TypeAdapter(TableUpdate)
TRANSFORMS = ("identity", "bucket[4]", "bucket[8]", "truncate[2]", "void")

OPERATIONS = (
    "append",
    "stage",
    "branch",
    "tag",
    "rollback",
    "drop-ref",
    "schema",
    "spec",
    "order",
    "set",
    "statistics",
)


def grown(table: Document, count: int) -> Document:
    columns = [
        field(table["last-column-id"] + 1 + number, f"more_{table['last-column-id'] + number}")
        for number in range(count)
    ]
    return schema(*TAXI["fields"], *columns, **{"schema-id": max(one["schema-id"] for one in table["schemas"]) + 1})


def next_snapshot(table: Document) -> Document:
    number = len(table["snapshots"]) + 1
    rows = {"first-row-id": table["next-row-id"], "added-rows": 10} if table["format-version"] == 3 else {}
    current = table.get("current-snapshot-id", -1)
    parent = {} if current == -1 else {"parent-snapshot-id": current}
    return snapshot(number, table.get("last-sequence-number", 0) + 1, **parent, **rows)


def commit(table: Document, operation: str, pick: int) -> list[Document]:
    """Updates that both implementations define alike, for the table as it is."""
    ids = [one["snapshot-id"] for one in table["snapshots"]]
    chosen = ids[pick % len(ids)] if ids else None
    match operation:
        case "append":
            new = next_snapshot(table)
            return [add(new), point(new["snapshot-id"])]
        case "stage":
            return [add(next_snapshot(table))]
        case "branch" | "tag" if chosen:
            return [point(chosen, f"{operation}-{pick}", operation, **{"max-ref-age-ms": pick + 1})]
        case "rollback" if chosen:
            return [point(chosen)]
        case "drop-ref" if table["refs"]:
            return [{"action": "remove-snapshot-ref", "ref-name": sorted(table["refs"])[pick % len(table["refs"])]}]
        case "schema":
            return [
                {"action": "add-schema", "schema": grown(table, pick + 1)},
                {"action": "set-current-schema", "schema-id": -1},
            ]
        case "spec":
            return spec_of(table, pick)
        case "order":
            number = max(one["order-id"] for one in table["sort-orders"]) + 1
            order = {"order-id": number, "fields": [sort_field(3, TRANSFORMS[pick % 3]) for _ in range(number)]}
            return [
                {"action": "add-sort-order", "sort-order": order},
                {"action": "set-default-sort-order", "sort-order-id": -1},
            ]
        case "set":
            return [{"action": "set-properties", "updates": {f"key-{pick}": operation}}]
        case "statistics" if chosen:
            body = {"snapshot-id": chosen, "statistics-path": f"file:///{pick}", "file-size-in-bytes": pick}
            body |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
            return [{"action": "set-statistics", "snapshot-id": chosen, "statistics": body}]
    return []


def spec_of(table: Document, pick: int) -> list[Document]:
    number = max(one["spec-id"] for one in table["partition-specs"]) + 1
    first = table["last-partition-id"] + 1
    fields = [
        partition_field(3, f"part_{number}_{place}", TRANSFORMS[(pick + place) % 5], **{"field-id": first + place})
        for place in range(pick % 3 + 1)
    ]
    spec = {"spec-id": number, "fields": fields}
    return [{"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1}]


def as_told(metadata: TableMetadata) -> dict[str, Any]:
    """What the metadata says, without the time of the last update, which PyIceberg takes from the snapshot."""
    document = json.loads(json.dumps(metadata.model_dump(mode="json", by_alias=True), default=str))
    document.pop("last-updated-ms")
    document.pop("metadata-log", None)
    for entry in document.get("snapshot-log", ()):
        entry.pop("timestamp-ms")
    return {name: value for name, value in document.items() if value is not None}


@given(
    st.sampled_from([2, 3]),
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(min_value=0, max_value=4)), max_size=12),
)
def test_any_history_of_commits_is_the_one_that_pyiceberg_makes(version: int, history: list[tuple[str, int]]) -> None:
    table = new_table(version)
    theirs = parsed(table)
    for operation, pick in history:
        updates = commit(table, operation, pick)
        table = apply_updates(table, updates, now_ms=NOW + 60_000)
        theirs = update_table_metadata(theirs, tuple(UPDATES.validate_python(one) for one in updates))
        assert as_told(parsed(table)) == as_told(theirs)
