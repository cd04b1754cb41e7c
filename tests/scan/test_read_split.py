"""What the core reads is what independent readers read, whatever the files hold and whatever was deleted of them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThan, GreaterThanOrEqual, IsNull, LessThan, Or, StartsWith
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

import frazil
from deletes import data_files, delete_by_vector, delete_equal, delete_positions, vector_blob
from frazil.errors import SourceUnreadable, StorageFailed
from frazil.scan.delete_index import DeleteFile
from frazil.scan.deleted_positions import DeletedPositions
from frazil.scan.read_split import read_split
from frazil.snapshot.partition_by import partition_spec
from lakes import Lake, append, rows
from readers import comparable, local_path, read_with_duckdb, read_with_pyiceberg
from scans import scanned, scanned_ids, splits
from test_readers_agree import SCHEMA as EVERY_TYPE
from test_readers_agree import assert_same, publish
from test_readers_agree import rows as rows_of_every_type


@pytest.mark.parametrize("partition_by", ["", "day(at), bucket(2, id)", "price", "key", "instant"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_type_is_read_as_it_was_written(lake: Lake, version: int, partition_by: str) -> None:
    spec = {"spec": partition_spec(partition_by, EVERY_TYPE)} if partition_by else {}
    table = lake.table(schema=EVERY_TYPE, version=version, **spec)
    publish(table, rows_of_every_type(0, 12), rows_of_every_type(12, 12))
    found = comparable(scanned(table))
    assert_same(found, comparable(rows_of_every_type()))
    assert_same(found, read_with_duckdb(table))


def test_a_schema_that_evolved_is_read_by_field_ids(lake: Lake) -> None:
    table = lake.table(schema=Schema(NestedField(1, "id", IntegerType()), NestedField(2, "old", StringType())))
    publish(table, pa.table({"id": pa.array([1, 2], pa.int32()), "old": ["a", "b"]}))
    with table.update_schema() as change:
        change.add_column("added", DoubleType())
        change.update_column("id", LongType())
        change.rename_column("old", "new")
    with table.update_schema() as change:
        change.move_first("new")
        change.add_column("old", StringType())
    publish(table, pa.table({"id": [2**40], "new": ["c"], "added": [0.5], "old": ["x"]}))
    found = comparable(scanned(table))
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"added": None, "id": 1, "new": "a", "old": None},
        {"added": None, "id": 2, "new": "b", "old": None},
        {"added": 0.5, "id": 2**40, "new": "c", "old": "x"},
    ]
    assert found == read_with_duckdb(table)
    assert scanned_ids(table, GreaterThan("id", 1)) == [2, 2**40]
    assert scanned_ids(table, IsNull("old")) == [1, 2]


def test_nested_fields_evolve_by_their_ids_and_null_stays_null_at_every_level(lake: Lake) -> None:
    item = StructType(NestedField(4, "a", IntegerType()), NestedField(5, "b", StringType()))
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "items", ListType(3, item, element_required=False))
    )
    table = lake.table(schema=schema)
    kind = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))
    first = [None, [], [None, {"a": None, "b": "x"}], [{"a": 1, "b": None}, {"a": 2, "b": "y"}]]
    publish(table, pa.table({"id": range(4), "items": pa.array(first, kind)}))
    with table.update_schema() as change:
        change.update_column(("items", "element", "a"), LongType())
        change.rename_column(("items", "element", "b"), "c")
        change.add_column(("items", "element", "d"), DoubleType())
    found = {row["id"]: row["items"] for row in scanned(table).to_pylist()}
    assert found == {
        0: None,
        1: [],
        2: [None, {"a": None, "c": "x", "d": None}],
        3: [{"a": 1, "c": None, "d": None}, {"a": 2, "c": "y", "d": None}],
    }
    assert found == {row["id"]: row["items"] for row in read_with_duckdb(table).to_pylist()}


def test_a_column_added_with_a_default_has_it_in_older_files(lake: Lake) -> None:
    table = lake.table(version=3)
    append(table, 1, 2)
    with table.update_schema() as change:
        change.add_column("price", LongType(), default_value=7)
    publish(table, pa.table({"id": [3], "text": ["c"], "price": [9]}))
    assert [row["price"] for row in comparable(scanned(table)).to_pylist()] == [7, 7, 9]
    assert scanned_ids(table, EqualTo("price", 7)) == [1, 2]
    assert comparable(scanned(table)) == read_with_pyiceberg(table)


@pytest.mark.parametrize("split_bytes", [None, 1])
def test_position_deletes_are_applied(lake: Lake, split_bytes: int | None) -> None:
    table = lake.table()
    append(table, *range(100))
    append(table, *range(100, 200))
    first, second = data_files(table)
    delete_positions(table, {first: [0, 99], second: [5]})
    delete_positions(table, {first: [50]})
    found = scanned(table, split_bytes=split_bytes)
    assert found.num_rows == 196
    assert comparable(found) == read_with_duckdb(table) == read_with_pyiceberg(table)


def test_deletes_do_not_touch_rows_that_came_later(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2)
    delete_equal(table, rows(1), "id")
    append(table, 1, 3)
    assert scanned_ids(table) == [1, 2, 3]
    assert comparable(scanned(table)) == read_with_duckdb(table)


def test_equality_deletes_hit_whole_keys_of_several_columns_and_null_equals_null(lake: Lake) -> None:
    table = lake.table()
    publish(table, pa.table({"id": [1, 1, 2, 2, None, None], "text": ["a", "b", "a", None, None, "a"]}))
    gone = pa.table({"id": pa.array([1, 2, None], pa.int64()), "text": pa.array(["a", None, None])})
    delete_equal(table, gone, "id", "text")
    found = scanned(table)
    left = set(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))
    assert (left, found.num_rows) == (
        {(1, "b"), (2, "a"), (None, "a")},
        3,
    )  # DuckDB 1.5 takes (None, "a") for equal too


def test_equality_deletes_of_several_files_and_columns_are_applied_together(lake: Lake) -> None:
    table = lake.table()
    append(table, *range(1000))
    delete_equal(table, rows(*range(0, 1000, 7)), "id", "text")
    delete_equal(table, rows(*range(0, 1000, 5)), "text")
    delete_equal(table, rows(*range(0, 1000, 3)), "id")
    found = scanned(table)
    assert found.num_rows == sum(1 for n in range(1000) if n % 7 and n % 5 and n % 3)
    assert comparable(found) == read_with_duckdb(table)


def test_equality_deletes_by_a_column_that_is_not_read_are_applied(lake: Lake) -> None:
    table = lake.table()
    append(table, *range(10))
    delete_equal(table, rows(3, 4), "text")
    assert scanned_ids(table) == [0, 1, 2, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("name", ["price", "day", "key", "instant", "name", "blob", "huge"])
def test_equality_deletes_know_every_kind_of_value(lake: Lake, name: str) -> None:
    table = lake.table(schema=EVERY_TYPE)
    publish(table, rows_of_every_type())
    gone = rows_of_every_type().slice(3, 3)
    delete_equal(table, gone, name)
    assert_same(comparable(scanned(table)), read_with_duckdb(table))


def test_deletion_vectors_are_applied_alone_where_there_is_one(lake: Lake) -> None:
    table = lake.table(version=3)
    append(table, *range(100))
    append(table, *range(100, 200))
    first, second = data_files(table)
    delete_by_vector(table, {first: [0, 7, 99], second: list(range(10, 60))})
    assert scanned(table).num_rows == 147
    assert comparable(scanned(table)) == read_with_duckdb(table) == read_with_pyiceberg(table)


def test_vectors_reach_beyond_32_bits(tmp_path: Path) -> None:
    path, blob = tmp_path / "v.puffin", vector_blob([0, 5, 2**32 + 3, 2**33])
    path.write_bytes(b"xx" + blob)
    delete = DeleteFile(str(path), "PUFFIN", 100, offset=2, length=len(blob))
    found = DeletedPositions.read(PyArrowFileIO(), "f", [delete])
    kept = found.kept_of(2**32, 5)
    assert kept is not None and kept.to_pylist() == [True, True, True, False, True]
    assert found.kept_of(6, 2**20) is None


def test_a_damaged_vector_is_refused_and_not_read_as_no_deletes(lake: Lake) -> None:
    table = lake.table(version=3)
    append(table, *range(10))
    delete_by_vector(table, {data_files(table)[0]: [1, 2]})
    (puffin,) = Path(local_path(table.location())).rglob("*.puffin")
    content = bytearray(puffin.read_bytes())
    content[-40] ^= 0xFF  # in the footer: not ours to read
    content[20] ^= 0xFF
    puffin.write_bytes(bytes(content))
    with pytest.raises(StorageFailed, match=r"vectors-.*\.puffin .*checksum"):
        scanned(table)


def test_a_file_that_is_gone_is_named(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    (path,) = data_files(table)
    local_path(path).unlink()
    with pytest.raises(StorageFailed, match="is not there"):
        scanned(table)


def test_rows_are_filtered_wherever_they_are(lake: Lake) -> None:
    table = lake.table(write__parquet__row_group_limit="100")
    append(table, *range(1000))
    where = Or(And(GreaterThanOrEqual("id", 150), LessThan("id", 160)), EqualTo("text", "row 777"))
    assert scanned_ids(table, where) == [*range(150, 160), 777]
    assert scanned_ids(table, where, split_bytes=1) == [*range(150, 160), 777]
    assert scanned_ids(table, StartsWith("text", "row 99")) == [99, *range(990, 1000)]


def test_large_files_are_cut_at_row_groups_and_each_group_is_read_once(lake: Lake) -> None:
    table = lake.table(write__parquet__row_group_limit="100")
    append(table, *range(1000))
    _, parts = splits(table, split_bytes=1)
    assert len(parts) == 10
    assert scanned_ids(table, split_bytes=1) == list(range(1000))
    (first,) = data_files(table)
    delete_positions(table, {first: [0, 150, 999]})
    assert scanned_ids(table, split_bytes=1) == [n for n in range(1000) if n not in (0, 150, 999)]


def test_files_of_others_are_read_by_the_name_mapping_and_their_partition(lake: Lake, tmp_path: Path) -> None:
    table = lake.catalog.create_table("db.hive", SCHEMA_OF_HIVE, partition_spec=partition_spec("day", SCHEMA_OF_HIVE))
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": [1, 2], "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2))}), path)
    _register(table, path, partition=("2026-01-31",))
    expected = [
        {"id": 1, "price": Decimal("1.50"), "day": "2026-01-31"},
        {"id": 2, "price": None, "day": "2026-01-31"},
    ]
    assert sorted(scanned(table).to_pylist(), key=lambda row: row["id"]) == expected
    assert scanned_ids(table, EqualTo("day", "2026-01-31")) == [1, 2]
    assert scanned_ids(table, EqualTo("day", "2026-02-01")) == []


def test_a_required_column_that_a_file_lacks_is_an_error(lake: Lake, tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "must", LongType(), required=True))
    table = lake.table(schema=schema)
    path = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    _register(table, path)
    with pytest.raises(SourceUnreadable, match="lacks column 'must'"):
        scanned(table)


SCHEMA_OF_HIVE = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "price", DecimalType(9, 2)),
    NestedField(3, "day", StringType()),
)


def _register(table, path: Path, partition: tuple[str, ...] = ()) -> None:  # type: ignore[no-untyped-def]
    """A file without field ids, listed in the table, which gets a name mapping for it."""
    with table.transaction() as change:
        change.set_properties(**{"schema.name-mapping.default": table.schema().name_mapping.model_dump_json()})
    snapshot = frazil.begin_snapshot(table)
    file = frazil.DataFile(str(path), pq.read_metadata(path).num_rows, path.stat().st_size, partition=partition)
    frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "a", [file], io=table.io)])


@pytest.mark.parametrize(("count", "text"), [(200_000, "x"), (40_000, "x" * 2000)])
def test_batches_are_bounded_however_large_the_row_group(lake: Lake, count: int, text: str) -> None:
    table = lake.table(write__parquet__compression_codec="uncompressed")
    texts = pa.array([f"{number}{text}" for number in range(count)])
    publish(table, pa.table({"id": pa.array(range(count), pa.int64()), "text": texts}))
    scan, parts = splits(table)
    sizes = [(batch.num_rows, batch.nbytes) for part in parts for batch in read_split(scan, part)]
    assert sum(rows for rows, _ in sizes) == count
    assert max(rows for rows, _ in sizes) <= 65_536
    assert max(size for _, size in sizes) <= 40 * 1024 * 1024
