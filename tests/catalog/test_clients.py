"""Clients that are not ours work with the catalog: PyIceberg and DuckDB over REST, PyIceberg's SqlCatalog on the database."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.types import LongType, StringType

from readers import duckdb_connection
from services.frazil_catalog import FrazilCatalog

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def client(frazil_catalog: FrazilCatalog) -> RestCatalog:
    return frazil_catalog.catalog()


def test_pyiceberg_creates_writes_evolves_renames_and_drops(client: RestCatalog, namespace: str) -> None:
    table = client.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    with table.update_schema() as change:
        change.add_column("text", StringType())
    with table.update_spec() as spec:
        spec.add_identity("text")
    table.append(pa.table({"id": pa.array([4], pa.int64()), "text": ["x"]}))
    client.rename_table(f"{namespace}.t", f"{namespace}.renamed")
    assert not client.table_exists(f"{namespace}.t")
    found = client.load_table(f"{namespace}.renamed").scan().to_arrow()
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        *({"id": each, "text": None} for each in (1, 2, 3)),
        {"id": 4, "text": "x"},
    ]
    client.drop_table(f"{namespace}.renamed")
    assert client.list_tables(namespace) == []


def test_pyiceberg_makes_a_table_and_its_first_rows_in_one_commit(client: RestCatalog, namespace: str) -> None:
    with client.create_table_transaction(f"{namespace}.t", ROWS.schema) as transaction:
        transaction.append(ROWS)
        assert not client.table_exists(f"{namespace}.t")
    assert client.load_table(f"{namespace}.t").scan().to_arrow().num_rows == 3


def test_pyiceberg_hears_the_errors_by_their_names(client: RestCatalog, namespace: str) -> None:
    client.create_table(f"{namespace}.t", ROWS.schema)
    stale = client.load_table(f"{namespace}.t")
    client.load_table(f"{namespace}.t").append(ROWS)
    with pytest.raises(TableAlreadyExistsError):
        client.create_table(f"{namespace}.t", ROWS.schema)
    with pytest.raises(NoSuchTableError):
        client.load_table(f"{namespace}.u")
    with pytest.raises(NamespaceAlreadyExistsError):
        client.create_namespace(namespace)
    with pytest.raises(NoSuchNamespaceError):
        client.create_table("nowhere.t", ROWS.schema)
    with pytest.raises(NamespaceNotEmptyError):
        client.drop_namespace(namespace)
    with pytest.raises(CommitFailedException), stale.transaction() as transaction:
        transaction.set_properties(first="1")
        transaction._requirements += stale_requirements(stale)


def stale_requirements(table: object) -> tuple[object, ...]:
    from pyiceberg.table.update import AssertRefSnapshotId

    return (AssertRefSnapshotId(ref="main", snapshot_id=None),)


def test_the_sql_catalog_of_pyiceberg_opens_the_same_database(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    rest = frazil_catalog.catalog()
    rest.create_namespace((namespace, "inner"), {"owner": "ice"})
    rest.create_table(f"{namespace}.inner.t", ROWS.schema).append(ROWS)
    sql = SqlCatalog("frazil", uri=frazil_catalog.database, warehouse=f"file://{frazil_catalog.root}/warehouse")
    assert sql.load_namespace_properties((namespace, "inner")) == {"owner": "ice", "exists": "true"}
    table = sql.load_table((namespace, "inner", "t"))
    table.append(ROWS)
    sql.create_table((namespace, "inner", "made_by_sql"), ROWS.schema)
    assert rest.load_table((namespace, "inner", "t")).scan().to_arrow().num_rows == 6
    assert sorted(rest.list_tables((namespace, "inner"))) == [
        (namespace, "inner", "made_by_sql"),
        (namespace, "inner", "t"),
    ]


@pytest.fixture
def duck(frazil_catalog: FrazilCatalog) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb_connection().cursor()
    connection.execute(
        f"ATTACH 'frazil' AS lake (TYPE iceberg, ENDPOINT '{frazil_catalog.uri}', AUTHORIZATION_TYPE 'none')"
    )
    yield connection
    connection.execute("DETACH lake")


def test_duckdb_creates_writes_reads_and_drops_over_rest(
    duck: duckdb.DuckDBPyConnection, client: RestCatalog, namespace: str
) -> None:
    duck.execute(f"CREATE TABLE lake.{namespace}.t (id BIGINT, text VARCHAR)")
    duck.execute(f"INSERT INTO lake.{namespace}.t VALUES (1, 'a'), (2, 'b')")
    table = client.load_table(f"{namespace}.t")
    assert table.schema().find_field("id").field_type == LongType()
    assert sorted(table.scan().to_arrow()["text"].to_pylist()) == ["a", "b"]
    table.append(pa.table({"id": pa.array([3], pa.int64()), "text": ["c"]}))
    assert duck.execute(f"SELECT count(*), sum(id) FROM lake.{namespace}.t").fetchone() == (3, 6)
    duck.execute(f"CREATE TABLE lake.{namespace}.copy AS SELECT * FROM lake.{namespace}.t")
    assert client.load_table(f"{namespace}.copy").scan().to_arrow().num_rows == 3
    duck.execute(f"DROP TABLE lake.{namespace}.t")
    assert not client.table_exists(f"{namespace}.t")
