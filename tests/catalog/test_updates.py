"""Updates: from one metadata document to the next, as Iceberg's own table metadata builder does it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from catalog.documents import (
    LOCATION,
    NOW,
    TAXI,
    UUID,
    Document,
    add,
    field,
    new_table,
    parsed,
    point,
    schema,
    snapshot,
    sort_field,
    spec_field,
    with_snapshots,
)
from frazil.catalog.errors import CatalogError, CommitFailed, InvalidRequest
from frazil.catalog.updates import UPDATES, apply_updates

LATER = NOW + 1_000_000
WIDER = schema(*TAXI["fields"], field(4, "fare", "double"))


def apply(metadata: Document, *updates: Any, now_ms: int = LATER, **more: Any) -> Document:
    return apply_updates(metadata, updates, now_ms=now_ms, **more)


def update(action: str, **fields: Any) -> Document:
    return {"action": action, **{name.replace("_", "-"): value for name, value in fields.items()}}


def add_schema(columns: Document) -> Document:
    return update("add-schema", schema=columns)


def add_spec(*fields: Document) -> Document:
    return update("add-spec", spec={"spec-id": 0, "fields": list(fields)})


def add_order(*fields: Document) -> Document:
    return update("add-sort-order", sort_order={"order-id": 1 if fields else 0, "fields": list(fields)})


SET_SCHEMA = update("set-current-schema", schema_id=-1)
SET_SPEC = update("set-default-spec", spec_id=-1)
SET_ORDER = update("set-default-sort-order", sort_order_id=-1)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_that_appends_and_evolves_is_read_by_pyiceberg(version: int) -> None:
    spec = {"spec-id": 0, "fields": [spec_field(2, "day", "day")]}
    order = {"order-id": 1, "fields": [sort_field(1)]}
    table = with_snapshots(new_table(version, **{"partition-spec": spec, "write-order": order}), 5)
    bucket = spec_field(1, "bucket", "bucket[4]")
    evolved = apply(
        table,
        *[add_schema(WIDER), SET_SCHEMA, add_spec(*spec["fields"], bucket), SET_SPEC],
        previous_location="file:///warehouse/00005.metadata.json",
    )
    read = parsed(evolved)
    assert [one.name for one in read.schema().fields] == ["id", "at", "city", "fare"]
    assert [(one.field_id, one.name) for one in read.spec().fields] == [(1000, "day"), (1001, "bucket")]
    assert read.current_snapshot_id == 5
    assert [one.snapshot_id for one in read.snapshot_log] == [1, 2, 3, 4, 5]
    assert [one.metadata_file for one in read.metadata_log] == ["file:///warehouse/00005.metadata.json"]


def test_the_document_that_comes_in_is_never_changed() -> None:
    table = with_snapshots(new_table(), 3)
    before = copy.deepcopy(table)
    apply(
        table,
        *[
            add_schema(WIDER),
            SET_SCHEMA,
            add_spec(spec_field(2, "d", "day")),
            SET_SPEC,
            add_order(sort_field(1)),
            SET_ORDER,
        ],
        *[add(snapshot(9, **{"parent-snapshot-id": 3})), point(9), point(2, "audit", "tag")],
        update("set-properties", updates={"a": "b"}),
        update("remove-snapshots", snapshot_ids=[1]),
        previous_location="file:///x",
    )
    assert table == before


def test_what_a_commit_does_not_touch_is_shared_not_copied() -> None:
    table = with_snapshots(new_table(), 3)
    after = apply(table, update("set-properties", updates={"a": "b"}))
    assert all(
        after[name] is table[name] for name in ("schemas", "partition-specs", "snapshots", "snapshot-log", "refs")
    )
    grown = apply(table, add(snapshot(9, **{"parent-snapshot-id": 3})), point(9))
    assert all(new is old for new, old in zip(grown["snapshots"], table["snapshots"], strict=False))


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        [update("set-location", location=LOCATION + "/")],
        [update("set-properties", updates={})],
        [update("remove-snapshots", snapshot_ids=[77])],
        [update("remove-snapshot-ref", ref_name="nowhere")],
        [update("remove-statistics", snapshot_id=1)],
        [update("remove-encryption-key", key_id="k")],
        [update("upgrade-format-version", format_version=2)],
        [update("assign-uuid", uuid=UUID)],
        [point(3)],
        [add_schema(TAXI), SET_SCHEMA],
        [add_order(), SET_ORDER],
    ],
)
def test_updates_that_change_nothing_give_the_very_same_document(nothing: list[Document]) -> None:
    table = with_snapshots(new_table(), 3)
    assert apply(table, *nothing, previous_location="file:///x") is table


def test_every_change_moves_the_time_and_logs_the_file_it_replaces() -> None:
    table = apply(
        new_table(), update("set-properties", updates={"a": "b"}), now_ms=LATER, previous_location="file:///1"
    )
    again = apply(table, update("remove-properties", removals=["a"]), now_ms=LATER + 5, previous_location="file:///2")
    assert again["last-updated-ms"] == LATER + 5
    assert again["metadata-log"] == [
        {"metadata-file": "file:///1", "timestamp-ms": NOW},
        {"metadata-file": "file:///2", "timestamp-ms": LATER},
    ]


def test_the_metadata_log_keeps_as_many_files_as_the_property_says() -> None:
    table = apply(new_table(), update("set-properties", updates={"write.metadata.previous-versions-max": "2"}))
    for number in range(5):
        table = apply(
            table, update("set-properties", updates={"n": str(number)}), previous_location=f"file:///{number}"
        )
    assert [entry["metadata-file"] for entry in table["metadata-log"]] == ["file:///3", "file:///4"]


def test_time_does_not_run_backwards_when_a_clock_does() -> None:
    table = apply(new_table(), update("set-properties", updates={"a": "b"}), now_ms=LATER)
    assert apply(table, update("set-properties", updates={"a": "c"}), now_ms=NOW)["last-updated-ms"] == LATER


class TestSchemas:
    def test_a_schema_gets_the_next_id_and_its_columns_count(self) -> None:
        table = apply(new_table(), add_schema({**WIDER, "schema-id": 77}), SET_SCHEMA)
        assert [one["schema-id"] for one in table["schemas"]] == [0, 1]
        assert (table["current-schema-id"], table["last-column-id"]) == (1, 4)

    def test_the_same_schema_again_is_the_one_the_table_has(self) -> None:
        table = apply(new_table(), add_schema(WIDER), SET_SCHEMA)
        back = apply(table, add_schema(TAXI), SET_SCHEMA)
        assert (len(back["schemas"]), back["current-schema-id"]) == (2, 0)
        assert back["last-column-id"] == 4

    def test_a_removed_column_leaves_its_id_used(self) -> None:
        table = apply(new_table(), add_schema(schema(TAXI["fields"][0])), SET_SCHEMA)
        assert table["last-column-id"] == 3

    def test_schemas_are_removed_but_not_the_current_one(self) -> None:
        table = apply(new_table(), add_schema(WIDER), SET_SCHEMA)
        assert [one["schema-id"] for one in apply(table, update("remove-schemas", schema_ids=[0, 9]))["schemas"]] == [1]
        refused(table, "Cannot remove the current schema", update("remove-schemas", schema_ids=[1]))

    def test_v1_keeps_the_fields_by_which_old_readers_know_it(self) -> None:
        table = apply(new_table(1), add_schema(WIDER), SET_SCHEMA, add_spec(spec_field(2, "d", "day")), SET_SPEC)
        assert table["schema"] == table["schemas"][1]
        assert table["partition-spec"] == table["partition-specs"][1]["fields"]


class TestSpecs:
    def test_a_field_without_an_id_gets_the_next_or_that_of_its_equal(self) -> None:
        table = apply(new_table(), add_spec(spec_field(2, "d", "day")), SET_SPEC)
        more = apply(table, add_spec(spec_field(1, "b", "bucket[4]"), spec_field(2, "renamed", "day")), SET_SPEC)
        assert [one["field-id"] for one in more["partition-specs"][-1]["fields"]] == [1001, 1000]
        assert (more["default-spec-id"], more["last-partition-id"]) == (2, 1001)

    def test_the_same_spec_again_is_the_one_the_table_has(self) -> None:
        table = apply(new_table(), add_spec(spec_field(2, "d", "day")), SET_SPEC)
        assert apply(table, add_spec(), SET_SPEC)["default-spec-id"] == 0

    def test_specs_are_removed_but_not_the_default_one(self) -> None:
        table = apply(new_table(), add_spec(spec_field(2, "d", "day")), SET_SPEC)
        after = apply(table, update("remove-partition-specs", spec_ids=[0]))
        assert [one["spec-id"] for one in after["partition-specs"]] == [1]
        assert after["last-partition-id"] == 1000
        refused(table, "Cannot remove the default partition spec", update("remove-partition-specs", spec_ids=[1]))

    def test_a_spec_of_v1_numbers_its_fields_by_position(self) -> None:
        refused(
            new_table(1),
            "Spec does not use sequential IDs that are required in v1: [1005: d: day(2)]",
            add_spec(spec_field(2, "d", "day", **{"field-id": 1005})),
        )

    def test_a_column_that_partitions_the_table_cannot_go(self) -> None:
        table = apply(new_table(), add_spec(spec_field(2, "d", "day")), SET_SPEC)
        narrow = schema(TAXI["fields"][0])
        refused(table, "Cannot find source column for partition field: 1000: d: day(2)", add_schema(narrow), SET_SCHEMA)
        apply(table, add_schema(narrow), SET_SCHEMA, add_spec(), SET_SPEC)


class TestSortOrders:
    def test_an_order_gets_the_next_id_and_an_equal_one_keeps_its_own(self) -> None:
        table = apply(new_table(), add_order(sort_field(1)), SET_ORDER)
        assert table["default-sort-order-id"] == 1
        table = apply(table, add_order(sort_field(3)), SET_ORDER)
        assert table["default-sort-order-id"] == 2
        assert apply(table, add_order(sort_field(1)), SET_ORDER)["default-sort-order-id"] == 1
        assert apply(table, add_order(), SET_ORDER)["default-sort-order-id"] == 0


class TestSnapshots:
    def test_an_append_moves_main_and_the_log(self) -> None:
        table = with_snapshots(new_table(), 2)
        assert (table["current-snapshot-id"], table["last-sequence-number"]) == (2, 2)
        assert table["snapshot-log"] == [{"snapshot-id": n, "timestamp-ms": NOW + n} for n in (1, 2)]

    def test_a_staged_snapshot_is_there_but_not_current(self) -> None:
        table = apply(with_snapshots(new_table(), 1), add(snapshot(2, **{"parent-snapshot-id": 1})))
        assert (len(table["snapshots"]), table["current-snapshot-id"], len(table["snapshot-log"])) == (2, 1, 1)

    def test_a_rollback_is_logged_at_the_time_it_happens(self) -> None:
        table = apply(with_snapshots(new_table(), 3), point(1))
        assert table["snapshot-log"][-1] == {"snapshot-id": 1, "timestamp-ms": LATER}

    def test_a_snapshot_that_was_never_current_for_anyone_is_not_logged(self) -> None:
        steps = [add(snapshot(1)), point(1), add(snapshot(2, **{"parent-snapshot-id": 1})), point(2)]
        assert [entry["snapshot-id"] for entry in apply(new_table(), *steps)["snapshot-log"]] == [2]

    def test_a_stale_sequence_number_is_a_conflict(self) -> None:
        with pytest.raises(CommitFailed) as failure:
            apply(with_snapshots(new_table(), 3), add(snapshot(9, 3, **{"parent-snapshot-id": 2})))
        assert failure.value.message == (
            "Validation failed, please retry: Cannot add snapshot with sequence number 3 older than last sequence number 3"
        )

    def test_the_rows_of_v3_are_numbered(self) -> None:
        table = with_snapshots(new_table(3), 2)
        assert table["next-row-id"] == 20
        with pytest.raises(CommitFailed, match="first-row-id is behind table next-row-id: 10 < 20"):
            apply(table, add(snapshot(3, **{"first-row-id": 10, "added-rows": 1})))
        refused(table, "Cannot add a snapshot: first-row-id is null", add(snapshot(3)))
        refused(
            table,
            "Invalid added-rows (required when first-row-id is set): null",
            add(snapshot(3, **{"first-row-id": 20})),
        )

    def test_removing_a_snapshot_takes_its_refs_statistics_and_the_history_before_it(self) -> None:
        table = apply(
            with_snapshots(new_table(), 4),
            *[point(2, "audit", "tag"), point(2, "old"), point(3, "kept")],
            *[statistics(2), statistics(3), partition_statistics(2)],
        )
        after = apply(table, update("remove-snapshots", snapshot_ids=[2]))
        assert [one["snapshot-id"] for one in after["snapshots"]] == [1, 3, 4]
        assert set(after["refs"]) == {"main", "kept"}
        assert [one["snapshot-id"] for one in after["statistics"]] == [3]
        assert after["partition-statistics"] == []
        assert [one["snapshot-id"] for one in after["snapshot-log"]] == [3, 4]

    def test_removing_the_current_snapshot_leaves_the_table_without_one(self) -> None:
        after = apply(with_snapshots(new_table(), 2), update("remove-snapshots", snapshot_ids=[2]))
        assert parsed(after).current_snapshot_id is None
        assert after["refs"] == {}

    def test_removing_main_keeps_the_log(self) -> None:
        after = apply(with_snapshots(new_table(), 2), update("remove-snapshot-ref", ref_name="main"))
        assert after["current-snapshot-id"] == -1
        assert len(after["snapshot-log"]) == 2

    def test_v3_says_no_snapshot_by_saying_nothing(self) -> None:
        after = apply(with_snapshots(new_table(3), 1), update("remove-snapshot-ref", ref_name="main"))
        assert "current-snapshot-id" not in after

    def test_a_ref_keeps_its_retention(self) -> None:
        kept = {"min-snapshots-to-keep": 3, "max-snapshot-age-ms": 10, "max-ref-age-ms": 20}
        table = apply(with_snapshots(new_table(), 1), point(1, "b", **kept, **{"x-note": "y"}))
        assert table["refs"]["b"] == {"type": "branch", "snapshot-id": 1, **kept, "x-note": "y"}

    def test_a_clock_that_is_a_minute_wrong_is_refused(self) -> None:
        late = snapshot(2, **{"timestamp-ms": LATER + 60_001})
        refused(with_snapshots(new_table(), 1), "Invalid update timestamp", add(late), point(2))
        early = snapshot(2, **{"timestamp-ms": NOW - 60_001})
        refused(with_snapshots(new_table(), 1), "Invalid snapshot timestamp", add(early), point(2))


def statistics(number: int, path: str = "file:///s") -> Document:
    document = {"snapshot-id": number, "statistics-path": path, "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1}
    return update("set-statistics", statistics={**document, "blob-metadata": []})


def partition_statistics(number: int) -> Document:
    document = {"snapshot-id": number, "statistics-path": "file:///p", "file-size-in-bytes": 1}
    return update("set-partition-statistics", partition_statistics=document)


class TestTheRest:
    def test_statistics_of_a_snapshot_replace_those_it_had(self) -> None:
        table = apply(with_snapshots(new_table(), 2), statistics(1), statistics(2), statistics(1, "file:///new"))
        assert [one["statistics-path"] for one in table["statistics"]] == ["file:///s", "file:///new"]
        after = apply(table, update("remove-statistics", snapshot_id=1))
        assert [one["snapshot-id"] for one in after["statistics"]] == [2]

    def test_partition_statistics_come_and_go(self) -> None:
        table = apply(with_snapshots(new_table(), 1), partition_statistics(1))
        assert len(table["partition-statistics"]) == 1
        assert apply(table, update("remove-partition-statistics", snapshot_id=1))["partition-statistics"] == []

    def test_encryption_keys_come_once_and_go(self) -> None:
        key = {"key-id": "k", "encrypted-key-metadata": "AAAA", "encrypted-by-id": "m"}
        table = apply(new_table(3), update("add-encryption-key", encryption_key=key))
        assert table["encryption-keys"] == [key]
        assert apply(table, update("add-encryption-key", encryption_key=key)) is table
        assert apply(table, update("remove-encryption-key", key_id="k"))["encryption-keys"] == []

    @pytest.mark.parametrize(("start", "end"), [(1, 2), (1, 3), (2, 3)])
    def test_an_upgraded_table_is_read_by_pyiceberg_and_can_be_appended_to(self, start: int, end: int) -> None:
        table = apply(with_snapshots(new_table(start), 1), update("upgrade-format-version", format_version=end))
        assert parsed(table).format_version == end
        rows = {"first-row-id": 0, "added-rows": 10} if end == 3 else {}
        after = apply(table, add(snapshot(8, **{"parent-snapshot-id": 1}, **rows)), point(8))
        assert parsed(after).current_snapshot_id == 8

    def test_the_location_moves(self) -> None:
        assert apply(new_table(), update("set-location", location="s3://b/t/"))["location"] == "s3://b/t"

    def test_a_v1_table_without_a_uuid_gets_one_once(self) -> None:
        table = {name: value for name, value in new_table(1).items() if name != "table-uuid"}
        assert apply(table, update("assign-uuid", uuid=UUID))["table-uuid"] == UUID
        refused(new_table(), f"Cannot reassign table uuid: {UUID} != other", update("assign-uuid", uuid="other"))


def refused(table: Document, message: str, *updates: Any) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        apply(table, *updates)
    assert refusal.value.message.startswith(message)


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        (["set-location"], "Cannot parse metadata update from non-object"),
        ([{}], "Cannot parse metadata update. Missing field: action"),
        ([update("paint")], 'Unrecognized metadata update: "paint"'),
        ([update("add-view-version")], "Cannot apply update add-view-version to a table"),
        ([SET_SCHEMA], "Cannot set last added schema: no schema has been added"),
        ([SET_SPEC], "Cannot set last added spec: no spec has been added"),
        ([SET_ORDER], "Cannot set last added sort order: no sort order has been added"),
        ([update("set-current-schema", schema_id=5)], "Cannot set current schema to unknown schema: 5"),
        ([update("set-default-spec", spec_id=5)], "Cannot set default partition spec to unknown spec: 5"),
        ([update("set-default-sort-order", sort_order_id=5)], "Cannot set default sort order to unknown sort order: 5"),
        (
            [update("upgrade-format-version", format_version=4)],
            "Cannot upgrade table to unsupported format version: v4",
        ),
        ([update("upgrade-format-version", format_version=1)], "Cannot downgrade v2 table to v1"),
        ([add(snapshot(1))], "Snapshot already exists for id: 1"),
        ([add({"snapshot-id": 5})], "Cannot parse missing long: timestamp-ms"),
        ([add(snapshot(5, summary={"records": "5"}))], "Cannot parse missing string: operation"),
        ([point(9)], "Cannot set main to unknown snapshot: 9"),
        ([point(1, kind="tag")], "Cannot set main to a tag, it must be a branch"),
        ([point(1, "t", "tag", **{"min-snapshots-to-keep": 1})], "Tags do not support setting minSnapshotsToKeep"),
        ([point(1, "t", "tag", **{"max-snapshot-age-ms": 1})], "Tags do not support setting maxSnapshotAgeMs"),
        ([point(1, "b", **{"max-ref-age-ms": 0})], "Max reference age must be greater than 0"),
        ([point(1, "b", "twig")], "Invalid snapshot ref type: twig"),
        ([update("set-properties", updates={"a": 1})], "Cannot parse to a string value: a: 1"),
        ([update("set-location", location="")], "path must not be null or empty"),
        ([update("remove-snapshots", snapshot_ids=["1"])], "Cannot parse to a long value in snapshot-ids"),
        (
            [add_spec(spec_field(1, "a", **{"field-id": 1000}), spec_field(2, "b", "day"))],
            "Cannot parse spec with missing field IDs: 1 missing of 2 fields.",
        ),
        ([add_spec(spec_field(1, "a", "bucket[0]"))], "Invalid number of buckets: 0 (must be > 0)"),
    ],
)
def test_an_update_that_cannot_be_is_refused_in_one_sentence(updates: list[Any], message: str) -> None:
    refused(with_snapshots(new_table(), 1), message, *updates)


@pytest.mark.parametrize("action", UPDATES)
@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, [None], {"a": None}, True, 2**64 - 1, -0.5])
def test_junk_is_refused_and_never_breaks_anything(action: str, junk: Any) -> None:
    names = (
        "uuid", "format-version", "schema", "schema-id", "schema-ids", "spec", "spec-id", "spec-ids", "sort-order",
        "sort-order-id", "snapshot", "ref-name", "type", "snapshot-id", "snapshot-ids", "statistics",
        "partition-statistics", "location", "updates", "removals", "encryption-key", "key-id",
    )  # fmt: skip
    table = with_snapshots(new_table(), 1)
    for body in ({}, dict.fromkeys(names, junk)):
        try:
            parsed(apply(table, {"action": action, **body}))
        except CatalogError as refusal:
            assert refusal.status == 400
