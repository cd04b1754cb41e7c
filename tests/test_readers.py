"""The readers agree with what PyIceberg was given to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

from readers import (
    comparable,
    count_with_duckdb,
    files_scanned_by_duckdb,
    read_with_chdb,
    read_with_duckdb,
    read_with_polars,
    read_with_pyiceberg,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.table import Table

    from services.seaweedfs import SeaweedFS

DAY = 86_400_000_000
ROWS = pa.table(
    {
        "id": pa.array(range(400), pa.int64()),
        "kind": pa.array([f"k{number % 4}" for number in range(400)]),
        "at": pa.array([number * DAY for number in range(400)], pa.timestamp("us")),
        "seen": pa.array([number * DAY if number % 3 else None for number in range(400)], pa.timestamp("us", "UTC")),
        "price": pa.array([number - 200 for number in range(400)], pa.int32()).cast(pa.decimal128(12, 2)),
        "ratio": pa.array([number / 7 for number in range(400)], pa.float64()),
        "nest": pa.array([{"a": number, "b": ["x", None]} for number in range(400)]),
    }
)


def write_table(catalog: Catalog, identifier: str, version: int) -> Table:
    table = catalog.create_table(identifier, schema=ROWS.schema, properties={"format-version": str(version)})
    with table.update_spec() as update:
        update.add_field("kind", IdentityTransform(), "kind")
    table.append(ROWS)
    return table


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    return write_table(catalog, "db.t", request.param)


def test_pyiceberg_gives_the_rows_that_were_written(table: Table) -> None:
    assert read_with_pyiceberg(table).equals(comparable(ROWS))


def test_duckdb_gives_the_rows_that_were_written(table: Table) -> None:
    assert read_with_duckdb(table).equals(comparable(ROWS))


def test_polars_gives_the_rows_that_were_written(table: Table) -> None:
    assert read_with_polars(table).equals(comparable(ROWS))


def test_chdb_gives_the_rows_that_were_written(table: Table, tmp_path: Path) -> None:
    assert read_with_chdb(table, tmp_path).equals(comparable(ROWS))


def test_duckdb_opens_one_file_of_four_for_one_partition_value(table: Table) -> None:
    assert files_scanned_by_duckdb(table) == 4
    assert files_scanned_by_duckdb(table, "kind = 'k1'") == 1


def test_duckdb_opens_no_file_when_the_bounds_exclude_all(table: Table) -> None:
    assert files_scanned_by_duckdb(table, "id > 1000") == 0
    assert count_with_duckdb(table, "id > 390") == 9


def test_duckdb_reads_an_earlier_snapshot_by_its_id(table: Table) -> None:
    earlier = table.current_snapshot()
    assert earlier is not None
    table.append(ROWS)
    assert count_with_duckdb(table) == 800
    assert count_with_duckdb(table, snapshot_id=earlier.snapshot_id) == 400
    assert read_with_pyiceberg(table, snapshot_id=earlier.snapshot_id).num_rows == 400
    assert read_with_polars(table, snapshot_id=earlier.snapshot_id).num_rows == 400


def test_comparable_tells_a_lost_row_and_a_changed_value() -> None:
    changed = ROWS.set_column(0, "id", pa.array([1, *range(1, 400)], pa.int64()))
    assert not comparable(ROWS.slice(1)).equals(comparable(ROWS))
    assert not comparable(changed).equals(comparable(ROWS))
    assert comparable(ROWS.slice(200)).num_rows + comparable(ROWS.slice(0, 200)).num_rows == comparable(ROWS).num_rows
    assert comparable(pa.concat_tables([ROWS.slice(200), ROWS.slice(0, 200)])).equals(comparable(ROWS))


def assert_readers_agree(table: Table) -> None:
    expected = comparable(ROWS)
    assert read_with_pyiceberg(table).equals(expected)
    assert read_with_duckdb(table).equals(expected)
    assert read_with_polars(table).equals(expected)


@pytest.mark.parametrize("version", [1, 2])
def test_the_readers_read_from_s3(seaweedfs: SeaweedFS, tmp_path: Path, version: int) -> None:
    catalog = seaweedfs.sql_catalog(tmp_path / "catalog.db", f"{tmp_path.name}-{version}")
    catalog.create_namespace("db")
    assert_readers_agree(write_table(catalog, "db.t", version))


@pytest.mark.parametrize("version", [1, 2])
def test_the_readers_read_what_a_rest_catalog_keeps(
    seaweedfs_catalog: RestCatalog, seaweedfs_namespace: str, version: int
) -> None:
    assert_readers_agree(write_table(seaweedfs_catalog, f"{seaweedfs_namespace}.t", version))
