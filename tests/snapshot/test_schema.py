"""From an Arrow schema to a new table's schema, or the column that has no place there."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.types import LongType, TimestampNanoType, TimestampType, TimestamptzType

from frazil import SchemaMismatch
from frazil.snapshot.alignment import check_fits
from frazil.snapshot.schema import table_schema


def test_columns_keep_their_order_names_and_whether_null_may_stand_in_them() -> None:
    arrow = pa.schema(
        [
            pa.field("b", pa.int64(), nullable=False),
            pa.field("a", pa.struct([pa.field("x", pa.string()), pa.field("y", pa.list_(pa.int32()))])),
            pa.field("m", pa.map_(pa.string(), pa.float64())),
            pa.field("d", pa.decimal128(12, 3)),
        ]
    )
    schema = table_schema(arrow, 2, "x.parquet")
    assert [field.name for field in schema.fields] == ["b", "a", "m", "d"]
    assert [field.required for field in schema.fields] == [True, False, False, False]
    ids = sorted(schema._lazy_id_to_name)
    assert ids == list(range(1, len(ids) + 1))
    assert str(schema.find_field("d").field_type) == "decimal(12, 3)"


@pytest.mark.parametrize(
    ("arrow", "version", "kind"),
    [
        (pa.timestamp("ns"), 2, TimestampType),
        (pa.timestamp("ns", "UTC"), 2, TimestamptzType),
        (pa.timestamp("ns"), 3, TimestampNanoType),
        (pa.timestamp("ms"), 2, TimestampType),
        (pa.int64(), 1, LongType),
        (pa.dictionary(pa.int32(), pa.int64()), 2, LongType),
    ],
)
def test_types_become_what_the_format_version_has(arrow: pa.DataType, version: int, kind: type) -> None:
    assert isinstance(table_schema(pa.schema([("c", arrow)]), version, "x").fields[0].field_type, kind)


@pytest.mark.parametrize(
    ("arrow", "becomes"),
    [
        (pa.timestamp("us", "Europe/Berlin"), "timestamptz"),
        (pa.time32("ms"), "time"),
        (pa.time64("ns"), "time"),
        (pa.date64(), "date"),
        (pa.uint32(), "long"),
        (pa.uint16(), "int"),
        (pa.float16(), "float"),
        (pa.list_(pa.uint32()), "list<long>"),
        (pa.struct([pa.field("x", pa.time32("s"))]), "struct<3: x: optional time>"),
        (pa.map_(pa.string(), pa.date64()), "map<string, date>"),
    ],
)
def test_a_type_that_iceberg_has_not_becomes_one_that_its_own_rows_fit(arrow: pa.DataType, becomes: str) -> None:
    source = pa.schema([("a", pa.int64()), ("c", arrow)])
    schema = table_schema(source, 2, "x")
    assert str(schema.find_field("c").field_type) == becomes
    check_fits(source, schema, "x")


@pytest.mark.parametrize("arrow", [pa.duration("s"), pa.month_day_nano_interval(), pa.decimal256(76, 2), pa.uint64()])
def test_a_type_without_counterpart_is_named_with_its_column_and_source(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match=r"column 'bad' of x\.parquet is of type"):
        table_schema(pa.schema([("good", pa.int64()), ("bad", arrow)]), 2, "x.parquet")


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"]])
def test_a_name_that_stands_twice_is_refused(names: list[str]) -> None:
    with pytest.raises(SchemaMismatch, match="more than one column"):
        table_schema(pa.schema([(name, pa.int64()) for name in names]), 2, "x")


def test_a_column_without_a_name_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="without a name"):
        table_schema(pa.schema([("", pa.int64())]), 2, "x")
