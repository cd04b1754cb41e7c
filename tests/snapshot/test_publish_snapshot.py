"""Reports in, one commit out, on every kind of catalog."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException, ForbiddenError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField

import frazil
from frazil import AlreadyConsumed, BadInput, CommitConflict, CommitRefused, OutcomeUnknown
from frazil.errors import ReservationCancelled, ReservationExpired, StorageFailed
from frazil.snapshot import native_reservation
from frazil.snapshot.native_reservation import is_offered
from frazil.snapshot.reservation import reservations
from frazil.testing import (
    LOST_REPLY,
    LOST_REQUEST,
    CatalogProxy,
    FaultyCatalog,
    MovableClock,
    duplicated,
    lost_behind_status,
    refused_with,
)
from lakes import Lake, append, ids, plain, referenced, rows, through, write
from readers import read_with_duckdb, read_with_pyiceberg

BY_BUCKET = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))


def no_wait(seconds: float) -> None:
    """Stands where `time.sleep` is handed in."""


# ---- what is published


def test_two_appends_through_two_descriptors_keep_all_rows(any_lake: Lake) -> None:
    table = any_lake.table()
    first, second = frazil.begin_snapshot(table), frazil.begin_snapshot(any_lake.again(table))
    reports = write(table, first, 1, 2), write(table, second, 3)
    frazil.publish_snapshot(table, second, [reports[1]])
    frazil.publish_snapshot(any_lake.again(table), first, [reports[0]])
    assert ids(table) == [1, 2, 3]
    assert read_with_duckdb(table).equals(read_with_pyiceberg(table))
    assert any_lake.orphans(table) == set()
    assert not reservations(table.metadata)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_appends_to_every_format_version_are_read_by_others(any_lake: Lake, version: int) -> None:
    table = any_lake.table(version=version, spec=BY_BUCKET)
    for n in range(3):
        append(table, *range(n * 10, n * 10 + 10))
    table.refresh()
    assert ids(table) == list(range(30))
    assert read_with_duckdb(table)["id"].to_pylist() == read_with_pyiceberg(table)["id"].to_pylist()


def test_a_snapshot_carries_over_every_live_manifest(any_lake: Lake) -> None:
    table = any_lake.table()
    listed: list[set[str]] = []
    for n in range(4):
        append(table, n)
        snapshot = any_lake.again(table).current_snapshot()
        assert snapshot is not None
        listed.append({manifest.manifest_path for manifest in snapshot.manifests(table.io)})
    assert [len(each) for each in listed] == [1, 2, 3, 4]
    assert listed[0] < listed[1] < listed[2] < listed[3]


@pytest.mark.parametrize("version", [2, 3])
def test_files_inherit_the_sequence_number_that_publishing_gives(any_lake: Lake, version: int) -> None:
    table = any_lake.table(version=version)
    landed = [append(table, n) for n in range(3)]
    snapshot = any_lake.again(table).current_snapshot()
    assert snapshot is not None
    found = {
        (entry.snapshot_id, manifest.sequence_number, entry.sequence_number)
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }
    assert found == {(each.snapshot_id, each.sequence_number, each.sequence_number) for each in landed}
    assert [each.sequence_number for each in landed] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["embedded", "seaweedfs"])
def test_row_ids_of_v3_follow_one_another(kind: str, request: pytest.FixtureRequest) -> None:
    lake: Lake = request.getfixturevalue("lake" if kind == "embedded" else "seaweedfs_lake")
    table = lake.table(version=3)
    for batch in ([1, 2, 3], [4], [5, 6]):
        append(table, *batch)
    table.refresh()
    assert [(s.first_row_id, s.added_rows) for s in table.metadata.snapshots] == [(0, 3), (3, 1), (4, 2)]
    assert table.metadata.next_row_id == 6


def test_the_summary_is_what_pyicebergs_own_append_says(lake: Lake) -> None:
    ours, theirs = lake.table("ours", spec=BY_BUCKET), lake.table("theirs", spec=BY_BUCKET)
    for batch in (range(20), range(20, 25)):
        append(ours, *batch)
        theirs.append(rows(*batch))
    pairs = zip(ours.metadata.snapshots, lake.again(theirs).metadata.snapshots, strict=True)
    for mine, other in pairs:
        assert mine.summary is not None and other.summary is not None
        assert mine.summary.operation == other.summary.operation
        expected = {key: value for key, value in other.summary.additional_properties.items() if "size" not in key}
        found = mine.summary.additional_properties
        assert {key: found.get(key) for key in expected} == expected
    sizes = sum(task.file.file_size_in_bytes for task in ours.scan().plan_files())
    assert ours.current_snapshot().summary["total-files-size"] == str(sizes)  # type: ignore[union-attr, index]


def test_the_summary_carries_what_the_caller_wants_kept(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table, {"from": "begin", "both": "begin"})
    frazil.publish_snapshot(table, snapshot, [], summary={"both": "publish", "to": "publish"})
    summary = table.current_snapshot().summary.additional_properties  # type: ignore[union-attr]
    assert {key: summary[key] for key in ("from", "both", "to")} == {
        "from": "begin",
        "both": "publish",
        "to": "publish",
    }
    assert summary["frazil.commit-uuid"] == snapshot.commit_uuid
    for bad in ({"operation": "delete"}, {"n": 1}):
        with pytest.raises(BadInput, match="snapshot property"):
            frazil.begin_snapshot(table, bad)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="snapshot property"):
            frazil.publish_snapshot(table, snapshot, [], summary=bad)  # type: ignore[arg-type]


def test_a_branch_is_written_and_main_is_not(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    append(table, 2, ref="audit")
    append(table, 3, ref="audit")
    append(table, 4)
    branch = table.metadata.refs["audit"].snapshot_id
    assert ids(table) == [1, 4]
    assert ids(table, snapshot_id=branch) == [1, 2, 3]
    assert read_with_duckdb(table, snapshot_id=branch)["id"].to_pylist() == [1, 2, 3]


def test_a_branch_keeps_its_retention(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    main = table.metadata.refs["main"].snapshot_id
    table.manage_snapshots().create_branch(main, "audit", max_ref_age_ms=10**10, min_snapshots_to_keep=7).commit()
    append(table, 2, ref="audit")
    ref = table.metadata.refs["audit"]
    assert (ref.max_ref_age_ms, ref.min_snapshots_to_keep) == (10**10, 7)


def test_a_tag_is_refused_and_so_is_a_branch_of_an_empty_table(lake: Lake) -> None:
    table = lake.table()
    with pytest.raises(BadInput, match="without a snapshot"):
        frazil.begin_snapshot(table, ref="audit")
    append(table, 1)
    table.manage_snapshots().create_tag(table.metadata.refs["main"].snapshot_id, "v1").commit()
    with pytest.raises(BadInput, match="tag"):
        frazil.begin_snapshot(table, ref="v1")


def test_rows_written_before_the_schema_and_spec_changed_are_published_after_it(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    other = any_lake.again(table)
    with other.update_schema() as schema:
        schema.add_column("more", LongType())
    with other.update_spec() as spec:
        spec.add_field("text", IdentityTransform(), "text_is")
    frazil.publish_snapshot(table, snapshot, [report])
    append(table, 3)
    assert ids(table) == [1, 2, 3]
    assert read_with_duckdb(table)["more"].to_pylist() == [None] * 3


def test_time_goes_forward_although_this_clock_runs_behind(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    before = table.metadata.last_updated_ms
    snapshot = frazil.begin_snapshot(table, clock_ms=MovableClock(1_000))
    frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 2)], clock_ms=MovableClock(2_000))
    assert table.metadata.snapshots[-1].timestamp_ms >= before


# ---- who may publish


def test_of_two_publishers_of_one_descriptor_exactly_one_lands(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 0)
    for n in range(1, 4):
        snapshot = frazil.begin_snapshot(table)
        report = write(table, snapshot, n)
        barrier = Barrier(2)

        def publish(client: Table, snapshot=snapshot, report=report, barrier=barrier) -> object:
            barrier.wait(30)
            try:
                return frazil.publish_snapshot(client, snapshot, [report])
            except AlreadyConsumed as error:
                return error

        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(publish, [any_lake.again(table), any_lake.again(table)]))
        assert sorted(type(each).__name__ for each in answers) == ["AlreadyConsumed", "Landed"]
        assert ids(table) == list(range(n + 1))
    lists = {path for path in any_lake.orphans(table) if not path.endswith(".metadata.json")}
    assert lists == set()


def test_a_coordinator_that_is_overtaken_at_the_last_moment_leaves_the_winners_files(any_lake: Lake) -> None:
    table = any_lake.table(commit__manifest_merge__enabled="true", commit__manifest__min_count_to_merge="2")
    append(table, 1)
    append(table, 2)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 3)
    rival = any_lake.again(table)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(lambda: frazil.publish_snapshot(_same_lock(rival, table), snapshot, [report]))
        with pytest.raises(AlreadyConsumed):
            frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
    assert ids(table) == [1, 2, 3]
    assert {path for path in any_lake.orphans(table) if path.endswith(".avro")} == set()


def _same_lock(rival: Table, table: Table) -> Table:
    """The embedded catalog's lock is held while a commit is overtaken; a rival inside must share it."""
    rival.catalog = table.catalog
    return rival


