"""Merging manifests: fewer of them, the same entries, and nothing merged twice without need."""

from __future__ import annotations

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform

import frazil
from frazil import BadInput
from frazil.errors import StorageFailed
from frazil.testing import FaultyCatalog
from lakes import Lake, append, ids, through, write
from readers import read_with_duckdb, read_with_pyiceberg

MERGING = {"commit__manifest_merge__enabled": "true", "commit__manifest__min_count_to_merge": "3"}


def manifests(table: Table) -> list[str]:
    table.refresh()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return [manifest.manifest_path for manifest in snapshot.manifests(table.io)]


def test_nothing_is_merged_unless_the_table_asks_for_it(lake: Lake) -> None:
    table = lake.table(commit__manifest__min_count_to_merge="2")
    for n in range(4):
        append(table, n)
    assert len(manifests(table)) == 4


@pytest.mark.parametrize("version", [1, 2, 3])
def test_merged_manifests_hold_the_same_rows(any_lake: Lake, version: int) -> None:
    table = any_lake.table(version=version, **MERGING)
    counts = []
    for n in range(5):
        append(table, n)
        counts.append(len(manifests(table)))
    assert counts == [1, 2, 2, 2, 2]
    assert ids(table) == list(range(5))
    assert read_with_duckdb(table).equals(read_with_pyiceberg(table))
    assert any_lake.orphans(table) == set()


def test_merged_entries_keep_their_snapshots_and_numbers(lake: Lake) -> None:
    table = lake.table(**MERGING)
    landed = [append(table, n) for n in range(5)]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = {
        (entry.snapshot_id, entry.sequence_number)
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }
    assert found == {(each.snapshot_id, each.sequence_number) for each in landed}


def test_merged_files_of_v3_keep_their_row_ids(lake: Lake) -> None:
    table = lake.table(version=3, **MERGING)
    for n in range(5):
        append(table, n, n + 10)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    from frazil.snapshot.manifest import read_manifest_entries
    from frazil.snapshot.manifest_list import read_manifest_list

    firsts = [
        entry.data_file.first_row_id
        for manifest in read_manifest_list(table.io, snapshot.manifest_list)
        for entry in read_manifest_entries(table.io, manifest)
    ]
    assert sorted(firsts) == sorted(set(firsts)) and None not in firsts  # type: ignore[type-var]
    ranges = sorted((s.first_row_id, s.added_rows) for s in table.metadata.snapshots)
    ends = [first + added for first, added in ranges]  # type: ignore[operator]
    assert [first for first, _ in ranges] == [0, *ends[:-1]] and table.metadata.next_row_id == ends[-1]


def test_manifests_of_two_specs_are_not_mixed(lake: Lake) -> None:
    table = lake.table(spec=PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b")), **MERGING)
    append(table, 1)
    append(table, 2)
    with table.update_spec() as spec:
        spec.remove_field("b")
    for n in (3, 4):
        append(table, n)
    table.refresh()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert {manifest.partition_spec_id for manifest in snapshot.manifests(table.io)} == {0, 1}
    assert ids(table) == [1, 2, 3, 4]


def test_a_full_bin_is_left_alone(lake: Lake) -> None:
    table = lake.table(commit__manifest__target_size_bytes="1", **MERGING)
    for n in range(5):
        append(table, n)
    assert len(manifests(table)) == 5


def test_a_conflict_merges_again_only_where_the_rivals_manifest_comes_in(lake: Lake) -> None:
    table = lake.table(**MERGING)
    append(table, 1)
    append(table, 2)
    io = through(lake.catalog, table)
    snapshot = frazil.begin_snapshot(table)
    reports = [write(table, snapshot, 10 + n, shard=f"part-{n}") for n in range(3)]
    rival = lake.again(table)
    rival.catalog = table.catalog
    with FaultyCatalog(lake.catalog) as faulty:
        faulty.overtake(lambda: append(rival, 3))
        frazil.publish_snapshot(table, snapshot, reports, sleep=lambda _: None)
    merged = [path for path in io.done("create") if f"{snapshot.commit_uuid}-merge-" in path]
    assert len(merged) == 3  # what was added once, what was carried twice
    assert ids(table) == [1, 2, 3, 10, 11, 12] and lake.orphans(table) == set()


def test_a_failed_publish_leaves_no_merged_manifest(lake: Lake) -> None:
    table = lake.table(**MERGING)
    append(table, 1)
    append(table, 2)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 3)
    before = lake.files(table)
    io = through(lake.catalog, table)
    io.fail("close", path="-merge-")
    with pytest.raises(StorageFailed):
        frazil.publish_snapshot(table, snapshot, [report])
    io.fail("close", path="/snap-")
    with pytest.raises(StorageFailed):
        frazil.publish_snapshot(table, snapshot, [report])
    assert lake.files(table) == before
    frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("value", ["0", "-1", "many", ""])
def test_a_property_that_is_no_count_is_named(lake: Lake, value: str) -> None:
    table = lake.table(commit__manifest__min_count_to_merge=value)
    snapshot = frazil.begin_snapshot(table)
    with pytest.raises(BadInput, match="min-count-to-merge"):
        frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1)])
