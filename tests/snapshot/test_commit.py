"""What is asked of the catalog: one snapshot, one ref, the reservation's end, under two requirements."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetSnapshotRefUpdate,
)

import frazil
from frazil import BadInput
from frazil.snapshot.commit import assemble, gather, live_manifests
from frazil.testing import FaultyCatalog, FaultyFileIO
from lakes import Lake, append, write


def test_one_update_is_asked_for_under_the_ordinary_requirements(any_lake: Lake) -> None:
    if any_lake.kind == "frazil":
        pytest.skip("it is told of reservations in words of its own: tests/catalog/test_native_reservations.py")
    table = any_lake.table()
    append(table, 1)
    parent = table.metadata.current_snapshot_id
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    with FaultyCatalog(table.catalog) as faulty:
        frazil.publish_snapshot(table, snapshot, [report])
        (commit,) = faulty.commits
    assert [type(each) for each in commit.requirements] == [AssertTableUUID, AssertRefSnapshotId]
    assert commit.requirements[1].ref == "main"  # type: ignore[attr-defined]
    assert commit.requirements[1].snapshot_id == parent  # type: ignore[attr-defined]
    assert [type(each) for each in commit.updates] == [AddSnapshotUpdate, SetSnapshotRefUpdate, RemovePropertiesUpdate]
    assert commit.updates[2].removals == [snapshot.reservation_key]  # type: ignore[union-attr]


def test_assembling_asks_the_catalog_for_nothing_and_writes_the_list_alone(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    contribution = gather(snapshot, [write(table, snapshot, 2)])
    io = FaultyFileIO(table.io)
    with FaultyCatalog(lake.catalog) as faulty:
        carried = live_manifests(io, table.metadata, snapshot.parent_snapshot_id)
        plan = assemble(
            io,
            table.metadata,
            snapshot,
            contribution,
            [*contribution.manifests, *carried],
            None,
            attempt=5,
            now_ms=1,
            properties={},
        )
        assert faulty.commits == ()
    assert io.done("create") == (snapshot.manifest_list_path(5),) == (plan.snapshot.manifest_list,)
    assert plan.asserted_head == plan.snapshot.parent_snapshot_id == snapshot.parent_snapshot_id


def test_reports_are_gathered_whatever_their_order(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    reports = [write(table, snapshot, n, n + 10, shard=f"part-{n}") for n in range(3)]
    for each in (reports, reports[::-1]):
        gathered = gather(snapshot, each)
        assert gathered.counts["added-records"] == 6 and gathered.counts["added-data-files"] == 3
        assert {manifest.manifest_path for manifest in gathered.manifests} == {
            report.manifests[0].manifest_path for report in reports
        }
        assert not gathered.adds_deletes


def test_an_empty_report_adds_nothing(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    gathered = gather(snapshot, [frazil.write_shard(snapshot, "empty", [])])
    assert (gathered.manifests, gathered.counts) == ((), {})


def test_a_snapshot_that_is_not_there_has_no_manifests_to_carry(lake: Lake) -> None:
    table = lake.table()
    assert live_manifests(table.io, table.metadata, None) == []
    with pytest.raises(BadInput, match="not in the table"):
        live_manifests(table.io, table.metadata, 12)


def test_a_foreign_manifest_in_a_report_of_this_commit_is_refused(lake: Lake) -> None:
    table = lake.table()
    snapshot, other = frazil.begin_snapshot(table), frazil.begin_snapshot(table)
    foreign = write(table, other, 1)
    disguised = replace(foreign, commit_uuid=snapshot.commit_uuid)
    before = lake.files(table)
    with pytest.raises(BadInput, match="was written by snapshot"):
        frazil.publish_snapshot(table, snapshot, [disguised])
    assert lake.files(table) == before
