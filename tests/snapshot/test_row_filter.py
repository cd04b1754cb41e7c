"""A filter's text is read as SQL reads it, and it is asked of rows as SQL would."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType, StructType, TimestamptzType

from frazil.errors import BadInput, SchemaMismatch, UnknownColumn
from frazil.snapshot.row_filter import RowFilter, check_rows_match

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "day", DateType()),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "place", StructType(NestedField(5, "x", IntegerType()))),
    NestedField(6, "text", StringType()),
)
BATCH = pa.record_batch(
    {
        "id": pa.array([1, None, 3]),
        "day": pa.array([date(2026, 1, 1), date(2026, 1, 2), None]),
        "at": pa.array([datetime(2026, 1, 1, hour) for hour in range(3)], pa.timestamp("us", "America/New_York")),
        "place": pa.array([{"x": 1}, {"x": 2}, None]),
        "text": pa.array(["a", None, "it's a date '"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("id = 1", [True, False, False]),
        ("id != 1", [False, False, True]),
        ("not id = 1", [False, False, True]),
        ("id not in (1, 2)", [False, False, True]),
        ("id is null", [False, True, False]),
        ("day = DATE '2026-01-01'", [True, False, False]),
        ("day = '2026-01-02'", [False, True, False]),
        ("at >= TIMESTAMP '2026-01-01 01:00:00+00:00'", [False, True, True]),
        ("place.x > 1", [False, True, False]),
        ("text = 'it''s a date '''", [False, False, True]),
        ("text like 'it%'", [False, False, True]),
        ("text not like 'it%'", [True, False, False]),
        ("id between 2 and 3 or text = 'a'", [True, False, True]),
        ("true", [True, True, True]),
        ("false", [False, False, False]),
    ],
)
def test_a_filter_takes_the_rows_for_which_it_is_true(text: str, taken: list[bool]) -> None:
    assert RowFilter(text, SCHEMA).takes(BATCH).to_pylist() == taken


@pytest.mark.parametrize("text", ["id = 'a", "id ==", "", "id = other", "sqrt(id) = 2", "id like '%a%'"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        RowFilter(text, SCHEMA)


def test_a_value_of_another_type_and_a_column_that_is_not_there_are_refused() -> None:
    with pytest.raises(BadInput, match="Could not convert x into a long"):
        RowFilter("id = 'x'", SCHEMA)
    with pytest.raises(UnknownColumn, match=r"its columns are id \(long\), day"):
        RowFilter("idd = 1", SCHEMA)


def test_rows_that_the_filter_does_not_take_are_counted() -> None:
    rows = RowFilter("id >= 1", SCHEMA)
    assert check_rows_match(rows, BATCH.slice(0, 1)).num_rows == 1
    with pytest.raises(SchemaMismatch, match="1 of 3 rows are not among those that overwrite='id >= 1' replaces"):
        check_rows_match(rows, BATCH)
