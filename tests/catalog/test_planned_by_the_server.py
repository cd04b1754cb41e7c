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
from frazil.snapshot.delete_file import write_position_deletes
from services.frazil_catalog import FrazilCatalog

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
