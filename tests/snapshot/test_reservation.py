"""Reservations: taken, prolonged, given back, and proof against each other, on every kind of catalog."""

from __future__ import annotations

import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.table import Table

import frazil
from frazil import AlreadyConsumed, BadInput, CommitConflict, CommitRefused, NotLanded, OutcomeUnknown
from frazil.errors import ReservationCancelled
from frazil.snapshot.reservation import Ended, Reservation, ended, new_snapshot_id, now_ms, reservations
from frazil.snapshot.table import CatalogTable
from frazil.testing import FaultyCatalog, MovableClock
from lakes import Lake, append, ids, write

SECRET = "a-secret-nobody-may-see"


def held(table: Table) -> dict[int, Reservation]:
    return {each.snapshot_id: each for each in reservations(CatalogTable(table).refresh())}


def test_a_reservation_stands_in_the_table_and_shows_nothing_to_readers(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    snapshot = frazil.begin_snapshot(table, {"k": "v"})
    assert held(any_lake.again(table)) == {snapshot.snapshot_id: Reservation.of(snapshot)}
    assert snapshot.parent_snapshot_id == table.metadata.current_snapshot_id
    assert ids(table) == [1]


def test_many_begin_at_once_and_each_gets_one_of_its_own(any_lake: Lake) -> None:
    table = any_lake.table()
    with ThreadPoolExecutor(4) as pool:
        snapshots = list(pool.map(lambda _: frazil.begin_snapshot(any_lake.again(table)), range(8)))
    assert held(table).keys() == {each.snapshot_id for each in snapshots}
    assert len({each.commit_uuid for each in snapshots}) == 8


def test_cancelling_ends_a_reservation_once(any_lake: Lake) -> None:
    table = any_lake.table()
    clock = MovableClock()
    snapshot = frazil.begin_snapshot(table)
    assert frazil.cancel(table, snapshot, clock_ms=clock) is True
    assert held(table) == {}
    assert ended(table.metadata) == [Ended(snapshot.snapshot_id, snapshot.commit_uuid, clock())]
    assert frazil.cancel(any_lake.again(table), snapshot) is False


def test_a_published_reservation_cannot_be_cancelled_or_renewed(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1)])
    for act in (frazil.cancel, frazil.renew):
        with pytest.raises(AlreadyConsumed):
            act(any_lake.again(table), snapshot)
    assert held(table) == {} and not ended(table.metadata)


def test_renewing_moves_the_end_and_a_renewed_one_can_be_published(any_lake: Lake) -> None:
    table = any_lake.table()
    clock = MovableClock(now_ms() - 90_000)  # a catalog that keeps reservations itself asks a clock of its own
    snapshot = frazil.begin_snapshot(table, ttl=timedelta(minutes=1), clock_ms=clock)
    clock.advance(90)
    renewed = frazil.renew(table, snapshot, timedelta(minutes=2), clock_ms=clock)
    assert renewed.expires_at_ms == clock() + 120_000 == held(table)[snapshot.snapshot_id].expires_at_ms
    frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1)], clock_ms=clock)  # the old descriptor does too
    assert ids(table) == [1]


def test_a_cancelled_one_cannot_be_renewed(any_lake: Lake) -> None:
    table = any_lake.table()
    snapshot = frazil.begin_snapshot(table)
    frazil.cancel(table, snapshot)
    with pytest.raises(ReservationCancelled):
        frazil.renew(table, snapshot)


@pytest.mark.parametrize("kind", ["seaweedfs_lake", "postgres_lake"])
def test_a_renewal_that_a_cancel_overtakes_does_not_bring_the_right_back(
    kind: str, request: pytest.FixtureRequest
) -> None:
    lake: Lake = request.getfixturevalue(kind)
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(lambda: frazil.cancel(lake.again(table), snapshot))
        with pytest.raises(ReservationCancelled):
            frazil.renew(table, snapshot)
    with pytest.raises(ReservationCancelled):
        frazil.publish_snapshot(table, snapshot, [])


def test_a_lost_reply_of_begin_renew_and_cancel_does_the_deed_once(any_lake: Lake) -> None:
    table = any_lake.table()
    with FaultyCatalog(table.catalog) as faulty:
        faulty.lose_reply()
        snapshot = frazil.begin_snapshot(table)
        assert held(table).keys() == {snapshot.snapshot_id}
        faulty.lose_reply()
        renewed = frazil.renew(table, snapshot, timedelta(days=2))
        assert held(table)[snapshot.snapshot_id].expires_at_ms == renewed.expires_at_ms
        faulty.lose_reply()
        assert frazil.cancel(table, snapshot) is True
    assert held(table) == {}


def test_a_lost_request_of_begin_is_sent_again(any_lake: Lake) -> None:
    table = any_lake.table()
    with FaultyCatalog(table.catalog) as faulty:
        faulty.fail_before()
        snapshot = frazil.begin_snapshot(table)
    assert held(table).keys() == {snapshot.snapshot_id}


