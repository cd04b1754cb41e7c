"""A writer's whole work: one shard in, one report out, and no file left when it fails."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

import frazil
from frazil import BadInput, DataFile, FrazilError, SchemaMismatch
from frazil.errors import StorageFailed
from frazil.testing import FaultyFileIO
from lakes import Lake, append, ids, rows, write

DAYS = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
BY_DAY = PartitionSpec(PartitionField(2, 1000, DayTransform(), "d"), PartitionField(1, 1001, IdentityTransform(), "i"))


def test_batches_tables_and_readers_are_taken(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    with frazil.SnapshotWriter(snapshot, shard="mixed", io=table.io) as writer:
        assert writer.write(rows(1, 2)) == 2
        assert writer.write(rows(3).to_batches()[0]) == 1
        assert writer.write(rows(4).to_reader()) == 1
    report = writer.report
    assert (report.rows, report.files, report.shard, report.attempt) == (4, 1, "mixed", 0)
    assert not any_lake.again(table).metadata.snapshots
    frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table) == [1, 2, 3, 4]


def test_a_report_says_what_lies_in_storage(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    before = any_lake.files(table)
    report = write(table, snapshot, 1, 2, attempt=3)
    made = {path.rsplit("/", 1)[1] for path in any_lake.files(table) - before}
    (manifest,) = report.manifests
    assert made == {f"part-0-3-{snapshot.commit_uuid}-00000.parquet", manifest.manifest_path.rsplit("/", 1)[1]}
    assert manifest.manifest_path == snapshot.manifest_path("part-0", 3, 0)
    assert manifest.manifest_length == len(table.io.new_input(manifest.manifest_path))
    assert (manifest.added_snapshot_id, manifest.sequence_number, manifest.added_rows_count) == (
        snapshot.snapshot_id,
        None,
        2,
    )


def test_no_rows_make_no_file(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    before = lake.files(table)
    report = frazil.write_shard(snapshot, "empty", [rows()])
    assert (report.manifests, report.rows, report.partitions) == ((), 0, ())
    assert lake.files(table) == before


def test_the_partitions_touched_are_reported_by_their_paths(lake: Lake) -> None:
    table = lake.table(schema=DAYS, spec=BY_DAY)
    snapshot = frazil.begin_snapshot(table)
    days = pa.table({"id": pa.array([1, 1, 2], pa.int64()), "day": [date(2026, 1, 2), date(2026, 1, 2), None]})
    report = frazil.write_shard(snapshot, "s", [days])
    assert report.partitions == ("d=2026-01-02/i=1", "d=null/i=2")
    landed = frazil.publish_snapshot(table, snapshot, [report])
    summary = table.metadata.snapshot_by_id(landed.snapshot_id).summary  # type: ignore[union-attr]
    assert summary["changed-partition-count"] == "2"  # type: ignore[index]


def test_an_error_in_the_block_leaves_no_file_and_no_report(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    before = lake.files(table)
    with pytest.raises(ZeroDivisionError), frazil.SnapshotWriter(snapshot, shard="s") as writer:
        writer.write(rows(*range(1000)))
        raise ZeroDivisionError
    with pytest.raises(FrazilError, match="no report yet"):
        _ = writer.report
    assert lake.files(table) == before


def test_rows_that_do_not_fit_leave_no_file(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    before = lake.files(table)
    with pytest.raises(SchemaMismatch):
        frazil.write_shard(snapshot, "s", [rows(1), pa.table({"id": ["not a number"]})])
    assert lake.files(table) == before


@pytest.mark.parametrize(
    ("operation", "path"), [("create", "data/"), ("close", "data/"), ("create", "-m0"), ("close", "-m0")]
)
def test_a_storage_that_fails_leaves_no_file(lake: Lake, operation: str, path: str) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    before = lake.files(table)
    io = FaultyFileIO(table.io)
    io.fail(operation, path=path)  # type: ignore[arg-type]
    with pytest.raises(StorageFailed):
        frazil.write_shard(snapshot, "s", [rows(1)], io=io)
    assert lake.files(table) == before


@pytest.mark.parametrize("shard", ["", "a/b", "../x", ".hidden", "a b", "ü", "x" * 129, "-a"])
def test_a_name_that_no_file_can_bear_is_refused(lake: Lake, shard: str) -> None:
    snapshot = frazil.begin_snapshot(lake.table())
    with pytest.raises(BadInput, match="cannot name a shard"):
        frazil.SnapshotWriter(snapshot, shard=shard)
    with pytest.raises(BadInput, match="cannot name a shard"):
        frazil.report_files(snapshot, shard, [])


@pytest.mark.parametrize("attempt", [-1, 2**31])
def test_an_attempt_is_a_number_that_travels(lake: Lake, attempt: int) -> None:
    snapshot = frazil.begin_snapshot(lake.table())
    with pytest.raises(BadInput, match="attempt"):
        frazil.write_shard(snapshot, "s", [], attempt=attempt)


def test_ready_made_files_are_reported_in_manifests_of_bounded_size(lake: Lake) -> None:
    table = lake.table(commit__manifest__target_size_bytes="400")
    snapshot = frazil.begin_snapshot(table)
    files = [DataFile(f"{table.location()}/data/{n}.parquet", 1, 10) for n in range(20)]
    report = frazil.report_files(snapshot, "ready", files, io=table.io)
    assert [manifest.added_files_count for manifest in report.manifests] == [7, 7, 6]
    assert len({manifest.manifest_path for manifest in report.manifests}) == 3
    assert (report.files, report.rows, report.size) == (20, 20, 200)


def test_a_file_of_another_partition_spec_is_refused(lake: Lake) -> None:
    table = lake.table()
    with table.update_spec() as spec:
        spec.add_field("id", IdentityTransform(), "i")
    snapshot = frazil.begin_snapshot(table)
    with pytest.raises(BadInput, match=r"spec 0.*spec 1"):
        frazil.report_files(snapshot, "s", [DataFile("/x.parquet", 1, 1)], io=table.io)


def test_files_that_cannot_be_listed_leave_no_manifest(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    before = lake.files(table)
    good, bad = DataFile("/x.parquet", 1, 1), DataFile("/y.parquet", 1, 1, partition=(1,))
    with pytest.raises(BadInput):
        frazil.report_files(snapshot, "s", [good, bad], io=table.io)
    assert lake.files(table) == before


def test_ready_made_files_written_by_others_are_published(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    (task,) = table.scan().plan_files()
    other = lake.table("other")
    snapshot = frazil.begin_snapshot(other)
    size = task.file.file_size_in_bytes
    report = frazil.report_files(snapshot, "s", [DataFile(task.file.file_path, 1, size)], io=other.io)
    frazil.publish_snapshot(other, snapshot, [report])
    assert ids(other) == [1]
