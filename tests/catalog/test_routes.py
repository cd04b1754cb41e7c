"""The endpoints, each by what the OpenAPI document says of it."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from readers import local_path
from services.frazil_catalog import LONG_FIELDS, FrazilCatalog, running_catalog

VIEW = {
    "name": "v",
    "schema": {"type": "struct", "schema-id": 0, "fields": LONG_FIELDS["fields"]},
    "view-version": {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}],
    },
    "properties": {"owner": "ice"},
}


def set_properties(**properties: str) -> list[Any]:
    return [{"action": "set-properties", "updates": properties}]


def test_config_names_every_endpoint_and_each_of_them_is_there(frazil_catalog: FrazilCatalog) -> None:
    config = frazil_catalog.ask("GET", "/v1/config").document
    assert config["overrides"] == {"prefix": "frazil", "frazil.native-reservations": "true"}
    for endpoint in config["endpoints"]:
        method, _, path = endpoint.partition(" ")
        filled = path.format_map(dict.fromkeys(("namespace", "table", "view", "plan-id"), "x") | {"prefix": "frazil"})
        body = {} if method == "POST" else None
        assert frazil_catalog.ask(method, filled, body).status not in (405, 501), endpoint
        if method != "HEAD":
            refused = frazil_catalog.ask(method, filled, body)
            assert "No route" not in refused.body.decode(), endpoint


def test_config_knows_its_warehouse_and_no_other(frazil_catalog: FrazilCatalog) -> None:
    for known in ("frazil", f"file://{frazil_catalog.root}/warehouse"):
        assert frazil_catalog.ask("GET", f"/v1/config?warehouse={quote(known, safe='')}").status == 200
    assert frazil_catalog.ask("GET", "/v1/config?warehouse=other").error[1] == "NoSuchWarehouseException"


def test_what_is_not_there_has_the_error_body(frazil_catalog: FrazilCatalog) -> None:
    assert frazil_catalog.ask("GET", "/v1/nothing").error[:2] == (404, "NotFoundException")
    assert frazil_catalog.ask("PUT", "/v1/config").error[0] == 405
    assert frazil_catalog.ask("GET", "/v1/frazil/namespaces/a/functions").error[0] == 404


def test_a_body_that_is_no_json_is_400(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    for body in (b"", b"{", b"[]", b"\xff", b'"text"', b"null"):
        assert frazil_catalog.ask("POST", f"/v1/namespaces/{namespace}/tables", body).error[0] == 400


def test_namespaces_nest_and_are_listed_a_level_at_a_time(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    for levels in ([namespace, "a"], [namespace, "a", "b"], [namespace, "c.d"], [namespace, "e", "f"]):
        assert frazil_catalog.ask("POST", "/v1/namespaces", {"namespace": levels}).status == 200

    def below(*levels: str) -> list[list[str]]:
        parent = quote("\x1f".join(levels), safe="")
        found: list[list[str]] = frazil_catalog.ask("GET", f"/v1/namespaces?parent={parent}").document["namespaces"]
        return found

    assert below(namespace) == [[namespace, "a"], [namespace, "c.d"], [namespace, "e"]]
    assert below(namespace, "a") == [[namespace, "a", "b"]]
    assert below(namespace, "c.d") == []
    assert frazil_catalog.ask("GET", "/v1/namespaces?parent=missing").error[1] == "NoSuchNamespaceException"
    assert frazil_catalog.ask("DELETE", f"/v1/namespaces/{namespace}").error[1] == "NamespaceNotEmptyException"


def test_properties_are_set_and_removed(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    path = f"/v1/namespaces/{namespace}"
    changed = frazil_catalog.ask("POST", f"{path}/properties", {"updates": {"a": "1", "b": "2"}}).document
    assert changed == {"updated": ["a", "b"], "removed": [], "missing": []}
    changed = frazil_catalog.ask("POST", f"{path}/properties", {"removals": ["a", "c"], "updates": {"b": "3"}}).document
    assert changed == {"updated": ["b"], "removed": ["a"], "missing": ["c"]}
    assert frazil_catalog.ask("GET", path).document == {"namespace": [namespace], "properties": {"b": "3"}}
    both = {"removals": ["a"], "updates": {"a": "1"}}
    assert frazil_catalog.ask("POST", f"{path}/properties", both).error[:2] == (422, "UnprocessableEntityException")


@pytest.mark.parametrize(
    "name", ["tab/le", "tab.le", "tab le", "täble", "100%", "%2F", "a%2Eb", "a+b", "a?b=c", "#", "tab\\le", "名"]
)
def test_a_name_may_hold_any_sign(frazil_catalog: FrazilCatalog, namespace: str, name: str) -> None:
    levels = [namespace, name]
    assert frazil_catalog.ask("POST", "/v1/namespaces", {"namespace": levels}).status == 200
    encoded = f"{namespace}%1F{quote(name, safe='')}"
    assert frazil_catalog.ask("GET", f"/v1/namespaces/{encoded}").document["namespace"] == levels
    made = frazil_catalog.new_table(encoded, name)
    path = f"/v1/namespaces/{encoded}/tables/{quote(name, safe='')}"
    assert frazil_catalog.ask("GET", path).document["metadata-location"] == made["metadata-location"]
    listed = frazil_catalog.ask("GET", f"/v1/namespaces/{encoded}/tables").document["identifiers"]
    assert listed == [{"namespace": levels, "name": name}]
    assert frazil_catalog.ask("DELETE", path).status == 204
    assert frazil_catalog.ask("DELETE", f"/v1/namespaces/{encoded}").status == 204


@pytest.mark.parametrize("name", ["..", ".", "../x", "a/../../b", "a\\..\\b", "", "a\nb", "a\0b", "x" * 256])
def test_a_name_that_leads_astray_is_400(frazil_catalog: FrazilCatalog, namespace: str, name: str) -> None:
    assert frazil_catalog.ask("POST", "/v1/namespaces", {"namespace": [namespace, name]}).error[0] == 400
    body = {"name": name, "schema": LONG_FIELDS}
    assert frazil_catalog.ask("POST", f"/v1/namespaces/{namespace}/tables", body).error[0] == 400


@pytest.mark.parametrize(
    "location", ["file:///etc", "/etc/x", "{w}/../x", "{w}/%2e%2e/x", "{w}x/y", "{w}/a/%252e%252e/b", "s3://bucket/x"]
)
def test_a_location_outside_the_warehouse_is_refused(
    frazil_catalog: FrazilCatalog, namespace: str, location: str
) -> None:
    place = location.replace("{w}", f"file://{frazil_catalog.root}/warehouse")
    body = {"name": "t", "schema": LONG_FIELDS, "location": place}
    assert frazil_catalog.ask("POST", f"/v1/namespaces/{namespace}/tables", body).error[0] in (400, 403)
    frazil_catalog.new_table(namespace)
    for update in (
        {"action": "set-location", "location": place},
        {"action": "set-properties", "updates": {"write.metadata.path": place}},
    ):
        assert frazil_catalog.commit(namespace, "t", [], [update]).error[0] in (400, 403)


def test_listings_come_in_pages(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    names = [f"t{number:02}" for number in range(7)]
    for name in names:
        frazil_catalog.new_table(namespace, name)
    path, token, pages = f"/v1/namespaces/{namespace}/tables", "", []
    while token is not None:
        page = frazil_catalog.ask("GET", f"{path}?pageSize=3&pageToken={token}").document
        pages.append([each["name"] for each in page["identifiers"]])
        token = page["next-page-token"]
    assert pages == [names[:3], names[3:6], names[6:]]
    whole = frazil_catalog.ask("GET", path).document
    assert (len(whole["identifiers"]), whole["next-page-token"]) == (7, None)
    assert frazil_catalog.ask("GET", f"{path}?pageSize=0&pageToken=").error[0] == 400
    assert frazil_catalog.ask("GET", f"{path}?pageToken=%F0").error[0] == 400


def test_a_table_is_not_sent_twice_to_a_client_that_holds_it(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    frazil_catalog.new_table(namespace)
    path = f"/v1/namespaces/{namespace}/tables/t"
    first, refs = frazil_catalog.ask("GET", path), frazil_catalog.ask("GET", f"{path}?snapshots=refs")
    assert first.headers["etag"] != refs.headers["etag"]
    held = {"If_None_Match": first.headers["etag"]}
    assert frazil_catalog.ask("GET", path, **held).status == 304
    assert frazil_catalog.ask("GET", f"{path}?snapshots=refs", **held).status == 200
    changed = frazil_catalog.commit(namespace, "t", [], set_properties(a="1"))
    fresh = frazil_catalog.ask("GET", path, **held)
    assert (fresh.status, fresh.headers["etag"]) == (200, changed.headers["etag"])


def test_a_load_of_refs_leaves_out_what_no_ref_names(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    metadata = frazil_catalog.new_table(namespace)["metadata"]
    location, now = metadata["location"], metadata["last-updated-ms"]
    for number in (1, 2, 3):
        snapshot = {
            "snapshot-id": number, "sequence-number": number, "timestamp-ms": now + number,
            "manifest-list": f"{location}/metadata/{number}.avro", "summary": {"operation": "append"}, "schema-id": 0,
        }  # fmt: skip
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
        updates = [{"action": "add-snapshot", "snapshot": snapshot}, ref]
        reply = frazil_catalog.commit(namespace, "t", [], updates)
        assert reply.status == 200, reply.body
    path = f"/v1/namespaces/{namespace}/tables/t"
    assert len(frazil_catalog.ask("GET", path).document["metadata"]["snapshots"]) == 3
    refs = frazil_catalog.ask("GET", f"{path}?snapshots=refs").document["metadata"]
    assert [snapshot["snapshot-id"] for snapshot in refs["snapshots"]] == [3]


def test_a_transaction_changes_all_its_tables_or_none(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    tables = [frazil_catalog.new_table(namespace, name)["metadata"] for name in ("a", "b")]

    def change(value: str, *uuids: str) -> Any:
        return frazil_catalog.ask(
            "POST",
            "/v1/transactions/commit",
            {
                "table-changes": [
                    {
                        "identifier": {"namespace": [namespace], "name": name},
                        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
                        "updates": set_properties(value=value),
                    }
                    for name, uuid in zip("ab", uuids, strict=True)
                ]
            },
        )

    def values() -> list[Any]:
        return [
            frazil_catalog.ask("GET", f"/v1/namespaces/{namespace}/tables/{name}")
            .document["metadata"]["properties"]
            .get("value")
            for name in "ab"
        ]

    before = sorted((frazil_catalog.root / "warehouse" / namespace).rglob("*.metadata.json"))
    assert change("1", tables[0]["table-uuid"], str(uuid.uuid4())).error[:2] == (409, "CommitFailedException")
    assert values() == [None, None]
    assert sorted((frazil_catalog.root / "warehouse" / namespace).rglob("*.metadata.json")) == before
    assert change("2", *(table["table-uuid"] for table in tables)).status == 204
    assert values() == ["2", "2"]


def test_a_table_is_registered_unregistered_and_registered_again(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    made = frazil_catalog.new_table(namespace)
    path = f"/v1/namespaces/{namespace}"
    gone = frazil_catalog.ask("POST", f"{path}/tables/t/unregister", {})
    assert gone.document["metadata-location"] == made["metadata-location"]
    assert frazil_catalog.ask("HEAD", f"{path}/tables/t").status == 404
    body = {"name": "again", "metadata-location": made["metadata-location"]}
    assert frazil_catalog.ask("POST", f"{path}/register", body).document["metadata"] == made["metadata"]
    assert frazil_catalog.ask("POST", f"{path}/register", body).error[:2] == (409, "AlreadyExistsException")
    frazil_catalog.commit(namespace, "again", [], set_properties(a="1"))
    assert frazil_catalog.ask("POST", f"{path}/register", {**body, "overwrite": True}).status == 200
    assert "a" not in frazil_catalog.ask("GET", f"{path}/tables/again").document["metadata"]["properties"]
    lost = {"name": "lost", "metadata-location": made["metadata-location"] + "x"}
    assert frazil_catalog.ask("POST", f"{path}/register", lost).error[0] == 400


def test_a_purge_removes_the_files_and_a_drop_does_not(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    kept, purged = frazil_catalog.new_table(namespace, "kept"), frazil_catalog.new_table(namespace, "purged")
    assert frazil_catalog.ask("DELETE", f"/v1/namespaces/{namespace}/tables/kept").status == 204
    assert frazil_catalog.ask("DELETE", f"/v1/namespaces/{namespace}/tables/purged?purgeRequested=true").status == 204
    gone = local_path(purged["metadata-location"])
    deadline = time.monotonic() + 30
    while gone.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not gone.exists()
    assert local_path(kept["metadata-location"]).exists()


def test_a_rename_moves_between_namespaces(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    other = frazil_catalog.new_namespace()
    made = frazil_catalog.new_table(namespace)
    frazil_catalog.new_table(other, "taken")

    def rename(source: str, space: str, target: str) -> Any:
        return frazil_catalog.ask(
            "POST",
            "/v1/tables/rename",
            {
                "source": {"namespace": [namespace], "name": source},
                "destination": {"namespace": [space], "name": target},
            },
        )

    assert rename("missing", other, "t").error[1] == "NoSuchTableException"
    assert rename("t", "nowhere", "t").error[1] == "NoSuchNamespaceException"
    assert rename("t", other, "taken").error[1] == "AlreadyExistsException"
    assert rename("t", other, "new").status == 204
    moved = frazil_catalog.ask("GET", f"/v1/namespaces/{other}/tables/new").document
    assert moved["metadata-location"] == made["metadata-location"]


def test_a_view_is_created_replaced_renamed_and_dropped(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    path = f"/v1/namespaces/{namespace}"
    made = frazil_catalog.ask("POST", f"{path}/views", VIEW)
    assert made.status == 200, made.body
    assert frazil_catalog.ask("POST", f"{path}/views", VIEW).error[1:] == (
        "AlreadyExistsException",
        f"View already exists: {namespace}.v",
    )
    code, kind, message = frazil_catalog.ask("POST", f"{path}/tables", {"name": "v", "schema": LONG_FIELDS}).error
    assert (code, kind, message) == (
        409,
        "AlreadyExistsException",
        f"View with same name already exists: {namespace}.v",
    )
    version = {
        **VIEW["view-version"],
        "version-id": 2,
        "representations": [{"type": "sql", "sql": "SELECT 2 AS id", "dialect": "spark"}],
    }  # type: ignore[dict-item]
    replaced = frazil_catalog.ask(
        "POST",
        f"{path}/views/v",
        {
            "requirements": [{"type": "assert-view-uuid", "uuid": made.document["metadata"]["view-uuid"]}],
            "updates": [
                {"action": "add-view-version", "view-version": version},
                {"action": "set-current-view-version", "view-version-id": -1},
            ],
        },
    )
    assert replaced.document["metadata"]["current-version-id"] == 2
    names = {"source": {"namespace": [namespace], "name": "v"}, "destination": {"namespace": [namespace], "name": "w"}}
    assert frazil_catalog.ask("POST", "/v1/views/rename", names).status == 204
    assert frazil_catalog.ask("GET", f"{path}/views").document["identifiers"] == [
        {"namespace": [namespace], "name": "w"}
    ]
    assert frazil_catalog.ask("GET", f"{path}/tables").document["identifiers"] == []
    body = {"name": "v2", "metadata-location": replaced.document["metadata-location"]}
    assert frazil_catalog.ask("POST", f"{path}/register-view", body).status == 200
    for view in ("w", "v2"):
        assert frazil_catalog.ask("HEAD", f"{path}/views/{view}").status == 204
        assert frazil_catalog.ask("DELETE", f"{path}/views/{view}").status == 204
    assert frazil_catalog.ask("GET", f"{path}/views/w").error[1] == "NoSuchViewException"


def test_a_metrics_report_is_kept_and_can_be_read(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    frazil_catalog.new_table(namespace)
    path = f"/v1/namespaces/{namespace}/tables/t/metrics"
    report = {"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "metrics": {}}
    assert frazil_catalog.ask("POST", path, report).status == 204
    assert [each["report"] for each in frazil_catalog.ask("GET", path).document["reports"]] == [report]
    assert frazil_catalog.ask("POST", path, {"report-type": "other"}).error[0] == 400
    assert frazil_catalog.ask("POST", path.replace("/t/", "/u/"), report).error[1] == "NoSuchTableException"


def test_a_request_that_comes_again_under_its_key_has_no_further_effect(
    frazil_catalog: FrazilCatalog, namespace: str
) -> None:
    key = {"Idempotency_Key": str(uuid.uuid4())}
    body = {"name": "t", "schema": LONG_FIELDS}
    first, again = (frazil_catalog.ask("POST", f"/v1/namespaces/{namespace}/tables", body, **key) for _ in range(2))
    assert (first.status, first.document) == (again.status, again.document)
    assert frazil_catalog.ask("DELETE", f"/v1/namespaces/{namespace}", **key).error[0] == 400

    key = {"Idempotency_Key": str(uuid.uuid4())}
    requirements = [{"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1}]
    committed = [frazil_catalog.commit(namespace, "t", requirements, set_properties(a="1"), **key) for _ in range(2)]
    assert committed[0].document == committed[1].document
    log = frazil_catalog.ask("GET", f"/v1/namespaces/{namespace}/tables/t").document["metadata"]["metadata-log"]
    assert len(log) == 1

    key = {"Idempotency_Key": str(uuid.uuid4())}
    refused = [frazil_catalog.ask("DELETE", f"/v1/namespaces/{namespace}/tables/u", **key) for _ in range(2)]
    frazil_catalog.new_table(namespace, "u")
    refused.append(frazil_catalog.ask("DELETE", f"/v1/namespaces/{namespace}/tables/u", **key))
    assert [each.status for each in refused] == [404] * 3
    assert frazil_catalog.ask("GET", "/v1/config", Idempotency_Key="x").status == 200
    assert frazil_catalog.ask("DELETE", f"/v1/namespaces/{namespace}/tables/u", Idempotency_Key="x").error[0] == 400


def test_a_scan_is_planned_on_the_server(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    import pyarrow as pa

    table = frazil_catalog.catalog().create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    path = f"/v1/namespaces/{namespace}/tables/t"
    plan = frazil_catalog.ask("POST", f"{path}/plan", {}).document
    (file,) = (task["data-file"]["file-path"] for task in plan["file-scan-tasks"])
    assert file == next(iter(table.scan().plan_files())).file.file_path
    again = frazil_catalog.ask("GET", f"{path}/plan/{plan['plan-id']}").document
    assert again["file-scan-tasks"] == plan["file-scan-tasks"]
    assert frazil_catalog.ask("DELETE", f"{path}/plan/{plan['plan-id']}").status == 204
    assert frazil_catalog.ask("GET", f"{path}/plan/nothing").error[1] == "NoSuchPlanIdException"


def test_a_separator_of_ones_own_is_announced_and_both_are_understood(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake", "--namespace-separator", "%2E") as server:
        assert server.ask("GET", "/v1/config").document["overrides"]["namespace-separator"] == "%2E"
        assert server.ask("POST", "/v1/namespaces", {"namespace": ["a", "b.c"]}).status == 200
        for spelled in ("a%2Eb.c", "a%2eb.c", "a%1Fb.c"):
            assert server.ask("GET", f"/v1/namespaces/{spelled}").document["namespace"] == ["a", "b.c"]


def test_fields_that_nobody_knows_survive(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    made = frazil_catalog.new_table(namespace)
    file = local_path(made["metadata-location"])
    strange = file.with_name("strange.metadata.json")
    strange.write_text(json.dumps({**json.loads(file.read_text()), "x-new": {"a": [1]}}))
    body = {"name": "strange", "metadata-location": f"file://{strange}"}
    assert frazil_catalog.ask("POST", f"/v1/namespaces/{namespace}/register", body).status == 200
    changed = frazil_catalog.commit(namespace, "strange", [], set_properties(a="1")).document
    assert changed["metadata"]["x-new"] == {"a": [1]}
