"""Staged create: described and promised, and visible to nobody until its first commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from readers import local_path
from services.frazil_catalog import LONG_FIELDS, FrazilCatalog, running_catalog

CREATE = [{"type": "assert-create"}]


@pytest.fixture(scope="module", params=["internal", "table"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrazilCatalog]:
    """A server for each place where staged metadata may lie."""
    with running_catalog(tmp_path_factory.mktemp("staging") / "lake", "--staging", request.param) as running:
        yield running


@pytest.fixture
def place(server: FrazilCatalog) -> str:
    return server.new_namespace()


def stage(server: FrazilCatalog, namespace: str, name: str = "t", **request: Any) -> Any:
    body = {"name": name, "schema": LONG_FIELDS, "stage-create": True, **request}
    reply = server.ask("POST", f"/v1/namespaces/{namespace}/tables", body)
    assert reply.status == 200, reply.body
    return reply.document


def creation(metadata: Any, **properties: str) -> list[Any]:
    """The updates with which Iceberg's clients commit a creation that was staged."""
    return [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": metadata["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": properties},
    ]


def counters(server: FrazilCatalog) -> dict[str, int]:
    engine = create_engine(server.database)
    with engine.connect() as connection:
        found = dict(connection.execute(text("SELECT name, value FROM frazil_counters")).all())
    engine.dispose()
    return {name.removeprefix("staged_creates").removeprefix("_") or "staged": value for name, value in found.items()}


def metadata_files(server: FrazilCatalog) -> list[str]:
    return sorted(path.name for path in server.root.rglob("*.metadata.json"))


def test_a_staged_table_is_visible_to_nobody(server: FrazilCatalog, place: str) -> None:
    staged = stage(server, place)
    assert local_path(staged["metadata-location"]).exists()
    assert server.ask("GET", f"/v1/namespaces/{place}/tables").document["identifiers"] == []
    assert server.ask("GET", f"/v1/namespaces/{place}/tables/t").status == 404


def test_its_metadata_lies_where_the_setting_says(server: FrazilCatalog, place: str, request: Any) -> None:
    staged = stage(server, place)
    if "internal" in request.node.name:
        assert staged["metadata-location"].startswith(f"file://{server.root}/warehouse/.frazil-staged/")
        assert not [path for path in local_path(staged["metadata"]["location"]).rglob("*") if path.is_file()]
    else:
        assert staged["metadata-location"] == f"{staged['metadata']['location']}/metadata/v1.metadata.json"


def test_finalising_makes_it_visible_with_its_staged_metadata(server: FrazilCatalog, place: str) -> None:
    staged = stage(server, place, properties={"kept": "yes"})
    reply = server.commit(place, "t", CREATE, creation(staged["metadata"], added="too"))
    assert reply.status == 200, reply.body
    table = server.ask("GET", f"/v1/namespaces/{place}/tables/t").document
    assert table["metadata"]["table-uuid"] == staged["metadata"]["table-uuid"]
    assert table["metadata"]["properties"] | {"kept": "yes", "added": "too"} == table["metadata"]["properties"]
    assert len(table["metadata"]["schemas"]) == 1
    assert table["metadata-location"].startswith(f"{staged['metadata']['location']}/metadata/0000")


