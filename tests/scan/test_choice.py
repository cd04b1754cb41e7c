from __future__ import annotations

import pytest
from pyiceberg.types import StringType

import frazil
from deletes import data_files, delete_positions
from frazil.errors import BadInput
from frazil.scan.choice import SnapshotChoice, choose_snapshots
from lakes import Lake, append, rows
from scans import scanned, scanned_ids


def test_snapshots_are_found_by_id_time_branch_and_tag(lake: Lake) -> None:
    table = lake.table()
    first = append(table, 1).snapshot_id
    second = append(table, 2).snapshot_id
    append(table, 3, ref="side")
    table.manage_snapshots().create_tag(first, "v1").commit()
    times = {entry.snapshot_id: entry.timestamp_ms for entry in table.metadata.snapshot_log}
    assert scanned_ids(table) == scanned_ids(table, branch="main") == [1, 2]
    assert scanned_ids(table, snapshot_id=first) == scanned_ids(table, tag="v1") == [1]
    assert scanned_ids(table, as_of_ms=times[second] - 1) == [1]
    assert scanned_ids(table, as_of_ms=times[second]) == [1, 2]
    assert scanned_ids(table, branch="side") == [1, 2, 3]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"snapshot_id": 5}, "no snapshot 5"),
        ({"as_of_ms": 5}, "no snapshot as old as 5 ms"),
        ({"branch": "nowhere"}, "no branch 'nowhere'; it has main"),
        ({"tag": "v0"}, "no tag 'v0'; it has none"),
        ({"tag": "main"}, "no tag 'main'"),
        ({"start_snapshot_id": 5}, "snapshot 5 of table db.t is no ancestor"),
    ],
)
def test_what_is_not_there_is_named(lake: Lake, choice: dict[str, object], said: str) -> None:
    table = lake.table()
    append(table, 1)
    with pytest.raises(BadInput, match=said):
        scanned(table, **choice)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "choice",
    [
        {"snapshot_id": 1, "tag": "a"},
        {"end_snapshot_id": 1},
        {"start_snapshot_id": 1, "tag": "a"},
        {"start_snapshot_id": 1, "end_snapshot_id": 2, "branch": "a"},
    ],
)
def test_choices_that_exclude_each_other_are_refused(choice: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        SnapshotChoice(**choice)  # type: ignore[arg-type]


def test_an_empty_table_has_no_rows_and_all_columns(lake: Lake) -> None:
    found = scanned(lake.table())
    assert found.num_rows == 0 and found.column_names == ["id", "text"]


def test_an_old_snapshot_has_its_own_columns_and_a_branch_those_of_the_table(lake: Lake) -> None:
    table = lake.table()
    first = append(table, 1).snapshot_id
    with table.update_schema() as change:
        change.rename_column("text", "words")
        change.add_column("more", StringType())
    assert scanned(table, snapshot_id=first).column_names == ["id", "text"]
    assert scanned(table).column_names == ["id", "words", "more"]


def test_an_increment_is_what_was_appended_between_two_snapshots(lake: Lake) -> None:
    table = lake.table()
    heads = [append(table, number).snapshot_id for number in range(5)]
    assert scanned_ids(table, start_snapshot_id=heads[1], end_snapshot_id=heads[3]) == [2, 3]
    assert scanned_ids(table, start_snapshot_id=heads[1]) == [2, 3, 4]
    assert scanned_ids(table, start_snapshot_id=heads[4]) == []
    append(table, 9, ref="side")
    assert scanned_ids(table, start_snapshot_id=heads[3], branch="side") == [4, 9]


def test_an_increment_is_right_where_manifests_were_merged(lake: Lake) -> None:
    table = lake.table(commit__manifest_merge__enabled="true", commit__manifest__min_count_to_merge="2")
    heads = [append(table, number).snapshot_id for number in range(6)]
    assert scanned_ids(table, start_snapshot_id=heads[2], end_snapshot_id=heads[4]) == [3, 4]
    assert scanned_ids(table) == list(range(6))


def test_an_increment_over_removed_rows_is_refused_and_names_the_snapshot(lake: Lake) -> None:
    table = lake.table()
    first = append(table, 1, 2).snapshot_id
    removed = delete_positions(table, {data_files(table)[0]: [0]}).snapshot_id
    append(table, 3)
    with pytest.raises(BadInput, match=f"snapshot {removed} removed rows"):
        scanned(table, start_snapshot_id=first)
    assert scanned_ids(table, start_snapshot_id=removed) == [3]


def test_an_increment_after_an_overwrite_is_refused(lake: Lake) -> None:
    table = lake.table()
    first = append(table, 1).snapshot_id
    snapshot = frazil.begin_snapshot(table)
    report = frazil.write_shard(snapshot, "a", [rows(2)], io=table.io)
    frazil.publish_snapshot(table, snapshot, [report], overwrite=True)
    with pytest.raises(BadInput, match="its operation is overwrite"):
        scanned(table, start_snapshot_id=first)


def test_an_increment_may_begin_with_a_snapshot_that_was_expired(lake: Lake) -> None:
    table = lake.table()
    heads = [append(table, number).snapshot_id for number in range(4)]
    left = [snapshot for snapshot in table.metadata.snapshots if snapshot.snapshot_id in heads[2:]]
    expired = table.metadata.model_copy(update={"snapshots": left})
    found = choose_snapshots(expired, SnapshotChoice(start_snapshot_id=heads[1]), "db.t").appended
    assert [snapshot.snapshot_id for snapshot in found or ()] == heads[2:]
    with pytest.raises(BadInput, match="expired"):
        choose_snapshots(expired, SnapshotChoice(start_snapshot_id=heads[0]), "db.t")
