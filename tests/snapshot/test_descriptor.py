"""A descriptor travels: it pickles, goes through JSON, and names every file from the commit uuid."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, TruncateTransform
from pyiceberg.types import (
    DecimalType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

import frazil
from frazil import BadInput, DistributedSnapshot
from lakes import Lake

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True, doc="who"),
    NestedField(2, "at", TimestamptzType()),
    NestedField(3, "price", DecimalType(18, 2)),
    NestedField(4, "raw", FixedType(4)),
    NestedField(5, "tags", ListType(6, StringType(), element_required=False)),
    NestedField(7, "map", MapType(8, StringType(), 9, LongType(), value_required=True)),
    NestedField(10, "in", StructType(NestedField(11, "x", StringType()))),
    schema_id=3,
    identifier_field_ids=[1],
)
SPEC = PartitionSpec(
    PartitionField(2, 1000, DayTransform(), "at_day"),
    PartitionField(1, 1001, BucketTransform(16), "id_bucket"),
    PartitionField(11, 1002, TruncateTransform(4), "x_trunc"),
    spec_id=2,
)
SNAPSHOT = DistributedSnapshot(
    table=("db", "t"),
    table_uuid="00000000-0000-4000-8000-000000000000",
    snapshot_id=2**62 + 1,
    parent_snapshot_id=None,
    ref="main",
    commit_uuid="11111111-1111-4111-8111-111111111111",
    sequence_hint=3,
    format_version=2,
    schema=SCHEMA,
    spec=SPEC,
    location="s3://bucket/db/t",
    table_properties={"write.target-file-size-bytes": "1"},
    properties={"k": "ü"},
    expires_at_ms=12345,
    storage={"s3.secret-access-key": "hush"},
)


@pytest.mark.parametrize("snapshot", [SNAPSHOT, SNAPSHOT.with_storage({}), replace(SNAPSHOT, parent_snapshot_id=7)])
def test_json_and_pickle_give_back_an_equal_descriptor(snapshot: DistributedSnapshot) -> None:
    for back in (DistributedSnapshot.from_json(snapshot.to_json()), pickle.loads(pickle.dumps(snapshot))):
        assert back == snapshot
        assert (back.schema.schema_id, back.schema.identifier_field_ids, back.spec.spec_id) == (3, [1], 2)


def test_no_credential_is_printed() -> None:
    assert "hush" not in repr(SNAPSHOT) + str(SNAPSHOT)
    assert "hush" not in SNAPSHOT.with_storage({}).to_json()


def test_names_are_made_of_the_commit_uuid_alone() -> None:
    uuid, metadata = SNAPSHOT.commit_uuid, "s3://bucket/db/t/metadata"
    assert SNAPSHOT.manifest_path("part-0", 2, 1) == f"{metadata}/{uuid}-part-0-2-m1.avro"
    assert SNAPSHOT.manifest_list_path(4) == f"{metadata}/snap-{SNAPSHOT.snapshot_id}-4-{uuid}.avro"
    assert SNAPSHOT.manifest_path("part-0", 2, 1).startswith(SNAPSHOT.file_prefix)
    assert uuid in SNAPSHOT.data_file_name("part-0", 0, 0)


def test_names_of_different_attempts_differ() -> None:
    keys = [("a", 1, 2), ("a", 2, 1), ("a-1", 0, 2), ("a", 0, 12), ("a-0", 1, 2)]
    assert len({SNAPSHOT.manifest_path(*key) for key in keys}) == len(keys)
    assert len({SNAPSHOT.data_file_name(*key) for key in keys}) == len(keys)


def test_a_table_that_keeps_its_metadata_elsewhere_is_followed() -> None:
    elsewhere = replace(SNAPSHOT, table_properties={"write.metadata.path": "s3://other/m"})
    assert elsewhere.manifest_list_path(0).startswith("s3://other/m/snap-")


def test_another_version_is_refused_by_its_number() -> None:
    newer = json.dumps({**json.loads(SNAPSHOT.to_json()), "version": 2})
    with pytest.raises(BadInput, match="version 2"):
        DistributedSnapshot.from_json(newer)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_descriptor_of_a_real_table_says_what_the_table_is(any_lake: Lake, version: int) -> None:
    table = any_lake.table(version=version, write__target_file_size_bytes="1000", private="not for writers")
    snapshot = frazil.begin_snapshot(table, {"k": "v"})
    assert DistributedSnapshot.from_json(snapshot.to_json()) == snapshot
    assert (snapshot.format_version, snapshot.schema, snapshot.spec) == (version, table.schema(), table.spec())
    assert snapshot.table_properties["write.target-file-size-bytes"] == "1000"
    assert "private" not in snapshot.table_properties
    assert (snapshot.name, snapshot.table_uuid) == (".".join(table.name()), str(table.metadata.table_uuid))
