"""Every transform over Arrow against PyIceberg's transform of each value alone."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec, partition_record_value
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from frazil.errors import BadInput
from frazil.snapshot.partition import PartitionSplitter

UTC = dt.UTC
MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    dt.datetime(1901, 7, 4, 3),
    dt.datetime(2024, 2, 29, 23, 59, 59),
    dt.datetime(2024, 3, 1),
    dt.datetime(9999, 12, 31, 23),
]
VALUES: list[tuple[Any, list[Any]]] = [
    (BooleanType(), [True, False]),
    (IntegerType(), [-11, -10, -1, 0, 9, 10, 2**31 - 1]),
    (LongType(), [-(2**62), -11, 0, 10, 2**62]),
    (DecimalType(9, 2), [Decimal("-10.07"), Decimal("0.05"), Decimal("10.10")]),
    (DecimalType(38, 3), [Decimal("-10.075"), Decimal("1.234") * 10**20]),
    (DateType(), [moment.date() for moment in MOMENTS]),
    (TimeType(), [dt.time(0), dt.time(23, 59, 59, 999999)]),
    (TimestampType(), MOMENTS),
    (TimestamptzType(), [moment.replace(tzinfo=UTC) for moment in MOMENTS]),
    (StringType(), ["", "iceberg", "icebox", "zé😀zé😀zé😀"]),
    (BinaryType(), [b"", b"\x00\x01\x02\xff\xfe", b"abcdef"]),
    (FixedType(3), [b"abc", b"\xff\x00\x01"]),
    (UUIDType(), [uuid.UUID(int=5), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")]),
]
TRANSFORMS = [
    IdentityTransform(),
    BucketTransform(7),
    TruncateTransform(4),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
]
CASES = [
    pytest.param(transform, kind, values, id=f"{transform}-{kind}")
    for transform in TRANSFORMS
    for kind, values in VALUES
    if transform.can_transform(kind)
]


def split(schema: Schema, spec: PartitionSpec, batch: pa.RecordBatch) -> dict[tuple[Any, ...], list[int]]:
    found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for part in PartitionSplitter(schema, spec).split(batch):
        found[part.partition] += part.rows.column("row").to_pylist()
    return dict(found)


def batch_of(schema: Schema, columns: list[list[Any]], wide: bool = True) -> pa.RecordBatch:
    arrow = schema_to_pyarrow(schema)
    stored = [[value.bytes if isinstance(value, uuid.UUID) else value for value in values] for values in columns]
    arrays = [pa.array(values, field.type) for values, field in zip(stored, arrow, strict=True)]
    if not wide:
        arrays = [array.cast(_narrow(array.type)) for array in arrays]
    return pa.RecordBatch.from_arrays(arrays, names=arrow.names)


def _narrow(kind: pa.DataType) -> pa.DataType:
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def internal(field: PartitionField, kind: Any, value: Any) -> Any:
    """A value as PyIceberg's own transforms take and give it."""
    schema = Schema(NestedField(1, "value", kind, required=False))
    return partition_record_value(PartitionField(1, 1000, IdentityTransform(), field.name), value, schema)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("transform", "kind", "values"), CASES)
def test_each_row_is_in_the_partition_that_pyiceberg_computes(
    transform: Any, kind: Any, values: list[Any], wide: bool
) -> None:
    schema = Schema(NestedField(1, "value", kind, required=False), NestedField(2, "row", LongType(), required=True))
    field = PartitionField(1, 1000, transform, "part")
    column = [*values, None, *values]
    found = split(schema, PartitionSpec(field), batch_of(schema, [column, list(range(len(column)))], wide))
    scalar = transform.transform(kind)
    expected: dict[Any, list[int]] = defaultdict(list)
    for row, value in enumerate(column):
        expected[scalar(internal(field, kind, value)) if value is not None else None].append(row)
    result_type = transform.result_type(kind)
    assert {_internal_result(field, result_type, key[0]): rows for key, rows in found.items()} == expected


def _internal_result(field: PartitionField, kind: Any, value: Any) -> Any:
    return value if value is None or isinstance(value, int | bytes) else internal(field, kind, value)


@pytest.mark.parametrize("unit", [YearTransform(), MonthTransform(), DayTransform()])
def test_ordinals_are_plain_integers(unit: Any) -> None:
    schema = Schema(NestedField(1, "value", DateType()), NestedField(2, "row", LongType()))
    found = split(
        schema, PartitionSpec(PartitionField(1, 1000, unit, "p")), batch_of(schema, [[dt.date(2024, 2, 29)], [0]])
    )
    assert [type(value) for (value,) in found] == [int]