def test_finalising_follows_the_staged_version_where_it_lies_with_the_table(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake", "--staging", "table") as server:
        place = server.new_namespace()
        staged = stage(server, place)
        finalised = server.commit(place, "t", CREATE, creation(staged["metadata"])).document
        assert Path(finalised["metadata-location"]).name.startswith("00002-")
        assert [entry["metadata-file"] for entry in finalised["metadata"]["metadata-log"]] == [
            staged["metadata-location"]
        ]


def test_of_two_racing_finalisers_one_is_served_and_the_other_leaves_no_file(server: FrazilCatalog, place: str) -> None:
    staged = [stage(server, place) for _ in range(2)]
    with ThreadPoolExecutor(2) as both:
        replies = list(both.map(lambda each: server.commit(place, "t", CREATE, creation(each["metadata"])), staged))
    assert sorted(reply.status for reply in replies) == [200, 409]
    refused = next(reply for reply in replies if reply.status == 409)
    assert refused.error[1] == "CommitFailedException"
    won = next(reply for reply in replies if reply.status == 200).document
    table = server.ask("GET", f"/v1/namespaces/{place}/tables/t").document
    assert table["metadata-location"] == won["metadata-location"]
    lost = next(each for each in staged if each["metadata"]["table-uuid"] != won["metadata"]["table-uuid"])
    staged_files = {str(local_path(each["metadata-location"])) for each in staged}
    files = {str(path) for path in server.root.rglob("*.metadata.json")}
    lying = {file for file in files if file in staged_files or f"/{place}/" in file}
    kept = {str(local_path(won["metadata-location"])), str(local_path(lost["metadata-location"]))}
    assert lying - kept == {
        str(local_path(entry["metadata-file"])) for entry in won["metadata"].get("metadata-log", [])
    }


def test_many_finalisers_of_one_staged_table_make_one_table(server: FrazilCatalog, place: str) -> None:
    staged = stage(server, place)
    with ThreadPoolExecutor(8) as all_of_them:
        replies = list(
            all_of_them.map(
                lambda n: server.commit(place, "t", CREATE, creation(staged["metadata"], n=str(n))), range(8)
            )
        )
    assert sorted(reply.status for reply in replies) == [200, *[409] * 7]


def test_without_assert_create_a_missing_table_is_404(server: FrazilCatalog, place: str) -> None:
    staged = stage(server, place)
    reply = server.commit(place, "t", [], creation(staged["metadata"]))
    assert reply.error == (404, "NoSuchTableException", f"Table does not exist: {place}.t")


def test_a_creation_that_nobody_staged_is_made_of_its_updates(server: FrazilCatalog, place: str) -> None:
    metadata = stage(server, place, "other")["metadata"]
    updates = [update for update in creation(metadata) if update["action"] not in ("assign-uuid", "set-location")]
    reply = server.commit(place, "t", CREATE, updates)
    assert reply.status == 200, reply.body
    assert reply.document["metadata"]["table-uuid"] != metadata["table-uuid"]
    assert reply.document["metadata"]["schemas"][0]["fields"] == LONG_FIELDS["fields"]


def test_a_failed_requirement_is_409_and_leaves_no_file(server: FrazilCatalog, place: str) -> None:
    server.new_table(place)
    before = metadata_files(server)
    reply = server.commit(place, "t", CREATE, [])
    assert reply.error == (409, "CommitFailedException", "Requirement failed: table already exists")
    assert metadata_files(server) == before


def test_the_counters_count(server: FrazilCatalog, place: str) -> None:
    before = counters(server)
    first, second = stage(server, place), stage(server, place)
    assert server.commit(place, "t", CREATE, creation(first["metadata"])).status == 200
    assert server.commit(place, "t", CREATE, creation(second["metadata"])).status == 409
    stage(server, place, "u")
    assert (
        server.commit(place, "u", CREATE, [{"action": "set-location", "location": "file:///elsewhere"}]).status >= 400
    )
    counted = {name: value - before[name] for name, value in counters(server).items()}
    assert counted == {"staged": 3, "finalised": 1, "failed": 2, "cleaned": 0, "cleanup_failures": 0}


def test_staged_create_can_be_turned_off(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake", environment={"FRAZIL_STAGE_CREATE": "off"}) as server:
        place = server.new_namespace()
        body = {"name": "t", "schema": LONG_FIELDS, "stage-create": True}
        code, kind, message = server.ask("POST", f"/v1/namespaces/{place}/tables", body).error
        assert (code, kind) == (501, "UnsupportedOperationException")
        assert "FRAZIL_STAGE_CREATE=off" in message


def test_the_janitor_removes_what_has_expired_with_its_files(tmp_path: Path) -> None:
    options = ("--staged-for", "0.2", "--janitor-every", "0.1")
    with running_catalog(tmp_path / "lake", *options) as server:
        staged = stage(server, server.new_namespace())
        deadline = time.monotonic() + 20
        while counters(server)["cleaned"] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert counters(server) | {"cleaned": 1, "cleanup_failures": 0} == counters(server)
        assert not local_path(staged["metadata-location"]).exists()
        assert not local_path(staged["metadata"]["location"]).exists()