def test_begin_follows_a_branch_that_moves_under_it(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    rival = any_lake.again(table)
    rival.catalog = table.catalog
    with FaultyCatalog(table.catalog) as faulty:
        faulty.overtake(lambda: append(rival, 2))
        snapshot = frazil.begin_snapshot(table)
    assert snapshot.parent_snapshot_id == any_lake.again(table).metadata.current_snapshot_id


def test_begin_says_what_stopped_it(lake: Lake) -> None:
    table = lake.table(commit__retry__num_retries="1", commit__retry__max_wait_ms="1")
    snapshot = frazil.begin_snapshot(table)
    with FaultyCatalog(lake.catalog) as faulty:
        faulty.fail_before(lambda: ForbiddenError("no"))
        with pytest.raises(CommitRefused, match="no"):
            frazil.begin_snapshot(table)
        faulty.fail_before(times=2)
        with pytest.raises(OutcomeUnknown, match="never gave a clear answer"):
            frazil.begin_snapshot(table)
        rival = lake.again(table)
        rival.catalog = lake.catalog
        faulty.overtake(lambda: append(rival, 1), nth=1, times=2)
        with pytest.raises(CommitConflict, match="other writers were first"):
            frazil.begin_snapshot(table)
    lake.catalog.drop_table(table.name())
    with pytest.raises(NotLanded, match="not there any more"):
        frazil.renew(table, snapshot)


def test_a_catalog_that_cannot_be_reached_is_an_error_of_ours(tmp_path: object, lake: Lake) -> None:
    table = lake.table()
    vars(lake.catalog)["load_table"] = _away
    with pytest.raises(NotLanded, match="cannot be reached"):
        frazil.begin_snapshot(table)
    del vars(lake.catalog)["load_table"]


def _away(*_: object) -> Table:
    raise ConnectionError("injected")


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1)])
def test_a_reservation_must_last(lake: Lake, ttl: timedelta) -> None:
    with pytest.raises(BadInput, match="must last longer than nothing"):
        frazil.begin_snapshot(lake.table(), ttl=ttl)


@pytest.mark.parametrize("ref", ["", "two words", "/x"])
def test_a_ref_must_be_a_name(lake: Lake, ref: str) -> None:
    table = lake.table()
    append(table, 1)
    with pytest.raises(BadInput, match="not a branch name"):
        frazil.begin_snapshot(table, ref=ref)


def test_a_new_id_is_positive_and_nobody_elses(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    kept, gone = frazil.begin_snapshot(table), frazil.begin_snapshot(table)
    frazil.cancel(table, gone)
    taken = [table.metadata.snapshots[0].snapshot_id, kept.snapshot_id, gone.snapshot_id, 0]
    drawn = iter([uuid.UUID(int=each) for each in [*taken, 99]])
    table.refresh()
    assert new_snapshot_id(table.metadata, lambda: next(drawn)) == 99


@pytest.mark.parametrize("prefix", ["frazil.reservation.", "frazil.ended."])
@pytest.mark.parametrize(("key", "value"), [("1", "{}"), ("1", "no json"), ("x", "{}"), ("1", "[]")])
def test_a_property_that_is_no_reservation_is_named(lake: Lake, prefix: str, key: str, value: str) -> None:
    table = lake.table()
    with table.transaction() as transaction:
        transaction.set_properties({prefix + key: value})
    with pytest.raises(BadInput, match=f"{prefix}{key} is"):
        frazil.begin_snapshot(table)


# ---- credentials


@pytest.fixture
def secretive(lake: Lake) -> Table:
    table = lake.table()
    catalog = SqlCatalog("frazil", **{**lake.catalog.properties, "s3.secret-access-key": SECRET})
    return catalog.load_table(table.name())


def test_credentials_travel_only_when_asked_for(secretive: Table) -> None:
    silent = frazil.begin_snapshot(secretive)
    assert SECRET not in silent.to_json() and SECRET.encode() not in pickle.dumps(silent)
    telling = frazil.begin_snapshot(secretive, credentials=True)
    assert telling.storage["s3.secret-access-key"] == SECRET
    assert SECRET in telling.to_json()


def test_credentials_reach_no_reservation_report_or_representation(secretive: Table) -> None:
    snapshot = frazil.begin_snapshot(secretive, credentials=True)
    report = frazil.write_shard(snapshot, "s", [])
    shown = [repr(snapshot), str(snapshot), repr(report), report.to_json(), repr(report.to_protobuf())]
    assert not any(SECRET in each for each in shown)
    frazil.publish_snapshot(secretive, snapshot, [write(secretive, snapshot, 1)])
    secretive.refresh()
    assert SECRET not in secretive.metadata.model_dump_json()
