"""The guarded catalog over HTTP: every endpoint, with and without the privilege that it needs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from frazil.catalog.authorization import NEEDED, OPEN_TO_ALL
from frazil.catalog.endpoints import ENDPOINTS
from frazil.catalog.principals import Credential
from frazil.catalog.privileges import CATALOG, Place, Privilege
from guarded import SCHEMA, GuardedCatalog, Start, guarded_catalogs

DB, TABLE = Place(("db",)), Place(("db",), "t")


@pytest.fixture
def catalog(guarded: Start) -> GuardedCatalog:
    running = guarded(authentication=True)
    running.make("db.t", "db.u", "other.t")
    return running


@pytest.fixture(scope="module")
def closed(shared_guarded: Start) -> GuardedCatalog:
    """A catalog that nobody in this module changes."""
    running = shared_guarded(authentication=True)
    running.make("db.t", "db.u", "other.t")
    return running


@pytest.fixture(scope="module")
def nothing(closed: GuardedCatalog) -> Credential:
    """A principal that holds nothing."""
    return closed.principal("nobody")


@pytest.fixture(scope="module")
def neighbour(closed: GuardedCatalog) -> Credential:
    """A principal that holds everything on the table beside."""
    return closed.principal("neighbour", (Privilege.MANAGE, Place(("db",), "u")))


@pytest.fixture(scope="module")
def open_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCatalog]:
    """A catalog without authentication, with one table."""
    with guarded_catalogs(tmp_path_factory.mktemp("open")) as start:
        running = start()
        running.make("db.t")
        yield running


def assert_refused(reply: requests.Response, status: int, kind: str) -> str:
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["type"]) == (status, status, kind), reply.text
    return str(error["message"])


VIEW = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]}  # fmt: skip
BODIES: dict[str, Any] = {
    "createNamespace": {"namespace": ["new"]},
    "updateProperties": {"updates": {"a": "b"}},
    "createTable": {"name": "new", "schema": SCHEMA},
    "registerTable": {"name": "new", "metadata-location": "file:///somewhere/v1.metadata.json"},
    "updateTable": {"requirements": [], "updates": []},
    "renameTable": {
        "source": {"namespace": ["db"], "name": "t"},
        "destination": {"namespace": ["db"], "name": "new"},
    },
    "commitTransaction": {
        "table-changes": [{"identifier": {"namespace": ["db"], "name": "t"}, "requirements": [], "updates": []}]
    },
    "reportMetrics": {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "schema-id": 0,
                      "filter": True, "projected-field-ids": [], "projected-field-names": [], "metrics": {}},
    "createView": {"name": "new", "schema": SCHEMA, "view-version": VIEW, "properties": {}},
    "replaceView": {"requirements": [], "updates": []},
    "registerView": {"name": "new", "metadata-location": "file:///somewhere/v1.metadata.json"},
    "planTableScan": {},
    "fetchScanTasks": {"plan-task": "x"},
}  # fmt: skip
BODIES["renameView"] = BODIES["renameTable"]
GUARDED = [each for each in ENDPOINTS if each.operation in NEEDED]


def path_of(template: str, table: str = "t") -> str:
    filled = template.removeprefix("/v1/{prefix}/").replace("{namespace}", "db").replace("{plan-id}", str(uuid.uuid4()))
    return filled.replace("{table}", table).replace("{view}", table)


@pytest.mark.parametrize("endpoint", GUARDED, ids=lambda each: each.operation)
def test_every_endpoint_is_closed_to_nobody_and_to_who_holds_nothing(
    closed: GuardedCatalog, nothing: Credential, endpoint: Any
) -> None:
    body = BODIES.get(endpoint.operation)
    without = closed.ask(None, endpoint.method, path_of(endpoint.path), body)
    denied = closed.ask(nothing, endpoint.method, path_of(endpoint.path), body)
    if endpoint.method == "HEAD":
        assert (without.status_code, denied.status_code) == (401, 403)
    else:
        assert_refused(without, 401, "NotAuthorizedException")
        assert_refused(denied, 403, "ForbiddenException")
    assert without.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("endpoint", GUARDED, ids=lambda each: each.operation)
def test_the_privilege_of_the_table_opens_each_endpoint(catalog: GuardedCatalog, endpoint: Any) -> None:
    privileges = [NEEDED[endpoint.operation][0]]
    if endpoint.operation in ("renameTable", "renameView", "registerTable", "registerView"):
        privileges.append(Privilege.CREATE)
    who = catalog.principal("who", *((each, CATALOG) for each in privileges))
    reply = catalog.ask(who, endpoint.method, path_of(endpoint.path), BODIES.get(endpoint.operation))
    assert reply.status_code != 401 and "may not do this" not in reply.text


@pytest.mark.parametrize(
    "endpoint", [each for each in GUARDED if "{table}" in each.path], ids=lambda each: each.operation
)
def test_a_refusal_is_the_same_whether_the_table_exists_or_not(
    closed: GuardedCatalog, neighbour: Credential, endpoint: Any
) -> None:
    body = BODIES.get(endpoint.operation)
    there, nowhere = (closed.ask(neighbour, endpoint.method, path_of(endpoint.path, name), body) for name in ("t", "x"))
    assert there.status_code == nowhere.status_code == 403
    assert there.text.replace("db.t", "db.x") == nowhere.text


def test_every_endpoint_is_in_one_of_these_tests() -> None:
    assert {each.operation for each in ENDPOINTS} - NEEDED.keys() - OPEN_TO_ALL == {"health", "ready"}


def test_lists_hold_what_the_caller_may_see_and_nothing_else(catalog: GuardedCatalog) -> None:
    who = catalog.principal("who", (Privilege.READ, TABLE))
    assert catalog.ask(who, "GET", "namespaces").json()["namespaces"] == [["db"]]
    tables = catalog.ask(who, "GET", "namespaces/db/tables").json()["identifiers"]
    assert tables == [{"namespace": ["db"], "name": "t"}]
    assert_refused(catalog.ask(who, "GET", "namespaces/other/tables"), 403, "ForbiddenException")
    everything = catalog.ask(catalog.root, "GET", "namespaces").json()["namespaces"]
    assert everything == [["db"], ["other"]]


def test_a_list_in_pages_shows_the_same(catalog: GuardedCatalog) -> None:
    who = catalog.principal("who", (Privilege.READ, Place(("db",), "u")))
    names, token = [], ""
    while token is not None:
        page = catalog.ask(who, "GET", f"namespaces/db/tables?pageSize=1&pageToken={token}").json()
        names += [each["name"] for each in page["identifiers"]]
        token = page["next-page-token"]
    assert names == ["u"]


STAGE = {"name": "new", "schema": SCHEMA, "stage-create": True}
FINALISE = {"requirements": [{"type": "assert-create"}], "updates": []}


def test_staging_and_finalising_need_what_creating_needs(catalog: GuardedCatalog) -> None:
    writer = catalog.principal("writer", (Privilege.WRITE, DB))
    assert_refused(catalog.ask(writer, "POST", "namespaces/db/tables", STAGE), 403, "ForbiddenException")
    catalog.ask(catalog.root, "POST", "namespaces/db/tables", STAGE).raise_for_status()
    assert_refused(catalog.ask(writer, "POST", "namespaces/db/tables/new", FINALISE), 403, "ForbiddenException")
    creator = catalog.principal("creator", (Privilege.CREATE, DB))
    staged = catalog.ask(creator, "POST", "namespaces/db/tables", STAGE).json()["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "set-location", "location": staged["location"]},
    ]
    done = catalog.ask(creator, "POST", "namespaces/db/tables/new", {**FINALISE, "updates": updates})
    assert done.status_code == 200, done.text


def test_a_name_can_be_granted_before_it_is_there(catalog: GuardedCatalog) -> None:
    who = catalog.principal("who", (Privilege.MANAGE, Place(("db",), "mine")))
    made = {name: {"name": name, "schema": SCHEMA} for name in ("mine", "yours")}
    statuses = [catalog.ask(who, "POST", "namespaces/db/tables", request).status_code for request in made.values()]
    assert statuses == [200, 403]
    assert catalog.ask(who, "GET", "namespaces/db/tables/mine").status_code == 200


def test_a_transaction_needs_the_privilege_on_every_table_and_changes_none_without(catalog: GuardedCatalog) -> None:
    who = catalog.principal("who", (Privilege.WRITE, TABLE), (Privilege.READ, Place(("db",), "u")))
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"touched": "yes"}}]}
    changes = [{"identifier": {"namespace": ["db"], "name": name}, **change} for name in ("t", "u")]
    refused = catalog.ask(who, "POST", "transactions/commit", {"table-changes": changes})
    assert "db.u" in assert_refused(refused, 403, "ForbiddenException")
    for name in ("t", "u"):
        loaded = catalog.ask(catalog.root, "GET", f"namespaces/db/tables/{name}").json()
        assert "touched" not in loaded["metadata"].get("properties", {})
    assert catalog.ask(who, "POST", "transactions/commit", {"table-changes": changes[:1]}).status_code == 204


@pytest.mark.parametrize(
    ("grants", "status"),
    [
        ([(Privilege.DROP, TABLE), (Privilege.CREATE, Place(("other",)))], 204),
        ([(Privilege.DROP, TABLE)], 403),
        ([(Privilege.CREATE, Place(("other",)))], 403),
        ([(Privilege.DROP, TABLE), (Privilege.CREATE, DB)], 403),
    ],
)
def test_a_rename_needs_both_sides(catalog: GuardedCatalog, grants: Any, status: int) -> None:
    who = catalog.principal("who", *grants)
    sides = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["other"], "name": "moved"}}
    assert catalog.ask(who, "POST", "tables/rename", sides).status_code == status


def test_to_register_over_a_table_one_must_be_allowed_to_write_it(catalog: GuardedCatalog) -> None:
    location = catalog.ask(catalog.root, "GET", "namespaces/db/tables/u").json()["metadata-location"]
    request = {"name": "t", "metadata-location": location, "overwrite": True}
    may_all_but = (Privilege.LOCATE, CATALOG), (Privilege.CREATE, CATALOG), (Privilege.READ, CATALOG)
    who = catalog.principal("who", *may_all_but)
    assert "write" in assert_refused(
        catalog.ask(who, "POST", "namespaces/db/register", request), 403, "ForbiddenException"
    )
    writer = catalog.principal("writer", *may_all_but, (Privilege.WRITE, TABLE))
    assert catalog.ask(writer, "POST", "namespaces/db/register", request).status_code == 200


@pytest.mark.parametrize("of", ["somebody else", "another table"])
def test_planning_reads_nothing_but_the_tables_own_files_for_a_client_that_names_others(
    catalog: GuardedCatalog, of: str
) -> None:
    other = f"{catalog.backend.settings.warehouse}/db/other/metadata/snap-1.avro"
    snapshot = {
        "snapshot-id": 1, "sequence-number": 1, "timestamp-ms": catalog.backend.clock_ms(), "schema-id": 0,
        "summary": {"operation": "append"},
        "manifest-list": "file:///etc/passwd" if of == "somebody else" else other,
    }  # fmt: skip
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ]
    commit = {"requirements": [], "updates": updates}
    catalog.ask(catalog.root, "POST", "namespaces/db/tables/t", commit).raise_for_status()
    assert "outside" in assert_refused(
        catalog.ask(catalog.root, "POST", "namespaces/db/tables/t/plan", {}), 403, "ForbiddenException"
    )


def place_requests(base: str) -> dict[str, tuple[str, str, Any]]:
    """Ways to choose where files lie, by name: method, path, body."""
    commit = "namespaces/db/tables/t"
    return {
        "create with a location": ("POST", "namespaces/db/tables", {"name": "new", "schema": SCHEMA, "location": base}),
        "stage with a location": ("POST", "namespaces/db/tables", {**STAGE, "location": base}),
        "create with write.data.path": (
            "POST", "namespaces/db/tables", {"name": "new", "schema": SCHEMA, "properties": {"write.data.path": base}}
        ),
        "set-location": ("POST", commit, {"requirements": [], "updates": [{"action": "set-location", "location": base}]}),
        "create a view with a location": (
            "POST", "namespaces/db/views",
            {"name": "v", "schema": SCHEMA, "view-version": VIEW, "properties": {}, "location": base},
        ),
        "register a view": ("POST", "namespaces/db/register-view", {"name": "v", "metadata-location": f"{base}/v1.json"}),
        **{
            name: ("POST", commit, {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: base}}]})
            for name in ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
        },
        "finalise elsewhere": ("POST", "namespaces/db/tables/new", {**FINALISE, "updates": [
            {"action": "set-location", "location": base},
            {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}, "last-column-id": 1},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}, {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        ]}),
        "a namespace's location": ("POST", "namespaces", {"namespace": ["new"], "properties": {"location": base}}),
        "a namespace's new location": ("POST", "namespaces/db/properties", {"updates": {"location": base}}),
        "register": ("POST", "namespaces/db/register", {"name": "new", "metadata-location": f"{base}/metadata/v1.metadata.json"}),
    }  # fmt: skip


@pytest.mark.parametrize("way", place_requests(""))
def test_to_choose_where_files_lie_is_a_privilege_of_its_own(catalog: GuardedCatalog, way: str) -> None:
    inside = f"{catalog.backend.settings.warehouse}/chosen"
    may_all_but = (Privilege.WRITE, CATALOG), (Privilege.CREATE, CATALOG), (Privilege.DROP, CATALOG)
    who = catalog.principal("who", *may_all_but)
    assert "locate" in assert_refused(catalog.ask(who, *place_requests(inside)[way]), 403, "ForbiddenException")
    chooser = catalog.principal("chooser", *may_all_but, (Privilege.LOCATE, CATALOG))
    assert catalog.ask(chooser, *place_requests(inside)[way]).status_code in (200, 204, 400), way
    assert catalog.ask(chooser, *place_requests(inside)[way]).status_code != 403


ESCAPES: dict[str, Callable[[str], str]] = {
    "elsewhere": lambda _: "file:///etc/lake",
    "another scheme": lambda _: "s3://bucket/lake",
    "dots": lambda root: f"{root}/../out",
    "encoded dots": lambda root: f"{root}/%2e%2e/out",
    "twice encoded dots": lambda root: f"{root}/%252e%252e%252fout",
    "an encoded separator": lambda root: f"{root}/a%2f..%2f..%2fout",
    "a beginning that is longer": lambda root: f"{root}-of-another",
    "a control character": lambda root: f"{root}/a\nb",
    "a backslash": lambda root: f"{root}/..\\..\\out",
}


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("way", place_requests(""))
def test_no_way_leads_out_of_the_warehouse(open_catalog: GuardedCatalog, way: str, escape: str) -> None:
    base = ESCAPES[escape](open_catalog.backend.settings.warehouse)
    reply = open_catalog.ask(None, *place_requests(base)[way])
    assert reply.status_code in (400, 403), reply.text
    assert "ocation" in reply.json()["error"]["message"]


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "a\\..\\b", "a\x00b", "a\nb", ""])
def test_a_name_that_leads_out_of_its_folder_is_refused(open_catalog: GuardedCatalog, name: str) -> None:
    assert open_catalog.ask(None, "POST", "namespaces", {"namespace": [name]}).status_code == 400
    assert open_catalog.ask(None, "POST", "namespaces/db/tables", {"name": name, "schema": SCHEMA}).status_code == 400
