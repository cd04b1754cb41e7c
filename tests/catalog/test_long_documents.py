"""Tables with a long history: their metadata is packed on disk and on the wire, and says the same."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from catalog.documents import NOW, Document, add, point, snapshot
from readers import local_path
from services.frazil_catalog import FrazilCatalog


def long_table(server: FrazilCatalog, namespace: str, count: int = 1500, **properties: str) -> Document:
    """A table with so many snapshots, registered; the reply."""
    made = server.new_table(namespace, "short", properties=properties)
    metadata, location = made["metadata"], made["metadata-location"]
    ids = range(1, count + 1)
    metadata |= {
        "snapshots": [snapshot(number, **{"parent-snapshot-id": number - 1}) for number in ids],
        "snapshot-log": [{"snapshot-id": number, "timestamp-ms": NOW + number} for number in ids],
        "refs": {"main": {"type": "branch", "snapshot-id": count}},
        "current-snapshot-id": count,
        "last-sequence-number": count,
    }
    file = location.rsplit("/", 1)[0] + "/00001-long.metadata.json"
    local_path(file).write_text(json.dumps(metadata))
    assert server.ask("DELETE", f"/v1/namespaces/{namespace}/tables/short").status == 204
    body = {"name": "long", "metadata-location": file}
    reply: Document = server.ask("POST", f"/v1/namespaces/{namespace}/register", body).document
    return reply


def append(server: FrazilCatalog, namespace: str, number: int, query: str = "", **headers: str) -> Any:
    updates = [add(snapshot(number, **{"parent-snapshot-id": number - 1})), point(number)]
    path = f"/v1/namespaces/{namespace}/tables/long{query}"
    reply = server.ask("POST", path, {"requirements": [], "updates": updates}, **headers)
    assert reply.status == 200, reply.body
    return reply


def test_a_client_that_takes_packed_replies_gets_them_and_the_others_do_not(
    frazil_catalog: FrazilCatalog, namespace: str
) -> None:
    registered = long_table(frazil_catalog, namespace)
    path = f"/v1/namespaces/{namespace}/tables/long"
    plain = frazil_catalog.ask("GET", path)
    packed = frazil_catalog.ask("GET", path, Accept_Encoding="br, gzip")
    assert plain.document == registered
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert json.loads(gzip.decompress(packed.body)) == registered
    assert len(packed.body) * 10 < len(plain.body)
    assert "content-encoding" not in frazil_catalog.ask("GET", path, Accept_Encoding="gzip;q=0").headers


def test_a_commit_answers_packed_and_then_loads_the_same(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    long_table(frazil_catalog, namespace)
    for number in range(1501, 1504):
        reply = append(frazil_catalog, namespace, number, Accept_Encoding="gzip")
        loaded = frazil_catalog.ask("GET", f"/v1/namespaces/{namespace}/tables/long").document["metadata"]
        assert json.loads(gzip.decompress(reply.body))["metadata"] == loaded
        assert loaded["snapshots"][-1]["snapshot-id"] == number


def test_a_commit_may_ask_for_the_referenced_snapshots_alone(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    long_table(frazil_catalog, namespace)
    metadata = append(frazil_catalog, namespace, 1501, "?snapshots=refs").document["metadata"]
    assert [one["snapshot-id"] for one in metadata["snapshots"]] == [1501]
    refused = frazil_catalog.ask(
        "POST", f"/v1/namespaces/{namespace}/tables/long?snapshots=some", {"requirements": [], "updates": []}
    )
    assert refused.status == 400


@pytest.mark.parametrize(
    ("properties", "packed"),
    [
        ({}, True),
        ({"write.metadata.compression-codec": "none"}, False),
        ({"write.metadata.compression-codec": "GZIP"}, True),
    ],
)
def test_a_long_table_has_its_metadata_files_packed_unless_it_says_otherwise(
    frazil_catalog: FrazilCatalog, namespace: str, properties: dict[str, str], packed: bool
) -> None:
    long_table(frazil_catalog, namespace, **properties)
    reply = append(frazil_catalog, namespace, 1501).document
    file = local_path(reply["metadata-location"])
    assert file.name.endswith(".gz.metadata.json") == packed
    content = gzip.decompress(file.read_bytes()) if packed else file.read_bytes()
    assert json.loads(content) == reply["metadata"]
    table = frazil_catalog.catalog().load_table(f"{namespace}.long")
    assert len(table.metadata.snapshots) == 1501
