"""An overwrite takes the branch's rows out, and deletes are seen by other readers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform

import frazil
from frazil import BadInput, CommitConflict, DataFile, FileContent
from frazil.errors import StorageFailed
from frazil.snapshot.delete_file import equality_delete, write_position_deletes
from frazil.snapshot.manifest import read_manifest_entries
from lakes import Lake, append, ids, through, write
from readers import read_with_duckdb, read_with_pyiceberg


def overwrite(table: Table, *new: int) -> frazil.Landed:
    snapshot = frazil.begin_snapshot(table)
    return frazil.publish_snapshot(table, snapshot, [write(table, snapshot, *new)], overwrite=True)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_overwrite_replaces_every_row(any_lake: Lake, version: int) -> None:
    table = any_lake.table(version=version)
    append(table, 1, 2)
    append(table, 3)
    overwrite(table, 4)
    assert ids(table) == [4]
    assert read_with_duckdb(table).equals(read_with_pyiceberg(table))
    append(table, 5)
    assert ids(table) == [4, 5] and any_lake.orphans(table) == set()


def test_an_overwrite_lists_what_it_removed_with_its_own_numbers(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1, 2)
    append(table, 3)
    landed = overwrite(table, 4)
    snapshot = any_lake.again(table).current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    entries = [
        (entry.status, entry.snapshot_id, entry.sequence_number)
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    ]
    deleted, added = ManifestEntryStatus.DELETED, ManifestEntryStatus.ADDED
    own = landed.snapshot_id
    assert sorted(entries) == sorted([(deleted, own, 1), (deleted, own, 2), (added, own, 3)])
    summary = snapshot.summary
    assert summary.operation.value == "overwrite"
    found = {key: summary[key] for key in ("deleted-data-files", "deleted-records", "added-records", "total-records")}
    assert found == {"deleted-data-files": "2", "deleted-records": "3", "added-records": "1", "total-records": "1"}
    assert (summary["total-data-files"], summary["total-files-size"]) == ("1", summary["added-files-size"])


def test_an_overwrite_conflicts_when_the_branch_has_moved(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    append(any_lake.again(table), 3)
    with pytest.raises(CommitConflict, match="rows that it has not seen"):
        frazil.publish_snapshot(table, snapshot, [report], overwrite=True)
    assert ids(table) == [1, 3]
    assert not [path for path in any_lake.files(table) if "-overwrite-" in path]


def test_an_overwrite_of_an_empty_table_and_by_no_rows(lake: Lake) -> None:
    table = lake.table()
    overwrite(table, 1)
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [], overwrite=True)
    assert ids(table) == [] and read_with_duckdb(table).num_rows == 0


def test_an_overwrite_takes_out_files_of_an_earlier_partition_spec(lake: Lake) -> None:
    table = lake.table(spec=PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b")))
    append(table, *range(8))
    with table.update_spec() as spec:
        spec.remove_field("b")
    append(table, 9)
    overwrite(table, 10)
    assert ids(table) == [10] and read_with_duckdb(table)["id"].to_pylist() == [10]


def test_an_overwrite_that_cannot_be_written_leaves_nothing(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    append(table, 2)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 3)
    before = lake.files(table)
    io = through(lake.catalog, table)
    io.fail("close", path="-overwrite-.*-m1")
    with pytest.raises(StorageFailed):
        frazil.publish_snapshot(table, snapshot, [report], overwrite=True)
    assert lake.files(table) == before


# ---- delete files, made elsewhere and published through `report_files`


def only_file(table: Table) -> str:
    (task,) = table.scan().plan_files()
    return task.file.file_path


def publish_files(table: Table, *files: DataFile) -> None:
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "deletes", files, io=table.io)])


def test_position_deletes_are_honoured_by_readers(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1, 2, 3)
    path = f"{table.location()}/data/deletes.parquet"
    publish_files(table, write_position_deletes(table.io, path, {only_file(table): [1]}))
    assert ids(table) == [1, 3]
    assert read_with_duckdb(table)["id"].to_pylist() == [1, 3]
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    assert summary["added-position-deletes"] == summary["total-position-deletes"] == "1"  # type: ignore[index]
    assert summary.operation.value == "delete" and summary["total-records"] == "3"  # type: ignore[union-attr, index]


def test_equality_deletes_are_honoured_by_duckdb(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2, 3)
    elsewhere = frazil.begin_snapshot(table)
    made = write(table, elsewhere, 2)
    written = next(iter(read_manifest_entries(table.io, made.manifests[0]))).data_file
    publish_files(table, equality_delete(written, [1]))
    table.refresh()
    assert read_with_duckdb(table)["id"].to_pylist() == [1, 3]
    append(table, 2)
    table.refresh()
    assert read_with_duckdb(table)["id"].to_pylist() == [1, 2, 3]  # a later row is not deleted
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    assert summary["total-equality-deletes"] == "1"  # type: ignore[index]


def test_deletes_with_data_are_one_snapshot(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2, 3)
    snapshot = frazil.begin_snapshot(table)
    path = f"{table.location()}/data/deletes.parquet"
    deletes = write_position_deletes(table.io, path, {only_file(table): [0]})
    reports = [write(table, snapshot, 4), frazil.report_files(snapshot, "deletes", [deletes], io=table.io)]
    frazil.publish_snapshot(table, snapshot, reports)
    assert ids(table) == [2, 3, 4]
    assert table.current_snapshot().summary.operation.value == "overwrite"  # type: ignore[union-attr]


def test_deletes_conflict_when_the_branch_has_moved(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1, 2)
    snapshot = frazil.begin_snapshot(table)
    path = f"{table.location()}/data/deletes.parquet"
    deletes = write_position_deletes(table.io, path, {only_file(table): [0]})
    report = frazil.report_files(snapshot, "deletes", [deletes], io=table.io)
    append(any_lake.again(table), 3)
    with pytest.raises(CommitConflict, match="deletes must not meet rows"):
        frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table) == [1, 2, 3]


def test_an_overwrite_takes_delete_files_out_too(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2)
    path = f"{table.location()}/data/deletes.parquet"
    publish_files(table, write_position_deletes(table.io, path, {only_file(table): [0]}))
    overwrite(table, 5)
    assert ids(table) == [5] and read_with_duckdb(table)["id"].to_pylist() == [5]
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    assert summary["total-delete-files"] == summary["total-position-deletes"] == "0"  # type: ignore[index]


def test_v1_refuses_delete_files_and_leaves_nothing(lake: Lake) -> None:
    table = lake.table(version=1)
    append(table, 1, 2)
    snapshot = frazil.begin_snapshot(table)
    path = f"{table.location()}/data/deletes.parquet"
    deletes = write_position_deletes(table.io, path, {only_file(table): [0]})
    before = lake.files(table)
    data = DataFile(f"{table.location()}/data/x.parquet", 1, 1)
    with pytest.raises(BadInput, match="v1 table has no delete files"):
        frazil.report_files(snapshot, "deletes", [data, deletes], io=table.io)
    later = frazil.report_files(replace(snapshot, format_version=2), "deletes", [deletes], io=table.io)
    with pytest.raises(BadInput, match="v1 table has none"):
        frazil.publish_snapshot(table, snapshot, [later])
    assert lake.files(table) - before == {later.manifests[0].manifest_path.removeprefix("file://")}
    assert ids(table) == [1, 2]


def test_v3_refuses_position_deletes_in_parquet(lake: Lake) -> None:
    table = lake.table(version=3)
    snapshot = frazil.begin_snapshot(table)
    file = DataFile("/d.parquet", 1, 1, content=FileContent.POSITION_DELETES)
    with pytest.raises(BadInput, match="deletion vectors"):
        frazil.report_files(snapshot, "deletes", [file], io=table.io)
