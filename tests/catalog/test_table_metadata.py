"""The first metadata of a table: fresh ids, versions, properties, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.documents import (
    JUNK,
    LOCATION,
    NOW,
    TAXI,
    UUID,
    Document,
    field,
    new_table,
    parsed,
    places,
    schema,
    snapshot,
    sort_field,
    spec_field,
    with_junk,
    with_snapshots,
)
from frazil.catalog.errors import CatalogError, IllegalArgument, InvalidRequest, ValidationFailed
from frazil.catalog.metadata_check import check_table_metadata
from frazil.catalog.table_metadata import metadata_from_updates, new_table_metadata
from frazil.catalog.updates import apply_updates

NESTED = schema(
    field(10, "id", required=True),
    field(20, "place", schema(field(30, "city", "string", required=True), field(40, "zip", "string")), required=True),
    field(50, "tags", {"type": "list", "element-id": 60, "element": "string", "element-required": False}),
    field(
        70,
        "prices",
        {
            "type": "map",
            "key-id": 80,
            "key": "string",
            "value-id": 90,
            "value": schema(field(100, "net", "decimal(9,2)")),
            "value-required": False,
        },
    ),
    **{"identifier-field-ids": [10, 30]},
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_what_a_new_table_says(version: int) -> None:
    spec = {"spec-id": 7, "fields": [spec_field(2, "at_day", "day"), spec_field(3, "city_bucket", "bucket[8]")]}
    order = {"order-id": 9, "fields": [sort_field(3)]}
    read = parsed(new_table(version, **{"partition-spec": spec, "write-order": order}))
    assert (read.format_version, str(read.table_uuid), read.location) == (version, UUID, LOCATION)
    assert read.last_updated_ms == NOW
    assert read.last_column_id == 3
    assert [(one.field_id, one.source_id, str(one.transform)) for one in read.spec().fields] == [
        (1000, 2, "day"),
        (1001, 3, "bucket[8]"),
    ]
    assert (read.default_spec_id, read.last_partition_id, read.default_sort_order_id) == (0, 1001, 1)
    assert read.current_snapshot_id is None


def test_field_ids_are_counted_anew_each_level_before_what_is_nested_in_it() -> None:
    metadata = new_table(
        table_schema=NESTED,
        **{
            "partition-spec": {"spec-id": 0, "fields": [spec_field(30, "city")]},
            "write-order": {"order-id": 3, "fields": [sort_field(30)]},
        },
    )
    read = parsed(metadata)
    ids = {name: read.schema().find_field(name).field_id for name in read.schema().column_names}
    assert ids == {
        "id": 1, "place": 2, "tags": 3, "prices": 4, "place.city": 5, "place.zip": 6,
        "tags.element": 7, "prices.key": 8, "prices.value": 9, "prices.value.net": 10,
    }  # fmt: skip
    assert read.last_column_id == 10
    assert read.schema().identifier_field_ids == [1, 5]
    assert [one.source_id for one in read.spec().fields] == [5]
    assert [one.source_id for one in read.sort_order_by_id(1).fields] == [5]


def test_the_format_version_is_asked_for_by_a_property_which_is_not_kept() -> None:
    metadata = new_table(3, properties={"owner": "frazil", "current-schema": "0"})
    assert metadata["format-version"] == 3
    assert metadata["properties"] == {"owner": "frazil", "write.parquet.compression-codec": "zstd"}
    assert metadata["next-row-id"] == 0
    plain = new_table_metadata({"name": "t", "schema": TAXI}, table_uuid=UUID, location=LOCATION, now_ms=NOW)
    assert plain["format-version"] == 2


def test_a_property_of_the_request_wins_over_the_default_for_new_tables() -> None:
    assert new_table(properties={"write.parquet.compression-codec": "snappy"})["properties"] == {
        "write.parquet.compression-codec": "snappy"
    }


def test_a_location_keeps_no_slash_at_its_end() -> None:
    metadata = new_table_metadata({"name": "t", "schema": TAXI}, table_uuid=UUID, location="file:///x//", now_ms=NOW)
    assert metadata["location"] == "file:///x"


def test_fields_nobody_here_knows_survive() -> None:
    column = field(1, "id", **{"x-origin": "sensor"})
    metadata = new_table(table_schema=schema(column, **{"x-owner": "ops"}))
    assert metadata["schemas"][0]["x-owner"] == "ops"
    assert metadata["schemas"][0]["fields"][0]["x-origin"] == "sensor"
    kept = apply_updates(
        {**metadata, "x-lineage": {"job": 7}},
        [{"action": "set-properties", "updates": {"a": "b"}}],
        now_ms=NOW,
    )
    assert kept["x-lineage"] == {"job": 7}


def request(**changes: Any) -> Document:
    return {"name": "t", "schema": TAXI, **changes}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "Cannot parse create table request from non-object"),
        ({"schema": TAXI}, "Invalid table name: null"),
        ({"name": "t"}, "Invalid schema: null"),
        (request(schema={"type": "list"}), "Cannot create schema, not a struct type: list"),
        (request(schema={"type": "struct"}), "Cannot parse missing list: fields"),
        (request(schema=schema({"id": 1, "name": "a", "type": "long"})), "Cannot parse missing boolean: required"),
        (request(schema=schema(field(1, "a", "tensor"))), "Cannot parse type string to primitive: tensor"),
        (
            request(schema=schema(field(1, "a", "decimal(39,2)"))),
            "Decimals with precision larger than 38 are not supported: 39",
        ),
        (request(schema=schema(field(1, "a"), field(2, "a"))), "Invalid schema: multiple fields for name a: 1 and 2"),
        (request(schema=schema(field(1, "a"), field(1, "b"))), "Invalid schema: multiple fields for id 1: a and b"),
        (
            request(schema=schema(field(1, "a", "timestamp_ns"))),
            "Invalid schema for v2:\n- Invalid type for a: timestamp_ns is not supported until v3",
        ),
        (
            request(schema=schema(field(1, "a", **{"initial-default": 3}))),
            "Invalid schema for v2:\n- Invalid initial default for a: non-null default (3) is not supported until v3",
        ),
        (
            request(schema=schema(field(1, "a"), **{"identifier-field-ids": [1]})),
            "Cannot add field a as an identifier field: not a required field",
        ),
        (
            request(schema=schema(field(1, "a", "double", required=True), **{"identifier-field-ids": [1]})),
            "Cannot add field a as an identifier field: must not be float or double field",
        ),
        (
            request(schema=schema(field(1, "a"), **{"identifier-field-ids": [2]})),
            "Cannot add fieldId 2 as an identifier field: field does not exist",
        ),
        (request(properties={"format-version": "4"}), "Unsupported format version: v4 (supported: v3)"),
        (request(properties={"format-version": "two"}), "Table property format-version must have integer value: two"),
        (request(properties={"a": 1}), "Cannot parse to a string value: a: 1"),
        (
            request(properties={"commit.retry.num-retries": "-1"}),
            "Table property commit.retry.num-retries must have non negative integer value",
        ),
        (
            request(properties={"write.metadata.metrics.column.fare": "full"}),
            "Invalid metrics config, could not find column fare from table prop write.metadata.metrics.column.fare in schema",
        ),
        (request(properties={"encryption.key-id": "k"}), "Invalid properties for v2: [encryption.key-id]"),
        (
            request(**{"partition-spec": {"fields": [spec_field(9, "x")]}}),
            "Cannot find source column for partition field: None: x: identity(9)",
        ),
        (
            request(**{"partition-spec": {"fields": [spec_field(3, "d", "day")]}}),
            "Invalid source type string for transform: day",
        ),
        (
            request(**{"partition-spec": {"fields": [spec_field(3, "id")]}}),
            "Cannot create identity partition sourced from different field in schema: id",
        ),
        (
            request(**{"partition-spec": {"fields": [spec_field(2, "p", "day"), spec_field(3, "p")]}}),
            "Cannot use partition name more than once: p",
        ),
        (
            request(**{"write-order": {"order-id": 1, "fields": [sort_field(9)]}}),
            "Cannot find source column for sort field: identity(9) ASC NULLS FIRST",
        ),
        (request(**{"write-order": {"order-id": 1, "fields": []}}), "Unsorted order ID must be 0"),
        (
            request(**{"write-order": {"order-id": 0, "fields": [sort_field(1)]}}),
            "Sort order ID 0 is reserved for unsorted order",
        ),
    ],
)
def test_a_request_that_makes_no_valid_table_is_refused_in_one_sentence(body: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        new_table_metadata(body, table_uuid=UUID, location=LOCATION, now_ms=NOW)
    assert refusal.value.message.startswith(message)


def test_a_nested_struct_of_an_optional_list_holds_no_identifier() -> None:
    element = schema(field(2, "x", required=True))
    nested = schema(
        field(1, "a", {"type": "list", "element-id": 3, "element": element, "element-required": True}),
        **{"identifier-field-ids": [2]},
    )
    with pytest.raises(IllegalArgument, match="Cannot add field x as an identifier field: must not be nested in 1: a"):
        new_table(table_schema=nested)


def test_a_creation_that_is_committed_as_updates_alone_is_the_table_they_describe() -> None:
    other = "11111111-2222-3333-4444-555555555555"
    updates = [
        {"action": "assign-uuid", "uuid": other},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": TAXI, "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": [spec_field(2, "d", "day", **{"field-id": 1000})]}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": "file:///elsewhere"},
        {"action": "set-properties", "updates": {"owner": "frazil"}},
        {"action": "add-snapshot", "snapshot": snapshot(1)},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ]
    made = metadata_from_updates(updates, table_uuid=UUID, location=LOCATION, now_ms=NOW)
    read = parsed(made)
    assert (str(read.table_uuid), read.location, read.format_version) == (other, "file:///elsewhere", 2)
    assert read.spec().fields[0].name == "d"
    assert read.current_snapshot_id == 1
    on_staged = apply_updates(new_table_as(other), updates, now_ms=NOW)
    assert parsed(on_staged).schema() == read.schema()
    assert (on_staged["location"], on_staged["current-snapshot-id"]) == ("file:///elsewhere", 1)


def new_table_as(uuid: str) -> Document:
    return new_table_metadata({"name": "t", "schema": TAXI}, table_uuid=uuid, location=LOCATION, now_ms=NOW)


def test_a_creation_without_a_schema_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="without a current schema"):
        metadata_from_updates([], table_uuid=UUID, location=LOCATION, now_ms=NOW)


def test_metadata_from_before_v2_is_taken_and_evolves() -> None:
    old = {
        "format-version": 1,
        "table-uuid": UUID,
        "location": LOCATION,
        "last-updated-ms": NOW,
        "last-column-id": 3,
        "schema": TAXI,
        "partition-spec": [spec_field(2, "d", "day")],
        "current-snapshot-id": 1,
        "snapshots": [
            {"snapshot-id": 1, "timestamp-ms": NOW, "summary": {"operation": "append"}, "manifest-list": "x"}
        ],
    }
    taken = check_table_metadata(old)
    assert taken["refs"] == {"main": {"snapshot-id": 1, "type": "branch"}}
    assert taken["partition-specs"][0]["fields"][0]["field-id"] == 1000
    upgraded = apply_updates(taken, [{"action": "upgrade-format-version", "format-version": 2}], now_ms=NOW)
    assert parsed(upgraded).spec().fields[0].field_id == 1000
    assert "schema" not in upgraded and "partition-spec" not in upgraded


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format-version": 4}, "Cannot read unsupported version 4"),
        ({"schemas": ...}, "schemas must exist in format v2"),
        ({"table-uuid": ...}, "Cannot parse missing string: table-uuid"),
        ({"last-sequence-number": ...}, "Cannot parse missing long: last-sequence-number"),
        ({"current-schema-id": 5}, "Cannot make table metadata without a current schema"),
        (
            {"refs": {"main": {"snapshot-id": 99, "type": "branch"}}},
            "Snapshot for reference main does not exist in the existing snapshots list",
        ),
    ],
)
def test_damaged_metadata_is_not_taken(changes: Document, message: str) -> None:
    damaged = {**with_snapshots(new_table(), 1), **changes}
    damaged = {name: value for name, value in damaged.items() if value is not ...}
    with pytest.raises(InvalidRequest) as refusal:
        check_table_metadata(damaged)
    assert refusal.value.message.startswith(message)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_metadata_that_is_damaged_anywhere_is_refused_or_can_be_worked_with(version: int) -> None:
    spec = {"spec-id": 0, "fields": [spec_field(2, "d", "day")]}
    order = {"order-id": 1, "fields": [sort_field(1)]}
    table = with_snapshots(new_table(version, **{"partition-spec": spec, "write-order": order}), 2)
    table["metadata-log"] = [{"metadata-file": "file:///x", "timestamp-ms": NOW}]
    table["statistics"] = [{"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 1}]
    updates = [
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
        {"action": "add-schema", "schema": schema(*TAXI["fields"], field(4, "fare"))},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": [spec_field(1, "b", "bucket[2]")]}},
    ]
    for path in places(table):
        for junk in JUNK:
            try:
                taken = check_table_metadata(with_junk(table, path, junk))
                apply_updates(taken, updates, now_ms=NOW, previous_location="file:///y")
            except CatalogError as refusal:
                assert refusal.status in (400, 409)
