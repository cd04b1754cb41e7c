"""What fits a table's schema, in which form it comes out, and how what does not fit is named."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from frazil.errors import SchemaMismatch
from frazil.snapshot.alignment import BatchAlignment, ColumnMatch

UTC = dt.UTC


def one(kind: Any, array: pa.Array, *, required: bool = False) -> pa.Array:
    schema = Schema(NestedField(1, "c", kind, required=required))
    return BatchAlignment(schema).align(pa.RecordBatch.from_arrays([array], names=["c"])).column(0)


@pytest.mark.parametrize(
    ("kind", "source", "values"),
    [
        (LongType(), pa.int32(), [-1, None]),
        (LongType(), pa.uint32(), [2**32 - 1, None]),
        (IntegerType(), pa.uint16(), [2**16 - 1, None]),
        (DoubleType(), pa.float32(), [1.5, None]),
        (DecimalType(20, 4), pa.decimal128(10, 2), [Decimal("1.25"), None]),
        (DecimalType(10, 2), pa.decimal256(10, 2), [Decimal("1.25"), None]),
        (DateType(), pa.date64(), [dt.date(2024, 2, 29), None]),
        (TimestampType(), pa.timestamp("s"), [dt.datetime(2024, 2, 29), None]),
        (TimestampType(), pa.timestamp("ns"), [dt.datetime(2024, 2, 29), None]),
        (TimestamptzType(), pa.timestamp("us", "Europe/Berlin"), [dt.datetime(2024, 2, 29, tzinfo=UTC), None]),
        (TimeType(), pa.time32("s"), [dt.time(1, 2, 3), None]),
        (StringType(), pa.string_view(), ["a", None]),
        (StringType(), pa.large_string(), ["a", None]),
        (StringType(), pa.dictionary(pa.int8(), pa.large_string()), ["a", None, "a"]),
        (BinaryType(), pa.binary_view(), [b"a", None]),
        (LongType(), pa.dictionary(pa.int8(), pa.int32()), [7, None, 7]),
        (StringType(), pa.null(), [None]),
        (ListType(2, LongType(), element_required=False), pa.large_list(pa.int32()), [[1, None], [], None]),
        (ListType(2, LongType(), element_required=False), pa.list_(pa.int64(), 2), [[1, None], None]),
        (MapType(2, StringType(), 3, LongType()), pa.map_(pa.large_string(), pa.int32()), [[("k", 1)], [], None]),
    ],
)
def test_values_survive_every_cast_that_is_allowed(kind: Any, source: pa.DataType, values: list[Any]) -> None:
    assert one(kind, pa.array(values, source)).to_pylist() == values


@pytest.mark.parametrize(
    ("kind", "source", "shown"),
    [
        (IntegerType(), pa.int64(), "int32 in the table and int64 in the source"),
        (IntegerType(), pa.uint32(), "int32 in the table and uint32 in the source"),
        (LongType(), pa.uint64(), "int64 in the table and uint64"),
        (FloatType(), pa.float64(), "float in the table and double in the source"),
        (LongType(), pa.float64(), "int64 in the table and double"),
        (LongType(), pa.string(), "int64 in the table and string"),
        (StringType(), pa.int64(), "string in the table and int64"),
        (StringType(), pa.binary(), "string in the table and binary"),
        (DecimalType(9, 2), pa.decimal128(10, 2), r"decimal128\(9, 2\) in the table and decimal128\(10, 2\)"),
        (DecimalType(9, 2), pa.decimal128(9, 3), r"decimal128\(9, 2\) in the table"),
        (TimestampType(), pa.timestamp("us", "UTC"), r"timestamp\[us\] in the table and timestamp\[us, tz=UTC\]"),
        (TimestamptzType(), pa.timestamp("us"), r"timestamp\[us, tz=UTC\] in the table"),
        (DateType(), pa.timestamp("us"), "date32"),
        (UUIDType(), pa.binary(15), "uuid"),
        (ListType(2, LongType()), pa.int64(), "list"),
    ],
)
def test_a_type_that_does_not_fit_is_named_with_the_tables(kind: Any, source: pa.DataType, shown: str) -> None:
    with pytest.raises(SchemaMismatch, match=rf"column 'c' is .*{shown}"):
        one(kind, pa.nulls(1, source))


def test_a_moment_that_would_lose_its_nanoseconds_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"column 'c' is .*and a value does not fit"):
        one(TimestampType(), pa.array([1], pa.timestamp("ns")))


TABLE = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), required=False),
    NestedField(
        3,
        "place",
        StructType(NestedField(4, "x", DoubleType(), required=True), NestedField(5, "y", LongType())),
        required=False,
    ),
)


def test_columns_are_put_in_the_tables_order_and_missing_ones_are_null() -> None:
    aligned = BatchAlignment(TABLE).align(pa.record_batch({"name": ["a"], "id": pa.array([1])}))
    assert aligned.to_pylist() == [{"id": 1, "name": "a", "place": None}]
    assert [field.metadata[b"PARQUET:field_id"] for field in aligned.schema] == [b"1", b"2", b"3"]


def test_a_missing_column_has_its_write_default() -> None:
    schema = Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "kind", StringType(), required=True, initial_default="old", write_default="new"),
    )
    assert BatchAlignment(schema).align(pa.record_batch({"id": [1, 2]}))["kind"].to_pylist() == ["new", "new"]


def test_a_missing_required_column_is_named() -> None:
    with pytest.raises(SchemaMismatch, match=r"column 'id' \(int64\) is required and missing"):
        BatchAlignment(TABLE).align(pa.record_batch({"name": ["a"]}))


def test_extra_columns_are_named_with_their_types() -> None:
    with pytest.raises(SchemaMismatch, match=r"no column 'more' \(int64\)"):
        BatchAlignment(TABLE).align(pa.record_batch({"id": [1], "more": [2]}))


def test_every_column_that_does_not_fit_is_named_at_once() -> None:
    rows = pa.record_batch({"name": [1], "place": pa.array([{"x": "a", "z": 1}]), "more": [2]})
    with pytest.raises(SchemaMismatch) as refused:
        BatchAlignment(TABLE).align(rows)
    for words in (
        "'id' (int64) is required",
        "'name' is string",
        "'place.x' is double",
        "no field 'z' (int64)",
        "'more'",
    ):
        assert words in str(refused.value)


def test_a_column_of_no_type_goes_by_whether_the_table_has_it_or_not() -> None:
    table = Schema(NestedField(1, "id", LongType()), NestedField(2, "later", UnknownType()))
    rows = pa.record_batch({"id": [1], "later": pa.nulls(1), "never": pa.nulls(1)})
    assert BatchAlignment(table).align(rows).to_pylist() == [{"id": 1}]
    with pytest.raises(SchemaMismatch, match="'later' has no type yet in the table and is int64 in the source"):
        BatchAlignment(table).align(pa.record_batch({"id": [1], "later": [2]}))


def test_nulls_in_a_required_column_are_counted() -> None:
    with pytest.raises(SchemaMismatch, match="column 'id' is required and holds 2 nulls"):
        BatchAlignment(TABLE).align(pa.record_batch({"id": pa.array([None, 1, None], pa.int64())}))


def place(values: list[Any]) -> pa.RecordBatch:
    kind = pa.struct([pa.field("y", pa.int32()), pa.field("x", pa.float32())])
    return pa.record_batch({"id": list(range(len(values))), "place": pa.array(values, kind)})


def test_fields_of_structs_are_found_by_name_and_cast() -> None:
    aligned = BatchAlignment(TABLE).align(place([{"x": 1.5, "y": 2}, None]))
    assert aligned["place"].to_pylist() == [{"x": 1.5, "y": 2}, None]


def test_a_null_required_field_of_a_struct_is_refused_only_where_the_struct_is_there() -> None:
    with pytest.raises(SchemaMismatch, match=r"'place\.x' is required and holds 1 nulls"):
        BatchAlignment(TABLE).align(place([{"x": None, "y": 2}, None]))


def test_a_slice_is_aligned_by_its_own_rows() -> None:
    schema = Schema(
        NestedField(1, "l", ListType(2, LongType())), NestedField(3, "m", MapType(4, StringType(), 5, LongType()))
    )
    rows = pa.record_batch(
        {
            "l": pa.array([[1], [2, 3], None, [4]], pa.list_(pa.int32())),
            "m": pa.array([[("a", 1)], [("b", 2)], None, [("c", 3)]], pa.map_(pa.string(), pa.int32())),
        }
    ).slice(1)
    assert BatchAlignment(schema).align(rows).to_pylist() == rows.to_pylist()


def test_by_field_id_a_renamed_column_is_found() -> None:
    schema = Schema(NestedField(7, "new", LongType()))
    source = pa.schema([pa.field("old", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    rows = pa.RecordBatch.from_arrays([pa.array([1])], schema=source)
    assert BatchAlignment(schema, ColumnMatch(by_field_id=True)).align(rows)["new"].to_pylist() == [1]
    with pytest.raises(SchemaMismatch, match="no column 'old'"):
        BatchAlignment(schema).align(rows)


def test_later_batches_in_another_form_join_the_first_ones() -> None:
    schema = Schema(NestedField(1, "name", StringType(), required=False))
    alignment = BatchAlignment(schema)
    forms = [pa.array(["a"]).dictionary_encode(), pa.array(["b"], pa.large_string()), pa.array(["c"], pa.string_view())]
    aligned = [alignment.align(pa.record_batch({"name": form})) for form in forms]
    assert pa.Table.from_batches(aligned)["name"].to_pylist() == ["a", "b", "c"]
