"""What Frazil counts on from SeaweedFS, and where it differs. A version that differs in a new way fails here."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
)
from pyiceberg.transforms import BucketTransform, MonthTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.table import CommitTableResponse, Table

    from .seaweedfs import SeaweedFS

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "text", StringType()))
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "text": ["a", "b", "c"]})


@pytest.fixture
def table(seaweedfs_catalog: RestCatalog, seaweedfs_namespace: str) -> Table:
    return seaweedfs_catalog.create_table(f"{seaweedfs_namespace}.t", schema=SCHEMA)


def publish(table: Table, *, ref: str = "main", snapshot_id: int | None = None) -> CommitTableResponse:
    """Commit a snapshot on the head of `ref` as `table` knows it, the way a snapshot is published."""
    head = table.metadata.refs.get(ref)
    row_range = {"first_row_id": table.metadata.next_row_id or 0, "added_rows": 3} if table.format_version > 2 else {}
    snapshot = Snapshot(
        snapshot_id=snapshot_id or random.getrandbits(62),
        parent_snapshot_id=head.snapshot_id if head else None,
        sequence_number=table.metadata.next_sequence_number(),
        timestamp_ms=int(time.time() * 1000),
        manifest_list=f"{table.location()}/metadata/none.avro",
        summary=Summary(Operation.APPEND),
        schema_id=0,
        **row_range,
    )
    return table.catalog.commit_table(
        table,
        (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId(ref=ref, snapshot_id=head.snapshot_id if head else None),
        ),
        (
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate(ref_name=ref, type="branch", snapshot_id=snapshot.snapshot_id),
        ),
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_partitioned_table_of_every_version_can_be_made(
    seaweedfs_catalog: RestCatalog, seaweedfs_namespace: str, version: int
) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "at", TimestampType()))
    spec = PartitionSpec(
        PartitionField(2, 1000, MonthTransform(), "at_month"), PartitionField(1, 1001, BucketTransform(4), "id_bucket")
    )
    name = f"{seaweedfs_namespace}.t"
    seaweedfs_catalog.create_table(name, schema, partition_spec=spec, properties={"format-version": str(version)})
    made = seaweedfs_catalog.load_table(name)
    assert (made.format_version, made.spec(), made.schema()) == (version, spec, schema)


@pytest.mark.parametrize("version", [1, 2])
def test_rows_that_pyiceberg_appends_are_read_back(
    seaweedfs_catalog: RestCatalog, seaweedfs_namespace: str, version: int
) -> None:
    name = f"{seaweedfs_namespace}.t"
    seaweedfs_catalog.create_table(name, SCHEMA, properties={"format-version": str(version)}).append(ROWS)
    assert seaweedfs_catalog.load_table(name).scan().to_arrow().to_pylist() == ROWS.to_pylist()


def test_creating_a_table_that_exists_gives_the_one_that_exists(table: Table, seaweedfs_catalog: RestCatalog) -> None:
    table.append(ROWS)
    again = seaweedfs_catalog.create_table(table.name(), Schema(NestedField(1, "other", LongType())))
    assert (again.metadata.table_uuid, again.schema()) == (table.metadata.table_uuid, SCHEMA)
    assert again.current_snapshot() == table.current_snapshot()


@pytest.mark.parametrize("name", ["Upper", "_first", "a.b", "a b"])
def test_a_name_with_other_signs_is_a_bad_request(
    seaweedfs_catalog: RestCatalog, seaweedfs_namespace: str, name: str
) -> None:
    with pytest.raises(BadRequestError, match="table name"):
        seaweedfs_catalog.create_table((seaweedfs_namespace, name), SCHEMA)


def test_properties_are_set_and_removed(table: Table, seaweedfs_catalog: RestCatalog) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"frazil.mark": "1"})
    assert seaweedfs_catalog.load_table(table.name()).properties["frazil.mark"] == "1"
    with table.transaction() as transaction:
        transaction.remove_properties("frazil.mark")
    assert "frazil.mark" not in seaweedfs_catalog.load_table(table.name()).properties


def test_a_moved_head_is_a_conflict(table: Table) -> None:
    publish(table)
    with pytest.raises(CommitFailedException, match="created concurrently"):
        publish(table)


def test_another_tables_uuid_is_a_conflict(table: Table) -> None:
    requirement = AssertTableUUID(uuid="00000000-0000-4000-8000-000000000000")
    with pytest.raises(CommitFailedException, match="UUID mismatch"):
        table.catalog.commit_table(table, (requirement,), (SetPropertiesUpdate(updates={"a": "1"}),))


def test_a_branch_moves_and_main_stays(table: Table) -> None:
    publish(table)
    main = table.refresh().metadata.current_snapshot_id
    publish(table, ref="side")
    publish(table.refresh(), ref="side", snapshot_id=7)
    refs = table.refresh().metadata.refs
    assert (refs["main"].snapshot_id, refs["side"].snapshot_id) == (main, 7)


def test_a_sequence_number_that_another_branch_took_is_a_bad_request_not_a_conflict(
    table: Table, seaweedfs_catalog: RestCatalog
) -> None:
    publish(table)
    stale = seaweedfs_catalog.load_table(table.name())
    publish(table.refresh(), ref="side")
    with pytest.raises(BadRequestError, match=r"sequence number 2, must be > than last sequence number 2"):
        publish(stale)


def test_a_snapshot_that_has_landed_is_a_bad_request_when_it_comes_again(table: Table) -> None:
    publish(table, snapshot_id=7)
    with pytest.raises(BadRequestError, match="can't add snapshot with id 7, already exists"):
        publish(table.refresh(), snapshot_id=7)


def test_of_many_writers_at_once_each_is_told_that_it_landed_or_that_it_did_not(
    table: Table, seaweedfs: SeaweedFS
) -> None:
    def write(number: int) -> int | None:
        mine = seaweedfs.catalog().load_table(table.name())
        try:
            publish(mine, snapshot_id=number)
        except (CommitFailedException, BadRequestError):
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        told = {number for number in pool.map(write, range(1, 33)) if number is not None}
    assert told
    assert {snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots} == told


@pytest.mark.parametrize("key", ["loose.parquet", "metadata/a.json", "metadata/deep/a.avro", "other/a.parquet"])
def test_a_table_bucket_refuses_keys_outside_the_layout(table: Table, seaweedfs: SeaweedFS, key: str) -> None:
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        write_file(table, f"{table.location()}/{key}")
    assert f"{table.location()}/{key}" not in seaweedfs.files(table.location())


@pytest.mark.parametrize(
    "key", ["metadata/a-b-0-m0.avro", "metadata/snap-1-0-a.avro", "data/day=2020-01-01/a-0.parquet"]
)
def test_a_table_bucket_takes_the_names_that_frazil_gives(table: Table, seaweedfs: SeaweedFS, key: str) -> None:
    location = f"{table.location()}/{key}"
    write_file(table, location)
    assert location in seaweedfs.files(table.location())
    table.io.delete(location)
    assert location not in seaweedfs.files(table.location())


def test_dropping_a_table_deletes_its_files(table: Table, seaweedfs: SeaweedFS, seaweedfs_catalog: RestCatalog) -> None:
    table.append(ROWS)
    assert seaweedfs.files(table.location())
    seaweedfs_catalog.drop_table(table.name())
    assert seaweedfs.files(table.location()) == set()


def write_file(table: Table, location: str) -> None:
    with table.io.new_output(location).create() as stream:
        stream.write(b"some")