def test_several_fields_make_one_partition_each_combination() -> None:
    schema = Schema(
        NestedField(1, "day", DateType()), NestedField(2, "name", StringType()), NestedField(3, "row", LongType())
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, MonthTransform(), "month"), PartitionField(2, 1001, IdentityTransform(), "name")
    )
    days = [dt.date(1970, 1, 1), dt.date(1970, 1, 31), dt.date(1970, 2, 1), None, dt.date(1970, 1, 1)]
    names = ["a", "b", "a", "b", "a"]
    assert split(schema, spec, batch_of(schema, [days, names, [0, 1, 2, 3, 4]])) == {
        (0, "a"): [0, 4],
        (0, "b"): [1],
        (1, "a"): [2],
        (None, "b"): [3],
    }


def test_more_combinations_than_sixteen_bits_hold_are_kept_apart() -> None:
    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()), NestedField(3, "row", LongType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "a"), PartitionField(2, 1001, IdentityTransform(), "b")
    )
    a = [(row * 7919) % 60_000 for row in range(3000)]
    b = [(row * 104_729) % 50_000 for row in range(3000)]
    found = split(schema, spec, batch_of(schema, [a, b, list(range(3000))]))
    expected: dict[Any, list[int]] = defaultdict(list)
    for row, key in enumerate(zip(a, b, strict=True)):
        expected[key].append(row)
    assert found == expected


def test_nan_is_one_partition_that_is_found_again() -> None:
    schema = Schema(NestedField(1, "value", DoubleType()), NestedField(2, "row", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    splitter = PartitionSplitter(schema, spec)
    batch = batch_of(schema, [[math.nan, 1.0, float("nan")], [0, 1, 2]])
    keys = {part.partition for _ in range(2) for part in splitter.split(batch)}
    assert len(keys) == 2


def test_a_source_within_structs_is_found_and_a_null_struct_is_null() -> None:
    schema = Schema(
        NestedField(1, "s", StructType(NestedField(2, "t", StructType(NestedField(3, "x", IntegerType()))))),
        NestedField(4, "row", LongType()),
    )
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "x"))
    column = [{"t": {"x": 1}}, {"t": None}, None, {"t": {"x": 1}}]
    assert split(schema, spec, batch_of(schema, [column, [0, 1, 2, 3]])) == {(1,): [0, 3], (None,): [1, 2]}


def test_a_slice_of_a_batch_is_split_by_its_own_rows() -> None:
    schema = Schema(NestedField(1, "day", DateType()), NestedField(2, "row", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, MonthTransform(), "m"))
    days = [dt.date(1970, month, 1) for month in (1, 2, 3, 4)]
    assert split(schema, spec, batch_of(schema, [days, [0, 1, 2, 3]]).slice(2)) == {(2,): [2], (3,): [3]}


@pytest.mark.parametrize("transform", [IdentityTransform(), BucketTransform(5), TruncateTransform(2)])
def test_a_dictionary_column_is_split_as_a_plain_one(transform: Any) -> None:
    schema = Schema(NestedField(1, "name", StringType()), NestedField(2, "row", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, transform, "p"))
    plain = batch_of(schema, [["abc", "abd", None, "abc"], [0, 1, 2, 3]])
    encoded = plain.set_column(0, "name", plain.column(0).dictionary_encode())
    assert split(schema, spec, encoded) == split(schema, spec, plain)


def test_a_source_within_a_list_is_refused() -> None:
    schema = Schema(NestedField(1, "l", ListType(2, LongType())))
    with pytest.raises(BadInput, match="'p'"):
        PartitionSplitter(schema, PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p")))


def test_a_transform_that_does_not_go_with_the_type_is_refused() -> None:
    schema = Schema(NestedField(1, "name", StringType()))
    with pytest.raises(BadInput, match="day does not go with type string"):
        PartitionSplitter(schema, PartitionSpec(PartitionField(1, 1000, DayTransform(), "p")))


def test_a_void_field_of_a_dropped_column_is_null() -> None:
    schema = Schema(NestedField(2, "row", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, VoidTransform(), "gone"))
    assert split(schema, spec, batch_of(schema, [[0, 1]])) == {(None,): [0, 1]}
