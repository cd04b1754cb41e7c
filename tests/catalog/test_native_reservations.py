"""The protocol on Frazil's own catalog: the reservation is kept and consumed by the catalog itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

import frazil
from frazil import AlreadyConsumed, DistributedSnapshot
from frazil.errors import CommitConflict, CommitRefused, ReservationCancelled, ReservationExpired
from frazil.snapshot.reservation import Reservation, now_ms
from frazil.snapshot.table import CatalogTable
from frazil.testing import FaultyCatalog
from lakes import SCHEMA, ids, write
from services.frazil_catalog import FrazilCatalog


@pytest.fixture
def client(frazil_catalog: FrazilCatalog) -> RestCatalog:
    return frazil_catalog.catalog()


@pytest.fixture
def table(client: RestCatalog, namespace: str) -> Table:
    return client.create_table(f"{namespace}.t", SCHEMA)


def stored(frazil_catalog: FrazilCatalog, namespace: str) -> dict[str, str]:
    """What load-table tells of reservations, and where: never in the metadata."""
    reply = frazil_catalog.ask("GET", f"/v1/namespaces/{namespace}/tables/t").document
    assert not [key for key in reply["metadata"]["properties"] if key.startswith("frazil.")]
    found: dict[str, str] = reply["config"]
    return found


def assertion(snapshot: DistributedSnapshot) -> dict[str, Any]:
    return {
        "type": "assert-snapshot-reservation",
        "snapshot-id": snapshot.snapshot_id,
        "commit-uuid": snapshot.commit_uuid,
    }


def test_a_reservation_is_kept_beside_the_metadata_and_costs_no_metadata_file(
    frazil_catalog: FrazilCatalog, namespace: str, table: Table
) -> None:
    before = table.metadata_location
    snapshot = frazil.begin_snapshot(table)
    told = stored(frazil_catalog, namespace)
    assert set(told) == {f"frazil.reservation.{snapshot.snapshot_id}"}
    assert frazil_catalog.catalog().load_table(table.name()).metadata_location == before
    assert CatalogTable(table).refresh().properties[snapshot.reservation_key] == Reservation.of(snapshot).to_property()


def test_publishing_consumes_it(frazil_catalog: FrazilCatalog, namespace: str, table: Table) -> None:
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1, 2)])
    assert stored(frazil_catalog, namespace) == {}
    assert ids(table) == [1, 2]
    with pytest.raises(AlreadyConsumed):
        frazil.publish_snapshot(table, snapshot, [])
    reply = frazil_catalog.commit(namespace, "t", [assertion(snapshot)], [])
    assert reply.error == (
        409,
        "CommitFailedException",
        f"Requirement failed: the reservation of snapshot {snapshot.snapshot_id} is consumed",
    )


def test_of_many_coordinators_with_one_descriptor_one_publishes(
    frazil_catalog: FrazilCatalog, namespace: str, table: Table
) -> None:
    snapshot = frazil.begin_snapshot(table)
    report = write(table, snapshot, 1, 2, 3)
    outcomes: list[object] = []

    def publish() -> None:
        mine = frazil_catalog.catalog().load_table(table.name())
        try:
            outcomes.append(frazil.publish_snapshot(mine, snapshot, [report]))
        except AlreadyConsumed as error:
            outcomes.append(error)

    threads = [threading.Thread(target=publish) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(each) for each in outcomes].count(AlreadyConsumed) == 5
    assert ids(table) == [1, 2, 3]


def test_it_is_renewed_cancelled_and_swept(frazil_catalog: FrazilCatalog, namespace: str, table: Table) -> None:
    first = frazil.begin_snapshot(table, ttl=timedelta(seconds=1))
    renewed = frazil.renew(table, first, timedelta(hours=1))
    assert renewed.expires_at_ms > first.expires_at_ms
    write(table, renewed, 1)
    assert frazil.cancel(table, renewed)
    assert set(stored(frazil_catalog, namespace)) == {f"frazil.ended.{first.snapshot_id}"}
    with pytest.raises(ReservationCancelled):
        frazil.publish_snapshot(table, renewed, [])
    swept = frazil.sweep(table, grace=timedelta(seconds=-60))
    assert swept.commit_uuids == (first.commit_uuid,)
    assert swept.files
    assert stored(frazil_catalog, namespace) == {}


def test_an_expired_one_publishes_nothing(table: Table, namespace: str, frazil_catalog: FrazilCatalog) -> None:
    long_ago: Callable[[], int] = lambda: 1_000_000  # noqa: E731
    snapshot = frazil.begin_snapshot(table, clock_ms=long_ago)
    with pytest.raises(ReservationExpired):
        frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1)])
    reply = frazil_catalog.commit(namespace, "t", [assertion(snapshot)], [])
    assert reply.error[2] == f"Requirement failed: the reservation of snapshot {snapshot.snapshot_id} is expired"


def test_the_catalog_itself_refuses_one_that_is_not_held(
    table: Table, namespace: str, frazil_catalog: FrazilCatalog
) -> None:
    snapshot = frazil.begin_snapshot(table)
    other = {**assertion(snapshot), "commit-uuid": "11111111-1111-1111-1111-111111111111"}
    assert "reserved by another commit" in frazil_catalog.commit(namespace, "t", [other], []).error[2]
    unknown = {**assertion(snapshot), "snapshot-id": 7}
    assert (
        frazil_catalog.commit(namespace, "t", [unknown], []).error[2]
        == "Requirement failed: snapshot 7 is not reserved"
    )
    again = {"action": "reserve-snapshot", "expires-at-ms": 2**42, **assertion(snapshot)}
    assert frazil_catalog.commit(namespace, "t", [], [again]).error[0] == 409
    assert frazil_catalog.commit(namespace, "t", [], [{"action": "reserve-snapshot"}]).error[0] == 400


def test_a_commit_that_rebases_keeps_its_right(
    frazil_catalog: FrazilCatalog, table: Table, client: RestCatalog
) -> None:
    first, second = frazil.begin_snapshot(table), frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, second, [write(table, second, 2)])
    stale = client.load_table(table.name())
    frazil.publish_snapshot(stale, first, [write(table, first, 1)])
    assert ids(table) == [1, 2]


def test_a_strict_one_does_not_rebase(table: Table) -> None:
    first, second = frazil.begin_snapshot(table), frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, second, [write(table, second, 2)])
    with pytest.raises(CommitConflict):
        frazil.publish_snapshot(table, first, [write(table, first, 1)], conflict="abort")


def test_one_that_has_expired_by_the_catalogs_clock_alone_is_refused_at_once(table: Table) -> None:
    two_hours_ago = now_ms() - 2 * 3600 * 1000
    snapshot = frazil.begin_snapshot(table, ttl=timedelta(hours=1), clock_ms=lambda: two_hours_ago)
    with FaultyCatalog(table.catalog) as counting, pytest.raises(CommitRefused, match="is expired"):
        frazil.publish_snapshot(table, snapshot, [write(table, snapshot, 1)], clock_ms=lambda: two_hours_ago)
    assert len(counting.commits) == 1
