"""Readers that are not ours, each giving a table's rows in one comparable form.

What each needs, as seen with DuckDB 1.5.5, Polars 2.1, chDB 4.4 and PyIceberg 0.12:

* DuckDB reads a table by the location of its metadata file, `file://` and `s3://` included. A table's folder is refused
  unless it holds a version hint. Its extensions are loaded from their wheels by path, without a network.
* Polars reads the Parquet files itself, but has PyIceberg plan the scan: it says nothing about manifests that
  `read_with_pyiceberg` does not.
* chDB reads local tables below its working directory alone, hence the process of its own, which starts in the table's
  folder. It takes a metadata file relative to the folder, and puts a zone (UTC) on timestamps that have none.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import duckdb
import polars
import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table

_CHDB_PROGRAM = """
import sys, chdb
from pyarrow import ipc, OSFile
table = chdb.query(sys.argv[1], "ArrowTable")
with OSFile(sys.argv[2], "wb") as file, ipc.new_file(file, table.schema) as writer:
    writer.write_table(table)
"""


def read_with_pyiceberg(table: Table, *, snapshot_id: int | None = None) -> pa.Table:
    """The rows as PyIceberg's scan gives them."""
    return comparable(table.scan(snapshot_id=snapshot_id).to_arrow())


def read_with_duckdb(table: Table | str, *, snapshot_id: int | None = None) -> pa.Table:
    """The rows as DuckDB gives them. `table` may be the location of a metadata file on a local disk."""
    return comparable(_duckdb_query(table, "SELECT * FROM {scan}", snapshot_id=snapshot_id).to_arrow_table())


def count_with_duckdb(table: Table | str, where: str = "true", *, snapshot_id: int | None = None) -> int:
    """How many rows DuckDB finds that fulfil the SQL condition `where`."""
    query = f"SELECT count(*) FROM {{scan}} WHERE {where}"
    (count,) = _duckdb_query(table, query, snapshot_id=snapshot_id).fetchall()[0]
    return int(count)


def files_scanned_by_duckdb(table: Table | str, where: str = "true") -> int:
    """How many data files DuckDB opens for `where`: the rest was pruned by partition values or column bounds.

    The number is DuckDB's own, of its analysed plan ("Total Files Read" of the scan).
    """
    query = f"EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM {{scan}} WHERE {where}"
    plan = json.loads(_duckdb_query(table, query).fetchall()[0][1])
    return sum(int(scan["extra_info"]["Total Files Read"]) for scan in _iceberg_scans(plan))


def read_with_polars(table: Table, *, snapshot_id: int | None = None) -> pa.Table:
    """The rows as Polars' own Parquet reader gives them."""
    os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")  # named, for the unnamed default warns
    options = _polars_s3_options(table.io.properties) if table.location().startswith("s3:") else None
    scan = polars.scan_iceberg(table, snapshot_id=snapshot_id, storage_options=options, reader_override="native")
    return comparable(scan.collect().to_arrow())


def read_with_chdb(table: Table, folder: Path) -> pa.Table:
    """The rows as ClickHouse gives them, for a local table. `folder` is where the result may lie for a moment."""
    location = local_path(table.location())
    metadata = local_path(table.metadata_location).relative_to(location)
    query = f"SELECT * FROM icebergLocal('{location}', SETTINGS iceberg_metadata_file_path = '{metadata}')"
    result = folder / "chdb.arrow"
    command = [sys.executable, "-c", _CHDB_PROGRAM, query, str(result)]
    subprocess.run(command, cwd=location, check=True, timeout=120)
    with pa.OSFile(str(result)) as file:
        rows = pa.ipc.open_file(file).read_all()
    schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    return comparable(rows.select(schema.names).cast(schema))


def comparable(table: pa.Table) -> pa.Table:
    """The same rows in a form that two readers agree on: one order of columns and of rows, one type for each kind.

    Large and view types become plain ones, dictionaries their values, timestamps microseconds (UTC where zoned), fields
    lose their metadata and names within lists and maps.
    """
    names = sorted(table.column_names)
    schema = pa.schema([pa.field(name, _plain_type(table.schema.field(name).type)) for name in names])
    plain = table.select(names).cast(schema).combine_chunks()
    order = sorted(range(plain.num_rows), key=[repr(row) for row in plain.to_pylist()].__getitem__)
    return plain.take(pa.array(order, pa.int64())).combine_chunks()


def local_path(location: str) -> Path:
    """The path behind a `file://` location, or the location itself when it is a path."""
    return Path(unquote(urlsplit(location).path)) if location.startswith("file:") else Path(location)


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(data_type):
        return _plain_type(data_type.value_type)
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us", "UTC" if data_type.tz else None)
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return pa.binary()
    return _plain_nested(data_type)


def _plain_nested(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(_plain_type(data_type.key_type), _plain_type(data_type.item_type))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return pa.list_(pa.field("element", _plain_type(data_type.value_type)))
    return data_type


@functools.cache
def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """One connection with its extensions, for all reads; `LOAD` alone takes a third of a second."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "httpfs", "iceberg"):
        wheel = importlib.resources.files(f"duckdb_extension_{name}")
        connection.load_extension(str(wheel / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"))
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _duckdb_query(table: Table | str, query: str, *, snapshot_id: int | None = None) -> duckdb.DuckDBPyConnection:
    location = table if isinstance(table, str) else table.metadata_location
    connection = duckdb_connection().cursor()
    if not isinstance(table, str) and location.startswith("s3://"):
        _give_s3_secret(connection, table.io.properties)
    option = "" if snapshot_id is None else f", snapshot_from_id = {snapshot_id}"
    return connection.execute(query.format(scan=f"iceberg_scan('{location}'{option})"))


def _give_s3_secret(connection: duckdb.DuckDBPyConnection, properties: Mapping[str, Any]) -> None:
    endpoint = urlsplit(properties["s3.endpoint"])
    connection.execute(
        "CREATE OR REPLACE SECRET warehouse (TYPE s3, URL_STYLE 'path',"
        f" KEY_ID '{properties['s3.access-key-id']}', SECRET '{properties['s3.secret-access-key']}',"
        f" REGION '{properties['s3.region']}', ENDPOINT '{endpoint.netloc}', USE_SSL {endpoint.scheme == 'https'})"
    )


def _polars_s3_options(properties: Mapping[str, Any]) -> dict[str, str]:
    """Polars takes no endpoint from PyIceberg's properties and would ask Amazon."""
    endpoint = properties["s3.endpoint"]
    return {
        "aws_endpoint_url": endpoint,
        "aws_access_key_id": properties["s3.access-key-id"],
        "aws_secret_access_key": properties["s3.secret-access-key"],
        "aws_region": properties["s3.region"],
        "aws_allow_http": str(endpoint.startswith("http:")).lower(),
    }


def _iceberg_scans(plan: dict[str, Any]) -> list[dict[str, Any]]:
    scans = [scan for child in plan.get("children", []) for scan in _iceberg_scans(child)]
    return [plan, *scans] if re.fullmatch("ICEBERG_SCAN", plan.get("operator_name", "").strip()) else scans
