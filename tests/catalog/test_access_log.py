"""What is told of requests: lines of JSON, the audit of changes, and numbers for Prometheus."""

from __future__ import annotations

import re
from typing import Any

import pytest
import requests

from frazil.catalog.access_log import READING
from frazil.catalog.authorization import NEEDED
from frazil.catalog.metrics import Counter, Gauge, Histogram, exposition
from frazil.catalog.privileges import Place, Privilege
from guarded import SCHEMA, GuardedCatalog, Start


def lines(catalog: GuardedCatalog, log: str, operation: str) -> list[dict[str, Any]]:
    return [line for line in catalog.lines if (line["log"], line["operation"]) == (log, operation)]


def test_a_request_is_one_line_with_who_what_and_how_it_ended(guarded: Start) -> None:
    catalog = guarded(authentication=True)
    catalog.make("db.t")
    catalog.ask(catalog.root, "GET", "namespaces/db/tables/t?snapshots=refs")
    (line,) = lines(catalog, "access", "loadTable")
    assert {key: line[key] for key in ("principal", "method", "path", "status", "client")} == {
        "principal": "root", "method": "GET", "path": "/v1/frazil/namespaces/db/tables/t", "status": 200,
        "client": "127.0.0.1",
    }  # fmt: skip
    assert line["bytes"] > 100 and line["ms"] > 0 and line["time"].endswith("+00:00")


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-123", True), ("a" * 128, True), ("a" * 129, False), ('x"}{"y', False), ("", False)],
)
def test_a_request_id_comes_back_and_stands_in_the_log_unless_it_could_garble_it(
    guarded: Start, given: str, kept: bool
) -> None:
    catalog = guarded()
    reply = catalog.ask(None, "GET", "namespaces", **{"X-Request-Id": given})
    told = reply.headers["x-request-id"]
    assert (told == given) == kept and re.fullmatch(r"[\w.-]+", told)
    assert [line["request_id"] for line in catalog.lines] == [told]


def test_a_change_has_an_audit_line_that_names_everything_it_touched(guarded: Start) -> None:
    catalog = guarded(authentication=True)
    catalog.make("db.t", "other.u")
    who = catalog.principal("who", (Privilege.DROP, Place(("db",))))
    sides = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["other"], "name": "v"}}
    for caller in (who, catalog.root, catalog.root):
        catalog.ask(caller, "POST", "tables/rename", sides)
    audits = lines(catalog, "audit", "renameTable")
    assert [(each["principal"], each["status"], each["outcome"]) for each in audits] == [
        ("who", 403, "denied"), ("root", 204, "done"), ("root", 404, "refused"),
    ]  # fmt: skip
    assert audits[1]["on"] == [
        {"operation": "renameTable", "namespace": ["db"], "name": "t"},
        {"operation": "createTable", "namespace": ["other"], "name": "v"},
    ]


def test_reading_leaves_no_audit_line_and_every_operation_is_either(guarded: Start) -> None:
    catalog = guarded()
    catalog.make("db.t")
    catalog.ask(None, "GET", "namespaces/db/tables/t")
    assert not lines(catalog, "audit", "loadTable")
    changing = NEEDED.keys() - READING
    assert changing == {
        "createNamespace", "dropNamespace", "updateProperties", "createTable", "registerTable", "updateTable", "dropTable",
        "unregisterTable", "renameTable", "commitTransaction", "createView", "registerView", "replaceView", "dropView",
        "renameView", "setLocation",
    }  # fmt: skip


def test_no_secret_stands_in_any_line(guarded: Start) -> None:
    catalog = guarded(authentication=True)
    credential = catalog.principal("who")
    token = catalog.token(credential)
    catalog.ask(credential, "POST", f"namespaces?token={token}", {"namespace": [credential.secret]})
    form = {"grant_type": "client_credentials", "client_id": credential.client_id, "client_secret": "wrong-secret"}
    requests.post(f"{catalog.uri}/v1/oauth/tokens?client_secret=in-query", data=form, timeout=10)
    told = catalog.log.getvalue().decode()
    assert "createNamespace" in told and "getToken" in told
    for secret in (token, credential.secret, "wrong-secret", "in-query"):
        assert secret not in told.replace(f'["{credential.secret}"]', "")


def test_health_is_told_only_in_the_metrics_and_needs_no_token(guarded: Start) -> None:
    catalog = guarded(authentication=True)
    for path in ("health", "ready", "metrics"):
        assert requests.get(f"{catalog.uri}/{path}", timeout=10).status_code == 200
    assert not catalog.lines
    assert 'operation="health",status="200"} 1' in requests.get(f"{catalog.uri}/metrics", timeout=10).text


def test_the_metrics_count_requests_changes_and_staged_creates(guarded: Start) -> None:
    catalog = guarded()
    catalog.make("db.t")
    catalog.ask(None, "POST", "namespaces/db/tables", {"name": "new", "schema": SCHEMA, "stage-create": True})
    catalog.ask(None, "GET", "namespaces/db/tables/missing")
    reply = requests.get(f"{catalog.uri}/metrics", timeout=10)
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = dict(
        re.fullmatch(r"(\S+) (\S+)", re.sub(r'process="\d+",?', "", line)).groups()  # type: ignore[union-attr]
        for line in reply.text.splitlines() if not line.startswith("#")
    )  # fmt: skip
    assert samples['frazil_catalog_requests_total{operation="createTable",status="200"}'] == "2"
    assert samples['frazil_catalog_requests_total{operation="loadTable",status="404"}'] == "1"
    assert samples['frazil_catalog_changes_total{operation="createTable",outcome="done"}'] == "2"
    assert samples['frazil_catalog_request_seconds_count{operation="createNamespace"}'] == "1"
    assert samples["frazil_catalog_staged_creates_total"] == "1"


def test_the_exposition_is_what_prometheus_reads() -> None:
    counter, histogram = Counter("c_total", "How often.", ("name",)), Histogram("s", "Seconds.", (), (0.5, 1.0))
    counter.add('a"b\\c\nd')
    counter.add("x", count=2)
    for value in (0.2, 0.5, 0.7, 3.0):
        histogram.observe(value)
    expected = """# HELP c_total How often.
# TYPE c_total counter
c_total{name="a\\"b\\\\c\\nd"} 1
c_total{name="x"} 2
# HELP g Now.
# TYPE g gauge
g 2.5
# HELP s Seconds.
# TYPE s histogram
s_bucket{le="0.5"} 2
s_bucket{le="1"} 3
s_bucket{le="+Inf"} 4
s_sum 4.4
s_count 4
"""
    assert exposition([counter, Gauge("g", "Now.", lambda: 2.5), histogram]).decode() == expected
