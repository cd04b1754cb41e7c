"""Data files and their metrics, held against PyIceberg's own reading of the same files."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.io.pyarrow import (
    PyArrowFileIO,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from frazil.errors import BadInput, StorageFailed
from frazil.snapshot.column_metrics import leaf_columns
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.parquet_file import ParquetFile
from frazil.snapshot.parquet_properties import ParquetProperties

UTC = dt.UTC
FLAT = [
    (BooleanType(), [True, False, None]),
    (IntegerType(), [-3, 7, None]),
    (LongType(), [-(2**40), 2**50, None]),
    (FloatType(), [-1.5, 2.25, None]),
    (DoubleType(), [-1.5, 2.25, None]),
    (DecimalType(9, 2), [Decimal("-1.28"), Decimal("1.28"), None]),
    (DecimalType(15, 2), [Decimal("-92233720368.55"), Decimal("3.00"), None]),
    (DecimalType(38, 5), [Decimal("-1.5") * 10**30, Decimal("2.5") * 10**30, None]),
    (DateType(), [dt.date(1950, 1, 1), dt.date(2024, 2, 29), None]),
    (TimeType(), [dt.time(0, 0, 1), dt.time(23, 59, 59, 999999), None]),
    (TimestampType(), [dt.datetime(1950, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 4), None]),
    (TimestamptzType(), [dt.datetime(1950, 1, 1, tzinfo=UTC), dt.datetime(2024, 2, 29, tzinfo=UTC), None]),
    (StringType(), ["a", "zé😀" * 20, None]),
    (BinaryType(), [b"\x00" * 20, b"\xfe" * 20, None]),
]


def schema_of(*types: object) -> Schema:
    return Schema(*[NestedField(at + 1, f"c{at}", kind, required=False) for at, kind in enumerate(types)])


def write(
    path: Path, schema: Schema, tables: list[pa.Table], properties: dict[str, str] | None = None
) -> tuple[DataFile, pq.FileMetaData]:
    properties = properties or {}
    file = ParquetFile(
        PyArrowFileIO(),
        str(path),
        schema_to_pyarrow(schema),
        leaf_columns(schema, properties),
        ParquetProperties.of_table(properties),
        [],
    )
    for table in tables:
        file.write_row_group(table)
    return file.close(), pq.read_metadata(path)


def rows(schema: Schema, columns: list[list[object]]) -> pa.Table:
    arrow = schema_to_pyarrow(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow)


@pytest.mark.parametrize("mode", ["truncate(16)", "truncate(3)", "full", "counts", "none"])
def test_metrics_of_all_flat_types_are_pyicebergs(tmp_path: Path, mode: str) -> None:
    schema = schema_of(*[kind for kind, _ in FLAT])
    properties = {"write.metadata.metrics.default": mode}
    first = rows(schema, [values for _, values in FLAT])
    second = rows(schema, [values[1:2] for _, values in FLAT])
    file, footer = write(tmp_path / "a.parquet", schema, [first, second], properties)
    theirs = data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(schema, properties), parquet_path_to_id_mapping(schema)
    )
    expected = theirs.to_serialized_dict()
    assert file.record_count == 4
    assert file.column_sizes == expected["column_sizes"]
    assert file.value_counts == expected["value_counts"]
    assert file.null_value_counts == expected["null_value_counts"]
    assert file.lower_bounds == expected["lower_bounds"]
    assert file.upper_bounds == expected["upper_bounds"]
    assert list(file.split_offsets) == expected["split_offsets"]
    assert len(file.split_offsets) == 2


def test_size_is_that_of_the_stored_file(tmp_path: Path) -> None:
    schema = schema_of(LongType())
    file, _ = write(tmp_path / "new" / "folder" / "a.parquet", schema, [rows(schema, [[1, 2, 3]])])
    assert file.file_size_in_bytes == Path(file.file_path).stat().st_size


def test_field_ids_are_in_the_file(tmp_path: Path) -> None:
    schema = Schema(NestedField(7, "a", StructType(NestedField(9, "b", LongType())), required=False))
    write(tmp_path / "a.parquet", schema, [rows(schema, [[{"b": 1}]])])
    read = pq.read_schema(tmp_path / "a.parquet")
    assert read.field("a").metadata[b"PARQUET:field_id"] == b"7"
    assert read.field("a").type.field("b").metadata[b"PARQUET:field_id"] == b"9"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (UUIDType(), [uuid.UUID(int=2**127), uuid.UUID(int=5)]),
        (FixedType(3), [b"\xff\x00\x01", b"\x01\x02\x03"]),
    ],
)
def test_bounds_of_fixed_bytes_are_whole(tmp_path: Path, kind: object, values: list[object]) -> None:
    schema = schema_of(kind)
    file, _ = write(tmp_path / "a.parquet", schema, [rows(schema, [[_stored(value) for value in values]])])
    assert (file.lower_bounds[1], file.upper_bounds[1]) == tuple(to_bytes(kind, value) for value in values[::-1])


def _stored(value: object) -> object:
    return value.bytes if isinstance(value, uuid.UUID) else value


def test_nanosecond_timestamps_have_bounds_in_nanoseconds(tmp_path: Path) -> None:
    schema = schema_of(TimestampNanoType())
    table = pa.table({"c0": pa.array([1_700_000_000_000_000_001, -5], pa.timestamp("ns"))}).cast(
        schema_to_pyarrow(schema)
    )
    file, _ = write(tmp_path / "a.parquet", schema, [table])
    assert from_bytes(LongType(), file.lower_bounds[1]) == -5
    assert from_bytes(LongType(), file.upper_bounds[1]) == 1_700_000_000_000_000_001


def test_nan_is_counted_and_never_a_bound(tmp_path: Path) -> None:
    schema = schema_of(DoubleType(), DoubleType(), FloatType())
    nan = math.nan
    tables = [rows(schema, [[nan, 1.0, None], [nan, nan, None], [1.0, 2.0, None]]), rows(schema, [[nan], [nan], [nan]])]
    file, _ = write(tmp_path / "a.parquet", schema, tables)
    assert file.nan_value_counts == {1: 2, 2: 3, 3: 1}
    assert file.null_value_counts == {1: 1, 2: 1, 3: 1}
    assert {key: from_bytes(schema.find_type(key), bound) for key, bound in file.upper_bounds.items()} == {
        1: 1.0,
        3: 2.0,
    }
    assert {key: from_bytes(schema.find_type(key), bound) for key, bound in file.lower_bounds.items()} == {
        1: 1.0,
        3: 1.0,
    }


def test_struct_children_have_bounds_and_repeated_leaves_only_counts(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(
            1, "s", StructType(NestedField(2, "x", DoubleType()), NestedField(3, "y", StringType())), required=False
        ),
        NestedField(4, "l", ListType(5, LongType(), element_required=False), required=False),
        NestedField(6, "m", MapType(7, StringType(), 8, DoubleType(), value_required=False), required=False),
    )
    values = [
        [{"x": 1.0, "y": "a"}, {"x": math.nan, "y": None}, None],
        [[1, 2, 3], [], None],
        [{"k": 1.0, "l": 2.0}, {}, None],
    ]
    file, footer = write(tmp_path / "a.parquet", schema, [rows(schema, values)])
    assert file.lower_bounds == {2: to_bytes(DoubleType(), 1.0), 3: b"a"}
    assert file.upper_bounds == {2: to_bytes(DoubleType(), 1.0), 3: b"a"}
    assert file.nan_value_counts == {2: 1}
    assert file.null_value_counts[2] == 1 and file.null_value_counts[3] == 2
    theirs = data_file_statistics_from_parquet_metadata(
        footer, compute_statistics_plan(schema, {}), parquet_path_to_id_mapping(schema)
    )
    assert file.value_counts == theirs.value_counts
    assert set(file.column_sizes) == {2, 3, 5, 7, 8}


def test_an_upper_bound_that_is_cut_is_still_above_every_value(tmp_path: Path) -> None:
    schema = schema_of(StringType(), StringType(), BinaryType(), StringType())
    longest = "\U0010ffff" * 20
    table = rows(schema, [["b" * 20], ["a" * 15 + "\ud7ff" + "x"], [b"a" + b"\xff" * 20], [longest]])
    file, _ = write(tmp_path / "a.parquet", schema, [table])
    assert file.upper_bounds[1].decode() == "b" * 15 + "c"
    assert file.upper_bounds[2].decode() == "a" * 15 + "\ue000"
    assert file.upper_bounds[3] == b"b"
    assert 4 not in file.upper_bounds, "nothing is above the last code point"
    assert file.lower_bounds[4].decode() == "\U0010ffff" * 16


def test_a_column_whose_bounds_are_not_known_for_every_row_group_has_none(tmp_path: Path) -> None:
    schema = schema_of(StringType())
    too_long_for_the_footer = "z" * 10_000
    file, _ = write(tmp_path / "a.parquet", schema, [rows(schema, [["a"]]), rows(schema, [[too_long_for_the_footer]])])
    assert file.upper_bounds.get(1, b"{") > too_long_for_the_footer.encode()


def test_a_column_of_nulls_has_counts_and_no_bounds(tmp_path: Path) -> None:
    schema = schema_of(LongType())
    file, _ = write(tmp_path / "a.parquet", schema, [rows(schema, [[None, None]])])
    assert (file.value_counts, file.null_value_counts, file.lower_bounds) == ({1: 2}, {1: 2}, {})


def test_a_column_has_the_mode_that_is_set_for_it(tmp_path: Path) -> None:
    schema = schema_of(LongType(), LongType())
    properties = {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.c1": "full"}
    file, _ = write(tmp_path / "a.parquet", schema, [rows(schema, [[1], [2]])], properties)
    assert set(file.lower_bounds) == set(file.value_counts) == {2}


def test_codec_and_bloom_filter_are_as_the_table_says(tmp_path: Path) -> None:
    schema = schema_of(LongType())
    properties = {
        "write.parquet.compression-codec": "snappy",
        "write.parquet.bloom-filter-enabled.column.c0": "true",
    }
    _, footer = write(tmp_path / "a.parquet", schema, [rows(schema, [list(range(100))])], properties)
    assert footer.row_group(0).column(0).compression == "SNAPPY"
    assert footer.row_group(0).column(0).bloom_filter_length


@pytest.mark.parametrize(
    "properties",
    [
        {"write.parquet.compression-codec": "zip"},
        {"write.target-file-size-bytes": "much"},
        {"write.parquet.row-group-limit": "0"},
        {"write.parquet.compression-codec": "gzip", "write.parquet.compression-level": "99"},
        {"write.parquet.compression-level": "fast"},
        {"write.parquet.bloom-filter-enabled.column.a": "true", "write.parquet.bloom-filter-fpp.column.a": "2"},
    ],
)
def test_a_property_that_cannot_be_used_is_named(properties: dict[str, str]) -> None:
    with pytest.raises(BadInput, match=list(properties)[-1]):
        ParquetProperties.of_table(properties)


def test_a_malformed_metrics_mode_is_named() -> None:
    with pytest.raises(BadInput, match=r"write\.metadata\.metrics\.default=truncate\(0\)"):
        leaf_columns(schema_of(LongType()), {"write.metadata.metrics.default": "truncate(0)"})


def test_abort_leaves_no_file(tmp_path: Path) -> None:
    schema = schema_of(LongType())
    file = ParquetFile(
        PyArrowFileIO(),
        str(tmp_path / "a.parquet"),
        schema_to_pyarrow(schema),
        leaf_columns(schema, {}),
        ParquetProperties(),
        [],
    )
    file.write_row_group(rows(schema, [[1]]))
    file.abort()
    assert list(tmp_path.iterdir()) == []


def test_storage_that_refuses_is_named(tmp_path: Path) -> None:
    schema = schema_of(LongType())
    (tmp_path / "a").write_text("a file, not a folder")
    with pytest.raises(StorageFailed, match=r"b\.parquet"):
        write(tmp_path / "a" / "b.parquet", schema, [])
