"""What a table's schema becomes when rows of another schema are to fit, and what is refused, all of it by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import DayTransform, IdentityTransform, Transform
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
)

from frazil import SchemaMismatch
from frazil.snapshot.schema_merge import TOP, SchemaMerge, merge_schemas


def metadata(*fields: NestedField, version: int = 2, spec: PartitionSpec | None = None, **schema: Any) -> TableMetadata:
    """The metadata of an empty table. PyIceberg assigns field ids anew, in order."""
    return new_table_metadata(
        Schema(*fields, **schema),
        spec or UNPARTITIONED_PARTITION_SPEC,
        UNSORTED_SORT_ORDER,
        "file:///nowhere",
        {"format-version": str(version)},
    )


def one(kind: IcebergType, *, required: bool = False, version: int = 2, transform: Any = None) -> TableMetadata:
    spec = PartitionSpec(PartitionField(1, 1000, transform, "part")) if transform else None
    return metadata(NestedField(1, "c", kind, required=required), version=version, spec=spec)


def merged(known: IcebergType, source: pa.DataType, **options: Any) -> IcebergType:
    return merge_schemas(one(known, **options), pa.schema([("c", source)])).schema.find_field("c").field_type


def test_a_schema_that_holds_the_rows_already_is_left_as_it_is() -> None:
    table = metadata(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()))
    merge = merge_schemas(table, pa.schema([("b", pa.large_string()), ("a", pa.int16())]))
    assert (merge.schema, merge.changes, merge.added) == (table.schema(), (), {})


def test_new_columns_come_last_in_the_source_s_order_and_are_optional() -> None:
    source = pa.schema([pa.field("z", pa.int64(), nullable=False), ("a", pa.int64()), ("y", pa.string())])
    merge = merge_schemas(metadata(NestedField(1, "a", LongType())), source)
    assert [(f.field_id, f.name, f.required) for f in merge.schema.fields] == [
        (1, "a", False),
        (2, "z", False),
        (3, "y", False),
    ]
    assert merge.changes == ("column 'z' (long) is added", "column 'y' (string) is added")


def test_an_id_that_a_dropped_column_had_is_not_given_again() -> None:
    table = metadata(NestedField(1, "a", LongType())).model_copy(update={"last_column_id": 7})
    assert merge_schemas(table, pa.schema([("a", pa.int64()), ("b", pa.int64())])).schema.find_field("b").field_id == 8


@pytest.mark.parametrize(
    ("known", "source", "becomes"),
    [
        (IntegerType(), pa.int64(), LongType()),
        (IntegerType(), pa.uint32(), LongType()),
        (IntegerType(), pa.dictionary(pa.int8(), pa.int64()), LongType()),
        (LongType(), pa.int32(), LongType()),
        (FloatType(), pa.float64(), DoubleType()),
        (DoubleType(), pa.float16(), DoubleType()),
        (DecimalType(9, 2), pa.decimal128(12, 2), DecimalType(12, 2)),
        (DecimalType(12, 2), pa.decimal64(9, 2), DecimalType(12, 2)),
        (DecimalType(9, 2), pa.decimal128(9, 0), DecimalType(11, 2)),
        (DecimalType(9, 2), pa.decimal256(38, 2), DecimalType(38, 2)),
        (StringType(), pa.null(), StringType()),
    ],
)
def test_types_are_promoted_as_far_as_the_format_goes_and_never_narrowed(
    known: IcebergType, source: pa.DataType, becomes: IcebergType
) -> None:
    assert merged(known, source) == becomes


@pytest.mark.parametrize(
    ("known", "source"),
    [
        (IntegerType(), pa.float64()),
        (LongType(), pa.uint64()),
        (LongType(), pa.string()),
        (StringType(), pa.binary()),
        (FloatType(), pa.int32()),
        (DecimalType(9, 2), pa.decimal128(9, 3)),
        (DecimalType(9, 2), pa.decimal128(38, 0)),
        (DateType(), pa.timestamp("us")),
        (TimestampType(), pa.timestamp("us", "UTC")),
        (StructType(NestedField(2, "x", LongType())), pa.int64()),
        (ListType(2, LongType()), pa.map_(pa.string(), pa.int64())),
        (LongType(), pa.list_(pa.int64())),
    ],
)
def test_a_type_that_cannot_be_promoted_is_named_with_the_other(known: IcebergType, source: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match=r"^column 'c' is .* in the table and .* in the source"):
        merged(known, source)


@pytest.mark.parametrize("source", [pa.string(), pa.int32(), pa.list_(pa.int64()), pa.timestamp("ns")])
def test_a_column_of_unknown_type_takes_the_first_type_that_comes(source: pa.DataType) -> None:
    kind = merged(UnknownType(), source, version=3)
    assert not isinstance(kind, UnknownType)
    assert isinstance(merged(UnknownType(), pa.null(), version=3), UnknownType)


@pytest.mark.parametrize(
    ("source", "becomes"), [(pa.timestamp("ms"), TimestampType()), (pa.timestamp("ns"), TimestampNanoType())]
)
@pytest.mark.parametrize("transform", [None, DayTransform()])
def test_a_date_becomes_a_time_in_a_v3_table_without_rows(
    source: pa.DataType, becomes: IcebergType, transform: Transform[Any, Any] | None
) -> None:
    assert merged(DateType(), source, version=3, transform=transform) == becomes


def test_a_date_that_partitions_by_its_value_stays_one() -> None:
    with pytest.raises(SchemaMismatch, match="partition field 'part' is made of its dates"):
        merged(DateType(), pa.timestamp("us"), version=3, transform=IdentityTransform())


def test_a_required_column_becomes_optional_where_the_source_may_hold_nulls() -> None:
    merge = merge_schemas(one(LongType(), required=True), pa.schema([("c", pa.int64())]))
    assert not merge.schema.find_field("c").required
    assert merge.changes == ("column 'c' becomes optional",)
    source = pa.schema([pa.field("c", pa.int32(), nullable=False)])
    assert merge_schemas(one(LongType(), required=True), source).changes == ()


def test_what_identifies_a_row_stays_required() -> None:
    struct = StructType(NestedField(2, "id", LongType(), required=True))
    table = metadata(NestedField(1, "s", struct, required=True), identifier_field_ids=[2])
    merge = merge_schemas(table, pa.schema([("s", pa.struct([("id", pa.int64()), ("n", pa.int64())]))]))
    assert merge.schema.find_field("s").required and merge.schema.find_field("s.id").required
    assert merge.schema.identifier_field_ids == table.schema().identifier_field_ids != []
    assert merge.changes == ("column 's.n' (long) is added",)


NESTED = metadata(
    NestedField(1, "s", StructType(NestedField(2, "x", IntegerType(), required=True)), required=False),
    NestedField(3, "l", ListType(4, StructType(NestedField(5, "x", FloatType())), element_required=True)),
    NestedField(6, "m", MapType(7, StringType(), 8, StructType(NestedField(9, "x", LongType())), value_required=True)),
)


def inside(**kinds: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(name, kind) for name, kind in kinds.items()])


def test_fields_in_structs_lists_and_map_values_are_merged_like_columns() -> None:
    source = pa.schema(
        [
            ("s", inside(x=pa.int64(), new=inside(deep=pa.string()))),
            ("l", pa.large_list(inside(y=pa.date32(), x=pa.float64()))),
            ("m", pa.map_(pa.string(), inside(x=pa.int32(), z=pa.bool_()))),
        ]
    )
    merge = merge_schemas(NESTED, source)
    found = {name: str(merge.schema.find_field(name).field_type) for name in ("s.x", "s.new.deep", "l.element.x")}
    assert found == {"s.x": "long", "s.new.deep": "string", "l.element.x": "double"}
    new = ["s.new", "s.new.deep", "l.y", "m.z"]
    before = NESTED.schema()
    ids = [merge.schema.find_field(name).field_id for name in new]
    assert sorted(ids) == list(range(NESTED.last_column_id + 1, NESTED.last_column_id + 5))
    assert all(merge.schema.find_field(before.find_column_name(at)).field_id == at for at in before.field_ids)
    assert not any(merge.schema.find_field(name).required for name in ("s.x", "l.element", "m.value"))
    assert {at: [each.name for each in fields] for at, fields in merge.added.items()} == {
        before.find_field("s").field_id: ["new"],
        before.find_field("l.element").field_id: ["y"],
        before.find_field("m.value").field_id: ["z"],
    }
    assert merge_schemas(moved_on(NESTED, merge), source).changes == ()


def test_map_keys_stay_as_they_are() -> None:
    table = metadata(NestedField(1, "m", MapType(2, IntegerType(), 3, LongType(), value_required=False)))
    with pytest.raises(SchemaMismatch, match=r"'m\.key' is int in the table and int64 .* map keys never change"):
        merge_schemas(table, pa.schema([("m", pa.map_(pa.int64(), pa.int64()))]))
    assert merge_schemas(table, pa.schema([("m", pa.map_(pa.int8(), pa.int64()))])).changes == ()


def test_every_misfit_is_named_at_once() -> None:
    table = metadata(
        NestedField(1, "a", LongType()),
        NestedField(2, "s", StructType(NestedField(3, "x", LongType()))),
        NestedField(4, "r", LongType(), required=True),
    )
    source = pa.schema(
        [("a", pa.string()), ("s", inside(x=pa.string(), X=pa.int64())), ("n", pa.uint64()), ("", pa.int8())]
    )
    with pytest.raises(SchemaMismatch) as refused:
        merge_schemas(table, source, "x.csv")
    said = str(refused.value)
    for words in (
        "'a' is long",
        "'s.x' is long",
        "'s.X' differs from 's.x'",
        "'r' (long) is required",
        "'n' of x.csv",
        "no name",
    ):
        assert words in said


def test_a_column_without_a_type_waits_until_it_has_one() -> None:
    source = pa.schema([("c", pa.int64()), ("later", pa.null()), ("s", inside(x=pa.int8(), later=pa.null()))])
    merge = merge_schemas(one(LongType()), source)
    assert [field.name for field in merge.schema.fields] == ["c", "s"]
    assert str(merge.schema.find_field("s").field_type) == "struct<3: x: optional int>"
    assert list(merge.added) == [TOP]


def moved_on(table: TableMetadata, merge: SchemaMerge) -> TableMetadata:
    """The metadata after the merge was committed."""
    highest = max(table.last_column_id, merge.schema.highest_field_id)
    return table.model_copy(update={"schemas": [merge.schema], "last_column_id": highest})
