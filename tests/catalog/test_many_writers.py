"""Sixteen clients commit at once, and the history they leave is checked against every reply they got."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services.frazil_catalog import FrazilCatalog, running_catalog

CLIENTS = 16
COMMITS = 12
"""Commits that each client must land."""


@dataclass(frozen=True)
class Landed:
    """A commit that was acknowledged."""

    table: str
    snapshot: int
    parent: int | None


@pytest.fixture(params=["sqlite", "sqlite with 4 processes", "postgres with 4 processes"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FrazilCatalog]:
    options: tuple[str, ...] = () if request.param == "sqlite" else ("--workers", "4")
    if "postgres" in request.param:
        # A catalog name of its own, for the database is the session's.
        uri = request.getfixturevalue("postgres").get_uri()
        options += ("--db", uri, "--name", f"many-{tmp_path.name}")
    with running_catalog(tmp_path / "lake", *options) as running:
        yield running


@pytest.mark.parametrize("tables", [1, 100])
def test_nothing_is_lost_and_the_history_is_linear(server: FrazilCatalog, tables: int) -> None:
    place = server.new_namespace()
    names = [f"t{number}" for number in range(tables)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda name: server.new_table(place, name), names))
        replies = list(pool.map(lambda client: run_client(server, place, names, client), range(CLIENTS)))
    landed = [each for found, _ in replies for each in found]
    refusals = [refusal for _, found in replies for refusal in found]
    assert len(landed) == CLIENTS * COMMITS
    assert {(code, kind) for code, kind, _ in refusals} <= {(409, "CommitFailedException")}
    by_table: dict[str, list[Landed]] = defaultdict(list)
    for each in landed:
        by_table[each.table].append(each)
    for name, commits in by_table.items():
        metadata = server.ask("GET", f"/v1/namespaces/{place}/tables/{name}").document["metadata"]
        assert history(metadata) == chain(commits)
        assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == chain(commits)
        assert metadata["last-sequence-number"] == len(commits)


def run_client(
    server: FrazilCatalog, place: str, names: list[str], client: int
) -> tuple[list[Landed], list[tuple[int, str, str]]]:
    """Land the client's commits, each on the head it has looked up. Returns what landed and what was refused."""
    landed: list[Landed] = []
    refused: list[tuple[int, str, str]] = []
    while len(landed) < COMMITS:
        name = names[(client * 7 + len(landed) * 3) % len(names)]
        metadata = server.ask("GET", f"/v1/namespaces/{place}/tables/{name}?snapshots=refs").document["metadata"]
        parent = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
        snapshot = (client + 1) * 1_000_000 + len(landed) * 1000 + len(refused)
        reply = server.commit(place, name, *addition(metadata, snapshot, parent))
        if reply.status == 200:
            landed.append(Landed(name, snapshot, parent))
        else:
            refused.append(reply.error)
    return landed, refused


def addition(metadata: Any, snapshot: int, parent: int | None) -> tuple[list[Any], list[Any]]:
    added = {
        "snapshot-id": snapshot,
        "parent-snapshot-id": parent,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": metadata["last-updated-ms"],
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot}.avro",
        "summary": {"operation": "append", "thread": str(threading.get_ident())},
        "schema-id": 0,
    }
    requirements = [
        {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
    ]
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot}
    return requirements, [{"action": "add-snapshot", "snapshot": added}, ref]


def history(metadata: Any) -> list[int]:
    """The snapshots from the first to the head, by their parents, as the server tells it."""
    parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in metadata["snapshots"]}
    current, found = metadata["current-snapshot-id"], []
    while current is not None:
        found.append(current)
        current = parents.pop(current)
    assert not parents, "snapshots that the head does not lead to"
    return found[::-1]


def chain(commits: list[Landed]) -> list[int]:
    """The one order of these commits in which each follows its parent, by what the clients were told."""
    after = {each.parent: each.snapshot for each in commits}
    assert len(after) == len(commits), "two commits were acknowledged on the same head"
    found, current = [], after.get(None)
    while current is not None:
        found.append(current)
        current = after.get(current)
    assert len(found) == len(commits)
    return found


def test_properties_set_by_many_at_once_are_all_there(server: FrazilCatalog) -> None:
    place = server.new_namespace()
    server.new_table(place)

    def set_property(number: int) -> int:
        update = {"action": "set-properties", "updates": {f"p{number}": "x"}}
        while (reply := server.commit(place, "t", [], [update])).status == 409:
            assert reply.error[1] == "CommitFailedException"
        return reply.status

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert set(pool.map(set_property, range(4 * CLIENTS))) == {200}
    properties = server.ask("GET", f"/v1/namespaces/{place}/tables/t").document["metadata"]["properties"]
    assert {f"p{number}" for number in range(4 * CLIENTS)} <= set(properties)


def test_of_many_that_create_the_same_table_one_does(server: FrazilCatalog) -> None:
    place = server.new_namespace()
    body = {"name": "t", "schema": {"type": "struct", "fields": []}}
    with ThreadPoolExecutor(CLIENTS) as pool:
        replies = list(pool.map(lambda _: server.ask("POST", f"/v1/namespaces/{place}/tables", body), range(CLIENTS)))
    assert sorted(reply.status for reply in replies) == [200, *[409] * (CLIENTS - 1)]
    files = list((server.root / "warehouse" / place).rglob("*.metadata.json"))
    assert len(files) == 1