def test_publishing_twice_is_already_consumed(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    frazil.publish_snapshot(table, snapshot, [report])
    with pytest.raises(AlreadyConsumed):
        frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table) == [1]
    assert any_lake.orphans(table) == set()


def test_a_cancelled_or_expired_reservation_cannot_be_published(any_lake: Lake) -> None:
    table = any_lake.table()
    clock = MovableClock()
    cancelled, expired = (
        frazil.begin_snapshot(table),
        frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock),
    )
    frazil.cancel(table, cancelled)
    with pytest.raises(ReservationCancelled):
        frazil.publish_snapshot(table, cancelled, [])
    clock.advance(61)
    with pytest.raises(ReservationExpired):
        frazil.publish_snapshot(table, expired, [], clock_ms=clock)
    assert not any_lake.again(table).metadata.snapshots


def test_a_reservation_cancelled_while_a_slow_publisher_writes_its_list_is_seen(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    clock = MovableClock()
    calls = iter(range(100))

    def turning() -> int:
        if next(calls) == 2:  # after the look and the check, for the snapshot's timestamp
            frazil.cancel(_same_lock(lake.again(table), table), snapshot)
            clock.advance(60)
        return clock()

    with pytest.raises(ReservationCancelled):
        frazil.publish_snapshot(table, snapshot, [report], clock_ms=turning)
    assert not lake.again(table).metadata.snapshots


def test_reports_of_another_commit_and_of_one_shard_twice_are_refused(lake: Lake) -> None:
    table = lake.table()
    snapshot, other = frazil.begin_snapshot(table), frazil.begin_snapshot(table)
    mine, foreign, again = write(table, snapshot, 1), write(table, other, 2), write(table, snapshot, 1, attempt=1)
    with pytest.raises(BadInput, match="not for commit"):
        frazil.publish_snapshot(table, snapshot, [mine, foreign])
    with pytest.raises(BadInput, match="reported twice"):
        frazil.publish_snapshot(table, snapshot, [mine, again])
    with pytest.raises(BadInput, match="'rebase' or 'abort'"):
        frazil.publish_snapshot(table, snapshot, [mine], conflict="never")  # type: ignore[arg-type]


def test_a_table_made_anew_under_the_same_name_is_refused(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    lake.catalog.drop_table(table.name())
    anew = lake.table()
    for client in (table, anew):
        with pytest.raises(CommitRefused, match="dropped and created again"):
            frazil.publish_snapshot(client, snapshot, [report])
    assert not lake.again(anew).metadata.snapshots


def test_a_table_that_is_gone_is_refused(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    lake.catalog.drop_table(table.name())
    with pytest.raises(CommitRefused, match="not there any more"):
        frazil.publish_snapshot(table, snapshot, [report])


# ---- conflicts


def test_an_append_that_is_overtaken_writes_its_list_again_and_nothing_else(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    io = through(lake.catalog, table)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    before = len(io.done("create"))
    rival = lake.again(table)
    with FaultyCatalog(lake.catalog) as faulty:
        faulty.overtake(lambda: append(_same_lock(rival, table), 3), times=2)
        landed = frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
    made = [path.rsplit("/", 1)[1] for path in io.done("create")[before:]]
    mine = [name for name in made if snapshot.commit_uuid in name]
    assert landed.attempts == 3 and not landed.reply_lost
    assert len(mine) == 3 and all(name.startswith(f"snap-{snapshot.snapshot_id}-") for name in mine)
    assert ids(table) == [1, 2, 3, 3]
    assert {path for path in lake.orphans(table) if path.endswith((".avro", ".parquet"))} == set()


def test_abort_raises_at_once_when_the_branch_moved(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    append(any_lake.again(table), 2)
    waits: list[float] = []
    with pytest.raises(CommitConflict, match="has moved"):
        frazil.publish_snapshot(table, snapshot, [report], conflict="abort", sleep=waits.append)
    assert waits == [] and ids(table) == [2]
    frazil.publish_snapshot(table, snapshot, [report])  # the reservation is still held, so a rebase is still possible
    assert ids(table) == [1, 2]
    assert {path for path in any_lake.orphans(table) if path.endswith(".avro")} == set()


def test_abort_does_not_mind_another_branch(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    append(any_lake.again(table), 3, ref="other")
    frazil.publish_snapshot(table, snapshot, [report], conflict="abort")
    assert ids(table) == [1, 2]


def test_a_late_move_of_another_branch_is_retried(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    rival = any_lake.again(table)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(lambda: append(_same_lock(rival, table), 3, ref="other"))
        landed = frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
    assert (landed.attempts, ids(table)) == (2, [1, 2])


@pytest.mark.parametrize("retries", [0, 3])
def test_the_tables_retry_budget_ends_a_publish(any_lake: Lake, retries: int) -> None:
    table = any_lake.table(commit__retry__num_retries=str(retries))
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    rival = any_lake.again(table)
    waits: list[float] = []
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(lambda: append(_same_lock(rival, table), 3), times=10)
        with pytest.raises(CommitConflict, match=f"{retries + 1} tries"):
            frazil.publish_snapshot(table, snapshot, [report], sleep=waits.append)
    assert len(waits) == retries
    assert 2 not in ids(table)
    names = {path.rsplit("/", 1)[1] for path in any_lake.files(table)}
    assert not any(name.startswith(f"snap-{snapshot.snapshot_id}-") for name in names)
    frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table).count(2) == 1


def test_a_refusal_is_raised_and_leaves_no_list(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    before = any_lake.files(table)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.fail_before(lambda: ForbiddenError("not for you"))
        with pytest.raises(CommitRefused, match="not for you"):
            frazil.publish_snapshot(table, snapshot, [report])
    assert any_lake.files(table) == before


# ---- lost replies and unknown outcomes


@pytest.fixture(params=[None, "0"], ids=["retries", "no retries"])
def retries(request: pytest.FixtureRequest) -> dict[str, str]:
    """Whether the table allows another try."""
    return {} if request.param is None else {"commit__retry__num_retries": request.param}


def test_a_lost_reply_is_found_to_have_landed(any_lake: Lake, retries: dict[str, str]) -> None:
    table = any_lake.table(**retries)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.lose_reply()
        landed = frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
    assert landed.reply_lost and ids(table) == [1]
    assert len(table.metadata.snapshots) == 1 and any_lake.orphans(table) == set()


@pytest.mark.parametrize("answer", [CommitFailedException, BadRequestError])
def test_a_commit_delivered_twice_and_refused_the_second_time_has_landed(
    any_lake: Lake, retries: dict[str, str], answer: type[Exception]
) -> None:
    table = any_lake.table(**retries)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.lose_reply(lambda: answer("the second delivery is refused"))
        landed = frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
    assert landed.reply_lost and ids(table) == [1]
    assert any_lake.orphans(table) == set()


def test_a_lost_reply_and_then_a_rivals_commit_on_top_has_landed(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    rival = any_lake.again(table)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.lose_reply()
        landed = frazil.publish_snapshot(
            table, snapshot, [report], sleep=lambda _: append(_same_lock(rival, table), 3) and None
        )
    assert landed.reply_lost and ids(table) == [1, 2, 3]
    assert {path for path in any_lake.orphans(table) if path.endswith(".avro")} == set()


def test_a_lost_request_and_then_a_rivals_commit_is_rebased(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 2)
    rival = any_lake.again(table)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.fail_before()
        landed = frazil.publish_snapshot(
            table, snapshot, [report], sleep=lambda _: append(_same_lock(rival, table), 3) and None
        )
    assert not landed.reply_lost and landed.attempts == 2 and ids(table) == [1, 2, 3]
    assert {path for path in any_lake.orphans(table) if path.endswith(".avro")} == set()


def test_a_request_that_arrives_late_lands_once_with_all_its_files(any_lake: Lake) -> None:
    table = any_lake.table(commit__manifest_merge__enabled="true", commit__manifest__min_count_to_merge="2")
    append(table, 1)
    append(table, 2)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 3)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.fail_before()  # no answer: the request is still on its way …

        def arrive() -> None:  # … and arrives just before the second one
            late = faulty.commits[0]
            fresh = any_lake.again(table)
            send = (
                partial(native_reservation.send, fresh)
                if is_offered(fresh)
                else partial(table.catalog.commit_table, fresh)
            )
            send(late.requirements, late.updates)

        faulty.overtake(arrive, nth=2)
        landed = frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
        assert landed.reply_lost
    assert landed.manifest_list == any_lake.again(table).current_snapshot().manifest_list  # type: ignore[union-attr]
    assert ids(table) == [1, 2, 3]
    assert {path for path in any_lake.orphans(table) if path.endswith(".avro")} == set()


def test_an_unknown_outcome_deletes_nothing_and_is_resolved_by_publishing_again(any_lake: Lake) -> None:
    for name, lands in (("landed", True), ("lost", False)):
        table = any_lake.table(name, commit__retry__num_retries="0")
        snapshot = frazil.begin_snapshot(table)
        report = write(table, snapshot, 1)
        with FaultyCatalog(table.catalog) as faulty:
            (faulty.lose_reply if lands else faulty.fail_before)()
            looks = 2 if lands and isinstance(table.catalog, SqlCatalog) else 1  # its own commit looks too
            load, table.catalog.load_table = (
                table.catalog.load_table,
                _unreachable(table.catalog.load_table, after=looks),
            )
            with pytest.raises(OutcomeUnknown) as unknown:
                frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
            table.catalog.load_table = load
        assert unknown.value.landed is None
        missing = referenced(any_lake.again(table)) - {plain(path) for path in any_lake.files(table)}
        assert missing == set()
        if lands:
            with pytest.raises(AlreadyConsumed):
                frazil.publish_snapshot(table, snapshot, [report])
        else:
            frazil.publish_snapshot(table, snapshot, [report])
        assert ids(table) == [1] and len(table.metadata.snapshots) == 1
        frazil.sweep(table, snapshot.commit_uuid, force=True)
        assert any_lake.orphans(table) == set()


def _unreachable(load: Callable[..., Table], after: int) -> Callable[..., Table]:
    """`load_table` that works so often from here on, and then no more."""
    left = iter(range(after))

    def loading(*args: object, **options: object) -> Table:
        if next(left, None) is None:
            raise ConnectionError("injected: the catalog is away")
        return load(*args, **options)

    return loading


def test_an_expiry_after_a_lost_request_does_not_make_the_outcome_known(lake: Lake) -> None:
    table = lake.table()
    clock = MovableClock()
    snapshot = frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock)
    report = write(table, snapshot, 1)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.fail_before()
        with pytest.raises(OutcomeUnknown, match="expired"):
            frazil.publish_snapshot(
                table, snapshot, [report], clock_ms=clock, sleep=lambda _: clock.advance(120) and None
            )
    assert any(f"snap-{snapshot.snapshot_id}-" in path for path in lake.files(table))


def test_a_snapshot_that_landed_unheard_and_was_expired_since_is_not_taken_for_lost(lake: Lake) -> None:
    table = lake.table(commit__manifest_merge__enabled="true", commit__manifest__min_count_to_merge="2")
    append(table, 1)
    append(table, 2)
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 3)

    def go_on(_: float) -> None:
        rival = _same_lock(lake.again(table), table)
        append(rival, 4)
        rival.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()

    with FaultyCatalog(lake.catalog) as faulty:
        faulty.lose_reply()
        with pytest.raises(OutcomeUnknown):
            frazil.publish_snapshot(table, snapshot, [report], sleep=go_on)
    assert ids(table) == [1, 2, 3, 4]  # what was merged for the snapshot is carried on by its successor


def test_a_spare_list_that_cannot_be_removed_does_not_make_a_landed_snapshot_fail(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    io = through(lake.catalog, table)
    io.fail("delete", lambda: PermissionError("injected"), times=100)
    rival = lake.again(table)
    with FaultyCatalog(lake.catalog) as faulty:
        faulty.overtake(lambda: append(_same_lock(rival, table), 2))
        landed = frazil.publish_snapshot(table, snapshot, [report], sleep=no_wait)
    assert len(landed.leftovers) == 1 and plain(landed.leftovers[0]) in lake.orphans(table)
    assert ids(table) == [1, 2]


def test_a_list_that_cannot_be_written_is_not_landed_and_leaves_nothing(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    before = lake.files(table)
    io = through(lake.catalog, table)
    io.fail("close", path="snap-")
    with pytest.raises(StorageFailed):
        frazil.publish_snapshot(table, snapshot, [report])
    assert lake.files(table) == before
    frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table) == [1]


# ---- a proxy before a real REST catalog


@pytest.fixture
def proxied(seaweedfs_lake: Lake, request: pytest.FixtureRequest) -> Iterator[tuple[Table, CatalogProxy]]:
    service = request.getfixturevalue("seaweedfs")
    with CatalogProxy(service.catalog_uri) as proxy:
        made = seaweedfs_lake.table()
        yield service.catalog(proxy.uri).load_table(made.name()), proxy


@pytest.mark.parametrize(
    "fault", [LOST_REPLY, lost_behind_status(502), lost_behind_status(504), lost_behind_status(500), duplicated()]
)
def test_a_reply_swallowed_on_the_way_is_found_to_have_landed(
    proxied: tuple[Table, CatalogProxy], seaweedfs_lake: Lake, fault: object
) -> None:
    table, proxy = proxied
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    proxy.inject(fault, path="/tables/t$")  # type: ignore[arg-type]
    landed = frazil.publish_snapshot(table, snapshot, [report])
    assert landed.reply_lost and ids(table) == [1] and len(table.metadata.snapshots) == 1
    assert seaweedfs_lake.orphans(table) == set()


@pytest.mark.parametrize("fault", [LOST_REQUEST, refused_with(503), refused_with(502)])
def test_a_request_that_never_arrived_is_sent_again(
    proxied: tuple[Table, CatalogProxy], seaweedfs_lake: Lake, fault: object
) -> None:
    table, proxy = proxied
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    proxy.inject(fault, path="/tables/t$")  # type: ignore[arg-type]
    landed = frazil.publish_snapshot(table, snapshot, [report])
    assert landed.attempts == 2 and not landed.reply_lost and ids(table) == [1]
    assert seaweedfs_lake.orphans(table) == set()


@pytest.mark.parametrize("fault", [LOST_REPLY, LOST_REQUEST])
def test_a_catalog_that_is_dead_after_the_request_leaves_the_outcome_unknown(
    proxied: tuple[Table, CatalogProxy], seaweedfs_lake: Lake, fault: object
) -> None:
    table, proxy = proxied
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1)
    before = seaweedfs_lake.files(table)
    proxy.inject(fault, path="/tables/t$")  # type: ignore[arg-type]
    proxy.inject(LOST_REQUEST, method="GET", path="/tables/t", nth=2, times=1000)
    with pytest.raises(OutcomeUnknown, match="Try again"):
        frazil.publish_snapshot(table, snapshot, [report])
    assert before < seaweedfs_lake.files(table)
    proxy.clear()
    if fault is LOST_REPLY:
        with pytest.raises(AlreadyConsumed):
            frazil.publish_snapshot(table, snapshot, [report])
    else:
        frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table) == [1] and len(table.metadata.snapshots) == 1


# ---- many processes

APPENDER = """
import json, sys
from pathlib import Path
import pyarrow as pa
import frazil
from frazil.snapshot.warehouse import EmbeddedCatalog

table = EmbeddedCatalog(Path(sys.argv[1])).load_table("db.t")
number = int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for n in range(20):
    snapshot = frazil.begin_snapshot(table)
    report = frazil.write_shard(snapshot, "part-0", [pa.table({"id": pa.array([number * 20 + n], pa.int64())})])
    frazil.publish_snapshot(table, snapshot, [report])
"""


@pytest.mark.slow
def test_eight_processes_with_twenty_appends_each_all_land(lake: Lake, tmp_path: Path) -> None:
    table = lake.table(schema=Schema(NestedField(1, "id", LongType())))
    command = [sys.executable, "-c", APPENDER, str(tmp_path / "lake")]
    processes = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for n in range(8)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 8
    assert ids(table) == list(range(160))
    assert len(table.metadata.snapshots) == 160
    assert {path for path in lake.orphans(table) if not path.endswith(".metadata.json")} == set()


def test_a_descriptor_sent_to_another_process_is_enough_to_write(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    program = (
        "import sys, frazil, pyarrow as pa\n"
        "snapshot = frazil.DistributedSnapshot.from_json(sys.stdin.read())\n"
        "print(frazil.write_shard(snapshot, 'away', [pa.table({'id': [7], 'text': ['x']})]).to_json())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=snapshot.to_json(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    report = frazil.Report.from_json(done.stdout)
    assert json.loads(done.stdout)["shard"] == "away"
    frazil.publish_snapshot(table, snapshot, [report])
    assert ids(table) == [7]
