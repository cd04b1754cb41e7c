"""A sweep removes what a dead job left, and never what anything needs."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyiceberg.table import Table

import frazil
from frazil import AlreadyConsumed, BadInput
from frazil.errors import ReservationCancelled, StorageFailed
from frazil.snapshot.reservation import ended, now_ms, reservations
from frazil.snapshot.storage import same_file
from frazil.testing import FaultyCatalog, MovableClock
from lakes import Lake, append, ids, plain, referenced, rows, write
from readers import local_path

LONG_AGO = timedelta(0)
HOUR = timedelta(hours=1)


def names(swept: frazil.Sweep) -> set[str]:
    return {plain(file.path) for file in swept.files}


def of_commit(lake: Lake, table: Table, commit_uuid: str) -> set[str]:
    return {plain(path) for path in lake.files(table) if commit_uuid in path.rsplit("/", 1)[1]}


def complete(lake: Lake, table: Table) -> bool:
    """Whether everything that the table references is there."""
    return referenced(lake.again(table)) <= {plain(path) for path in lake.files(table)}


def test_a_dead_job_is_found_by_its_expiry_and_swept_after_the_grace_period(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    clock = MovableClock()
    snapshot = frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock)
    write(table, snapshot, 2)
    left = of_commit(any_lake, table, snapshot.commit_uuid)
    assert len(left) == 2
    clock.advance(60 + 3599)
    early = frazil.sweep(table, grace=HOUR, clock_ms=clock)
    assert (names(early), early.held) == (set(), (snapshot.commit_uuid,))
    clock.advance(1)
    swept = frazil.sweep(any_lake.again(table), grace=HOUR, clock_ms=clock)
    assert (names(swept), swept.commit_uuids, swept.held) == (left, (snapshot.commit_uuid,), ())
    assert swept.bytes > 0 and ids(table) == [1]
    assert not reservations(table.metadata) and any_lake.orphans(table) == set()
    with pytest.raises(ReservationCancelled):
        frazil.publish_snapshot(table, snapshot, [])


def test_a_dry_run_shows_the_same_files_and_changes_nothing(any_lake: Lake) -> None:
    table = any_lake.table()
    clock = MovableClock()
    snapshot = frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock)
    write(table, snapshot, 1)
    clock.advance(10_000)
    before = any_lake.files(table)
    shown = frazil.sweep(table, clock_ms=clock, dry_run=True)
    assert any_lake.files(table) == before and len(reservations(any_lake.again(table).metadata)) == 1
    assert names(frazil.sweep(table, clock_ms=clock)) == names(shown) == of_commit_names(before, snapshot.commit_uuid)


def of_commit_names(files: set[str], commit_uuid: str) -> set[str]:
    return {plain(path) for path in files if commit_uuid in path.rsplit("/", 1)[1]}


def test_a_held_reservation_refuses_a_sweep_unless_forced(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    with pytest.raises(BadInput, match="still reserved"):
        frazil.sweep(table, snapshot.commit_uuid)
    assert frazil.sweep(table).held == (snapshot.commit_uuid,)
    assert len(of_commit(any_lake, table, snapshot.commit_uuid)) == 2
    frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert of_commit(any_lake, table, snapshot.commit_uuid) == set()
    table.refresh()
    assert not reservations(table.metadata) and not ended(table.metadata)
    with pytest.raises(ReservationCancelled):
        frazil.publish_snapshot(table, snapshot, [report])


def test_what_was_cancelled_is_swept_a_grace_period_later_and_then_forgotten(any_lake: Lake) -> None:
    table = any_lake.table()
    clock = MovableClock()
    snapshot = frazil.begin_snapshot(table, clock_ms=clock)
    write(table, snapshot, 1)
    frazil.cancel(table, snapshot, clock_ms=clock)
    with pytest.raises(BadInput, match="grace period"):
        frazil.sweep(table, snapshot.commit_uuid, clock_ms=clock)
    assert frazil.sweep(table, clock_ms=clock).held == (snapshot.commit_uuid,)
    clock.advance(3600)
    assert len(frazil.sweep(table, clock_ms=clock).files) == 2
    table.refresh()
    assert not ended(table.metadata) and any_lake.orphans(table) == set()


def test_the_mark_of_a_swept_job_goes_with_a_later_sweep(lake: Lake) -> None:
    table = lake.table()
    clock = MovableClock()
    frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock)
    clock.advance(10_000)
    frazil.sweep(table, clock_ms=clock)
    assert len(ended(lake.again(table).metadata)) == 1
    frazil.sweep(table, clock_ms=clock)
    assert len(ended(lake.again(table).metadata)) == 1
    clock.advance(3600)
    frazil.sweep(table, clock_ms=clock)
    assert not ended(lake.again(table).metadata)


def test_files_of_a_losing_attempt_go_and_those_of_the_landed_one_stay(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    lost = write(table, snapshot, 1, attempt=0)
    won = write(table, snapshot, 1, attempt=1)
    frazil.publish_snapshot(table, snapshot, [won])
    young = frazil.sweep(table, snapshot.commit_uuid)
    assert young.files == ()
    swept = frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert len(swept.files) == 2 and plain(lost.manifests[0].manifest_path) in names(swept)
    assert ids(table) == [1] and complete(any_lake, table) and any_lake.orphans(table) == set()


def test_a_forced_sweep_of_landed_commits_touches_nothing_that_any_snapshot_needs(any_lake: Lake) -> None:
    merging = {"commit__manifest_merge__enabled": "true", "commit__manifest__min_count_to_merge": "2"}
    table = any_lake.table(**merging)
    done = []
    for n in range(3):
        snapshot = frazil.begin_snapshot(table)
        frazil.publish_snapshot(table, snapshot, [write(table, snapshot, n)])
        done.append(snapshot)
    branch = frazil.begin_snapshot(table, ref="audit")
    frazil.publish_snapshot(table, branch, [write(table, branch, 10)])
    overwritten = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, overwritten, [write(table, overwritten, 20)], overwrite=True)
    table.refresh()
    table.append(rows(30))  # another writer, whose manifests list what ours added
    for each in [*done, branch, overwritten]:
        assert frazil.sweep(table, each.commit_uuid, force=True).files == ()
        assert not of_commit(any_lake, table, each.commit_uuid) & any_lake.orphans(table)
    assert complete(any_lake, table)
    assert ids(table) == [20, 30]
    assert ids(table, snapshot_id=table.metadata.refs["audit"].snapshot_id) == [0, 1, 2, 10]


def test_a_file_whose_own_snapshot_is_expired_stays_while_a_later_one_needs_it(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1)])
    append(table, 2)
    table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    swept = frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert [file.path.rsplit("/", 1)[1].split("-")[0] for file in swept.files] == ["snap"]
    assert ids(table) == [1, 2] and complete(lake, table)


def test_a_sweep_that_a_publisher_overtakes_leaves_its_files(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    rival = any_lake.again(table)
    rival.catalog = table.catalog
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(lambda: frazil.publish_snapshot(rival, snapshot, [report]))
        assert frazil.sweep(table, snapshot.commit_uuid, force=True).files == ()
    assert ids(table) == [1] and complete(any_lake, table)


@pytest.mark.parametrize("kind", ["seaweedfs_lake", "postgres_lake"])
def test_a_publisher_that_is_between_look_and_commit_survives_an_ordinary_cancel_and_sweep(
    kind: str, request: pytest.FixtureRequest
) -> None:
    lake: Lake = request.getfixturevalue(kind)
    table = lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)

    def cancel_and_sweep() -> None:
        frazil.cancel(lake.again(table), snapshot)
        assert frazil.sweep(lake.again(table)).held == (snapshot.commit_uuid,)

    landed = False
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(cancel_and_sweep)
        try:
            frazil.publish_snapshot(table, snapshot, [report])
            landed = True
        except ReservationCancelled:
            pass
    assert ids(table) == ([1, 2] if landed else [1])
    assert complete(lake, table)


@pytest.mark.parametrize("kind", ["seaweedfs_lake", "postgres_lake"])
def test_a_renewal_that_a_sweep_overtakes_is_told_and_cannot_be_published(
    kind: str, request: pytest.FixtureRequest
) -> None:
    lake: Lake = request.getfixturevalue(kind)
    table = lake.table()
    clock = MovableClock()
    snapshot = frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock)
    report = write(table, snapshot, 1)
    clock.advance(10_000)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(lambda: frazil.sweep(lake.again(table), clock_ms=clock))
        with pytest.raises(ReservationCancelled):
            frazil.renew(table, snapshot, clock_ms=clock)
    with pytest.raises(ReservationCancelled):
        frazil.publish_snapshot(table, snapshot, [report], clock_ms=clock)
    clock.advance(3600)
    frazil.sweep(table, clock_ms=clock)
    table.refresh()
    assert not reservations(table.metadata) and not ended(table.metadata) and lake.orphans(table) == set()


def test_a_reservation_renewed_just_before_its_end_is_passed_over(any_lake: Lake) -> None:
    table = any_lake.table()
    clock = MovableClock(now_ms() - 10_000_000)  # a catalog that keeps reservations itself asks a clock of its own
    snapshot = frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock)
    report = write(table, snapshot, 1)
    clock.advance(10_000)
    rival = any_lake.again(table)
    rival.catalog = table.catalog

    def publish() -> None:
        renewed = frazil.renew(rival, snapshot, clock_ms=clock)
        frazil.publish_snapshot(rival, renewed, [report], clock_ms=clock)

    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(publish)
        assert frazil.sweep(table, clock_ms=clock).files == ()
    assert ids(table) == [1] and complete(any_lake, table)


def test_without_a_reservation_young_files_stay_and_old_ones_go(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    reports = [write(table, snapshot, n, shard=f"part-{n}") for n in range(2)]
    frazil.publish_snapshot(table, snapshot, [])
    old = local_path(reports[0].manifests[0].manifest_path)
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    assert names(frazil.sweep(table, snapshot.commit_uuid)) == {str(old)}


def test_a_sweep_of_one_commit_leaves_those_of_others(any_lake: Lake) -> None:
    table = any_lake.table()
    first, second = frazil.begin_snapshot(table), frazil.begin_snapshot(table)
    write(table, first, 1)
    report = write(table, second, 2)
    frazil.sweep(table, first.commit_uuid, force=True)
    frazil.publish_snapshot(table, second, [report])
    assert ids(table) == [2] and any_lake.orphans(table) == set()


def test_metadata_of_a_lost_race_goes_and_what_may_still_win_stays(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1)])
    append(table, 2)
    current = local_path(table.metadata_location)
    log = [local_path(entry.metadata_file) for entry in table.metadata.metadata_log]
    of_ours = next(path for path in log if snapshot.commit_uuid in path.read_text())
    version = of_ours.name.split("-")[0]
    lost = of_ours.with_name(f"{version}-00000000-0000-4000-8000-000000000000.metadata.json")
    ahead = of_ours.with_name("99999-00000000-0000-4000-8000-000000000000.metadata.json")
    strange = of_ours.with_name(f"{version}-00000000-0000-4000-8000-000000000001.metadata.json")
    lost.write_bytes(of_ours.read_bytes())
    ahead.write_bytes(of_ours.read_bytes())
    strange.write_text("{}")
    assert names(frazil.sweep(table, snapshot.commit_uuid, force=True)) == {str(lost)}
    assert ahead.exists() and strange.exists() and current.exists() and all(path.exists() for path in log)


def test_a_lost_race_on_a_plain_sql_catalog_leaves_metadata_that_a_sweep_finds(postgres_lake: Lake) -> None:
    table = postgres_lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    catalog = table.catalog
    whole = catalog._write_metadata
    rivals = iter([postgres_lake.again(table)])

    def overtaken(metadata: object, io: object, metadata_path: str) -> None:
        whole(metadata, io, metadata_path)
        for rival in rivals:
            append(rival, 2)

    vars(catalog)["_write_metadata"] = overtaken
    frazil.publish_snapshot(table, snapshot, [report], sleep=lambda _: None)
    del vars(catalog)["_write_metadata"]
    lost = postgres_lake.orphans(table)
    assert len(lost) == 1 and next(iter(lost)).endswith(".metadata.json")
    append(table, 3)
    assert names(frazil.sweep(table, snapshot.commit_uuid, force=True)) == lost
    assert ids(table) == [1, 2, 3] and complete(postgres_lake, table)


def test_data_beside_metadata_is_listed_once(lake: Lake) -> None:
    table = lake.table()
    location = table.location()
    with table.transaction() as transaction:
        transaction.set_properties({"write.data.path": location, "write.metadata.path": f"{location}/metadata"})
    snapshot = frazil.begin_snapshot(table)
    write(table, snapshot, 1)
    swept = frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert len(swept.files) == 2 and lake.orphans(table) == set()


@pytest.mark.parametrize("text", ["", "x", "6f1c2f6e", "6F1C2F6E-0F0C-4B0E-9D0C-1A2B3C4D5E6F", "*"])
def test_what_is_no_commit_uuid_is_refused(lake: Lake, text: str) -> None:
    with pytest.raises(BadInput, match="not a commit uuid"):
        frazil.sweep(lake.table(), text)


def test_a_file_that_cannot_be_deleted_is_named(lake: Lake, tmp_path: Path) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    folder = local_path(report.manifests[0].manifest_path)
    folder.unlink()
    (folder / "inside").mkdir(parents=True)
    from frazil.snapshot.storage import delete_files

    with pytest.raises(StorageFailed, match="cannot be deleted"):
        delete_files(table.io, [str(folder)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///a/b", "/a/b"),
        ("file:/a/b", "/a//b"),
        ("s3a://bucket/k", "s3://bucket//k"),
        ("gs://bucket/k", "gcs://bucket/k"),
    ],
)
def test_two_spellings_of_one_file_are_the_same(one: str, other: str) -> None:
    assert same_file(one) == same_file(other)


def test_different_files_are_not_the_same() -> None:
    assert len({same_file(each) for each in ("s3://a/k", "s3://b/k", "/a/k", "s3://a/k2")}) == 4


def test_an_already_consumed_reservation_protects_its_files(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    frazil.publish_snapshot(any_lake.again(table), snapshot, [report])
    with pytest.raises(AlreadyConsumed):
        frazil.publish_snapshot(table, snapshot, [report])
    frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert ids(table) == [1] and complete(any_lake, table)
