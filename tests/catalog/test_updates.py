"""Updates: from one metadata document to the next, as Iceberg's own table metadata builder does it."""

from __future__ import annotations

import pytest
from catalog.documents import NOW, TAXI, field, new_table, parsed, schema, sort_field, spec_field, with_snapshots

from frazil.catalog.updates import apply_updates


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_that_appends_and_evolves_is_read_by_pyiceberg(version: int) -> None:
    spec = {"spec-id": 0, "fields": [spec_field(2, "day", "day")]}
    order = {"order-id": 1, "fields": [sort_field(1)]}
    table = with_snapshots(new_table(version, **{"partition-spec": spec, "write-order": order}), 5)
    wider = schema(*TAXI["fields"], field(4, "fare", "double"))
    evolved = apply_updates(
        table,
        [
            {"action": "add-schema", "schema": wider},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"fields": [*spec["fields"], spec_field(1, "bucket", "bucket[4]")]}},
            {"action": "set-default-spec", "spec-id": -1},
        ],
        now_ms=NOW + 100,
        previous_location="file:///warehouse/00005.metadata.json",
    )
    read = parsed(evolved)
    assert [one.name for one in read.schema().fields] == ["id", "at", "city", "fare"]
    assert [(one.field_id, one.name) for one in read.spec().fields] == [(1000, "day"), (1001, "bucket")]
    assert read.current_snapshot_id == 5
    assert [one.snapshot_id for one in read.snapshot_log] == [1, 2, 3, 4, 5]
    assert [one.metadata_file for one in read.metadata_log] == ["file:///warehouse/00005.metadata.json"]
