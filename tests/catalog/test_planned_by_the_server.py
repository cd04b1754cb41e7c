"""PyIceberg lets the server plan its scans, and reads what it reads when it plans them itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType

import frazil
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.delete_file import write_position_deletes
from readers import local_path
from services.frazil_catalog import FrazilCatalog, Reply

COLUMNS = Schema(NestedField(1, "id", LongType()), NestedField(2, "city", StringType()))
SPEC = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))


def rows(first: int) -> pa.Table:
    ids = range(first, first + 10)
    return pa.table({"id": pa.array(ids, pa.int64()), "city": [f"city {one % 3}" for one in ids]})


@pytest.fixture
def clients(frazil_catalog: FrazilCatalog, namespace: str) -> tuple[Any, Any, str]:
    """A client that plans and one that has the server plan, and a table of three appends."""
    own = frazil_catalog.catalog()
    planned = RestCatalog("frazil", uri=frazil_catalog.uri, warehouse="frazil", **{"scan-planning-mode": "server"})
    table = own.create_table(f"{namespace}.t", COLUMNS, partition_spec=SPEC)
    for first in (0, 10, 20):
        table.append(rows(first))
    return own, planned, f"{namespace}.t"


@pytest.mark.parametrize("row_filter", [None, "id = 7", "id > 12 and city = 'city 1'", "not (id < 25)", "city is null"])
def test_what_the_server_plans_reads_the_same_rows(clients: tuple[Any, Any, str], row_filter: str | None) -> None:
    own, planned, name = clients
    assert planned.supports_server_side_planning()
    scan = {} if row_filter is None else {"row_filter": row_filter}
    read = [client.load_table(name).scan(**scan).to_arrow().sort_by("id").to_pylist() for client in (own, planned)]
    assert read[0] == read[1]


def test_deletes_are_applied(clients: tuple[Any, Any, str]) -> None:
    own, planned, name = clients
    table = own.load_table(name)
    file = next(iter(table.scan(row_filter="id = 7").plan_files())).file
    deletes = f"{table.location()}/data/deletes.parquet"
    partition = tuple(file.partition[place] for place in range(len(file.partition)))
    snapshot = frazil.begin_snapshot(table)
    written = write_position_deletes(table.io, deletes, {file.file_path: [0]}, partition=partition)
    frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "part-0", [written], io=table.io)])
    read = [client.load_table(name).scan().to_arrow().sort_by("id").to_pylist() for client in (own, planned)]
    assert len(read[0]) == 29
    assert read[0] == read[1]


def test_a_plan_is_asked_for_again_cancelled_and_forgotten(
    frazil_catalog: FrazilCatalog, clients: tuple[Any, Any, str]
) -> None:
    namespace, table = clients[2].split(".")
    path = f"/v1/namespaces/{namespace}/tables/{table}/plan"
    reply = frazil_catalog.ask("POST", path, {"filter": {"type": "eq", "term": "id", "value": 7}}).document
    assert reply["status"] == "completed"
    again = frazil_catalog.ask("GET", f"{path}/{reply['plan-id']}").document
    assert again == {name: value for name, value in reply.items() if name != "plan-id"}
    assert frazil_catalog.ask("DELETE", f"{path}/{reply['plan-id']}").status == 204
    assert frazil_catalog.ask("GET", f"{path}/nothing").error[:2] == (404, "NoSuchPlanIdException")
    tasks = frazil_catalog.ask("POST", path.replace("/plan", "/tasks"), {"plan-task": "nothing"})
    assert tasks.error[:2] == (404, "NoSuchPlanTaskException")


def append(table: Any, first: int) -> None:
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [frazil.write_shard(snapshot, "part-0", [rows(first)], io=table.io)])
    table.refresh()


def test_the_files_of_v3_have_their_row_ids(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    table = frazil_catalog.catalog().create_table(f"{namespace}.t", COLUMNS, properties={"format-version": "3"})
    for first in (0, 10, 20):
        append(table, first)
    tasks = tasks_of(frazil_catalog, namespace).values()
    assert sorted(task["data-file"]["first-row-id"] for task in tasks) == [0, 10, 20]


def test_a_deletion_vector_takes_the_place_of_older_position_deletes(
    frazil_catalog: FrazilCatalog, namespace: str
) -> None:
    table = frazil_catalog.catalog().create_table(f"{namespace}.t", COLUMNS)
    append(table, 0)
    append(table, 10)
    first, second = tasks_of(frazil_catalog, namespace)
    old = write_position_deletes(table.io, f"{table.location()}/data/old.parquet", {first: [0], second: [0]})
    commit_files(table, old)
    upgrade = [{"action": "upgrade-format-version", "format-version": 3}]
    assert frazil_catalog.commit(namespace, "t", [], upgrade).status == 200
    table.refresh()
    commit_files(table, vector_of(table, first))
    tasks = tasks_of(frazil_catalog, namespace)
    assert [one["file-format"] for one in tasks[second]["deletes"]] == ["parquet"]
    (vector,) = tasks[first]["deletes"]
    assert (vector["file-format"], vector["referenced-data-file"]) == ("puffin", first)
    assert (vector["content-offset"], vector["content-size-in-bytes"]) == (4, 40)


def vector_of(table: Any, path: str) -> DataFile:
    """A deletion vector of a data file, described; nobody reads it."""
    return DataFile(
        f"{table.location()}/data/vectors.puffin",
        1,
        100,
        content=FileContent.POSITION_DELETES,
        file_format="PUFFIN",
        referenced_data_file=path,
        content_offset=4,
        content_size_in_bytes=40,
    )


def commit_files(table: Any, *files: DataFile) -> None:
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "part-0", files, io=table.io)])
    table.refresh()


def tasks_of(server: FrazilCatalog, namespace: str) -> dict[str, Any]:
    """The file scan tasks by path, each with its delete files."""
    reply = server.ask("POST", f"/v1/namespaces/{namespace}/tables/t/plan", {}).document
    tasks = reply["file-scan-tasks"]
    for task in tasks:
        task["deletes"] = [reply["delete-files"][place] for place in task.get("delete-file-references", ())]
    return {task["data-file"]["file-path"]: task for task in tasks}


def test_files_that_are_gone_or_are_no_manifests_are_told_of(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    table = frazil_catalog.catalog().create_table(f"{namespace}.t", COLUMNS)
    append(table, 0)
    (manifest,) = table.current_snapshot().manifests(table.io)
    for path in (manifest.manifest_path, table.current_snapshot().manifest_list):
        file = local_path(path)
        for junk in (b"", b"no Avro", b"Obj\x01" + bytes(60), file.read_bytes()[:-40]):
            file.write_bytes(junk)
            code, kind, message = plan(frazil_catalog, namespace).error
            assert (code, kind) == (400, "BadRequestException")
            assert path in message
        file.unlink()
        assert plan(frazil_catalog, namespace).error == (
            404,
            "NotFoundException",
            f"Failed to open input stream for file: {path}",
        )


def plan(server: FrazilCatalog, namespace: str) -> Reply:
    return server.ask("POST", f"/v1/namespaces/{namespace}/tables/t/plan", {})
