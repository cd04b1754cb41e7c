"""Columns as text: what is written is read back, and what is not understood is shown."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import BadInput
from frazil.sources.columns import columns_text, parse_columns

LEAVES = st.sampled_from(
    [
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us"),
        pa.timestamp("ns", "UTC"),
        pa.string(),
        pa.binary(),
        pa.binary(7),
        pa.uuid(),
        pa.decimal128(38, 9),
    ]
)
NAMES = st.text("ab_1 `,<>:.é", min_size=1, max_size=5)
KINDS = st.recursive(
    LEAVES,
    lambda kinds: (
        kinds.map(pa.list_)
        | st.tuples(LEAVES, kinds).map(lambda pair: pa.map_(*pair))
        | st.dictionaries(NAMES, kinds, min_size=1, max_size=3).map(lambda fields: pa.struct(list(fields.items())))
    ),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, KINDS, min_size=1, max_size=4))
def test_every_schema_is_read_back_from_its_text(fields: dict[str, pa.DataType]) -> None:
    schema = pa.schema(list(fields.items()))
    assert parse_columns(columns_text(schema)).equals(schema)


def test_spark_s_names_and_spellings_are_known() -> None:
    text = "id: LONG, n Integer, v varchar(10), t array<struct<a: real, b numeric(5, 2)>>, at timestamp_ntz"
    assert parse_columns(text) == pa.schema(
        [
            ("id", pa.int64()),
            ("n", pa.int32()),
            ("v", pa.string()),
            ("t", pa.list_(pa.struct([("a", pa.float32()), ("b", pa.decimal128(5, 2))]))),
            ("at", pa.timestamp("us")),
        ]
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "there should be a name"),
        ("id", "after 'id': there should be a type"),
        ("id bigint price double", "there should be a comma or the end, not 'price'"),
        ("id number", "'number' is none of boolean"),
        ("p decimal(39,2)", "up to 38 digits"),
        ("p decimal(5,6)", "up to 38 digits"),
        ("p decimal(x,6)", "a number, not 'x'"),
        ("l list<int", "there should be '>'"),
        ("a int, a int", "names column a twice"),
    ],
)
def test_what_is_not_understood_is_shown(text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match="schema") as told:
        parse_columns(text)
    assert complaint in str(told.value)
