"""The proxy does to a request what the test asked for, and nothing to the others. Upstream is a real catalog."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServiceUnavailableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from requests.exceptions import ConnectionError as LostConnection

from frazil.testing import (
    LOST_REPLY,
    LOST_REQUEST,
    CatalogProxy,
    delayed,
    duplicated,
    held_until,
    lost_behind_status,
    refused_with,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.table import Table

    from services.seaweedfs import SeaweedFS


@pytest.fixture
def proxy(seaweedfs: SeaweedFS) -> Iterator[CatalogProxy]:
    with CatalogProxy(seaweedfs.catalog_uri) as proxy:
        yield proxy


@pytest.fixture
def table(seaweedfs: SeaweedFS, proxy: CatalogProxy, seaweedfs_namespace: str) -> Table:
    """A table loaded through the proxy."""
    catalog = seaweedfs.catalog(proxy.uri)
    return catalog.create_table(f"{seaweedfs_namespace}.t", schema=Schema(NestedField(1, "id", LongType())))


def landed(catalog: RestCatalog, table: Table) -> bool:
    """Whether the commit of these tests is in the table, asked of the catalog without the proxy."""
    return catalog.load_table(table.name()).properties.get("mark") == "1"


def mark(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties(mark="1")


def test_without_a_fault_everything_passes_and_is_recorded(
    proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog
) -> None:
    mark(table)
    assert landed(seaweedfs_catalog, table)
    last = proxy.requests[-1]
    assert (last.method, last.path.rsplit("/", 1)[-1], last.answers, last.fault) == ("POST", "t", (200,), None)
    assert b"set-properties" in last.body


def test_a_lost_reply_leaves_the_commit_in_the_table(
    proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog
) -> None:
    proxy.inject(LOST_REPLY, path="/tables/t$")
    with pytest.raises(LostConnection):
        mark(table)
    assert landed(seaweedfs_catalog, table)
    assert proxy.requests[-1].answers == (200,)


def test_a_lost_request_never_reaches_the_catalog(
    proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog
) -> None:
    proxy.inject(LOST_REQUEST, path="/tables/t$")
    with pytest.raises(LostConnection):
        mark(table)
    assert not landed(seaweedfs_catalog, table)
    assert proxy.requests[-1].answers == ()


def test_a_refused_request_never_reaches_the_catalog(
    proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog
) -> None:
    proxy.inject(refused_with(503), path="/tables/t$")
    with pytest.raises((ServiceUnavailableError, CommitStateUnknownException)):
        mark(table)
    assert not landed(seaweedfs_catalog, table)


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_commit_can_land_behind_an_error_status(
    proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog, status: int
) -> None:
    proxy.inject(lost_behind_status(status), path="/tables/t$")
    with pytest.raises(CommitStateUnknownException):
        mark(table)
    assert landed(seaweedfs_catalog, table)


def test_a_fault_strikes_the_nth_request_alone(
    proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog
) -> None:
    proxy.inject(LOST_REQUEST, path="/tables/t$", nth=2)
    mark(table)
    with pytest.raises(LostConnection):
        mark(table)
    mark(table)
    assert landed(seaweedfs_catalog, table)


def test_a_duplicated_request_is_answered_with_what_the_repeat_was_told(proxy: CatalogProxy, table: Table) -> None:
    proxy.inject(duplicated(), method="POST", path="/namespaces$")
    assert isinstance(table.catalog.list_namespaces(), list)
    with pytest.raises(Exception, match="already exists"):
        table.catalog.create_namespace(f"{table.name()[0]}again")
    assert proxy.requests[-1].answers == (200, 409)


def test_a_held_request_is_overtaken_by_one_that_comes_later(
    proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog
) -> None:
    release = threading.Event()
    proxy.inject(held_until(release), path="/tables/t$")
    seen: list[str] = []
    first = threading.Thread(target=lambda: (mark(table), seen.append("first")))
    first.start()
    mark(seaweedfs_catalog.load_table(table.name()))
    seen.append("second")
    release.set()
    first.join()
    assert seen == ["second", "first"]


def test_a_delayed_request_arrives(proxy: CatalogProxy, table: Table, seaweedfs_catalog: RestCatalog) -> None:
    proxy.inject(delayed(0.01), path="/tables/t$")
    mark(table)
    assert landed(seaweedfs_catalog, table)


def test_a_refusal_of_the_catalog_itself_passes_through(table: Table, seaweedfs_catalog: RestCatalog) -> None:
    seaweedfs_catalog.drop_table(table.name())
    seaweedfs_catalog.create_table(table.name(), schema=table.schema())
    with pytest.raises(CommitFailedException, match="UUID mismatch"):
        mark(table)
