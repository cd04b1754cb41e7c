"""Where records end is told exactly as PyArrow's parser tells it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import BadInput
from frazil.sources.csv_dialect import CsvDialect
from frazil.sources.csv_parser import CsvParser

FIELDS = [
    "",
    "a",
    '""',
    '"a"',
    '"a,b"',
    '"x\ny"',
    '"x\r\n"',
    '"\n"',
    'a"b',
    '"a"b"c',
    '"q""q"',
    '""""',
    '" ""\n"""',
    "é",
]
LINE_ENDS = ["\n", "\r\n"]
KINDS = {"one": pa.string(), "two": pa.string()}

records = st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(FIELDS), st.sampled_from(LINE_ENDS)), max_size=12)


def encoded(rows: list[tuple[str, str, str]]) -> list[bytes]:
    return [f"{one},{two}{end}".encode() for one, two, end in rows]


@given(records)
def test_records_end_where_they_were_written_to_end(rows: list[tuple[str, str, str]]) -> None:
    parts = encoded(rows)
    text = b"".join(parts)
    assert [text[slice(*span)] for span in CsvDialect().records(text)] == parts


@given(records, st.data())
@settings(max_examples=300)
def test_a_text_cut_at_the_last_end_is_parsed_to_the_same_rows(
    rows: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    text = b"".join(encoded(rows))
    parser = CsvParser(CsvDialect(), list(KINDS), KINDS)
    cut = CsvDialect().last_end(text[: data.draw(st.integers(0, len(text)))])
    whole = parser.parse(text).to_pylist()
    assert parser.parse(text[:cut]).to_pylist() + parser.parse(text[cut:]).to_pylist() == whole
    assert len(whole) == len(rows)


@given(st.text('a,"\n\r\\', max_size=30), st.sampled_from([None, "\\"]))
@settings(max_examples=500)
def test_the_quick_way_and_the_walk_find_the_same_end(text: str, escape: str | None) -> None:
    dialect = CsvDialect(escape=escape)
    spans = dialect.records(text.encode())
    assert b"".join(text.encode()[slice(*span)] for span in spans) == text.encode()
    end = dialect.last_end(text.encode())
    assert end in {0, *(span[1] for span in spans)}


@given(st.text('a,"\n\r\\', max_size=25), st.sampled_from([None, "\\"]))
@settings(max_examples=500, deadline=None)
def test_any_text_parsed_record_by_record_gives_the_rows_of_the_whole(text: str, escape: str | None) -> None:
    parser = CsvParser(CsvDialect(escape=escape), list(KINDS), KINDS)
    whole = text.encode()
    one_by_one = [row for span in parser.records(whole) for row in rows_of(parser, whole[slice(*span)])]
    assert one_by_one == rows_of(parser, whole)


def rows_of(parser: CsvParser, text: bytes) -> list[dict[str, str]]:
    """The rows that PyArrow reads, records with another number of fields left out."""
    try:
        rows: list[dict[str, str]] = parser.texts(text).to_pylist()
    except pa.ArrowInvalid as error:
        assert "Empty CSV" in str(error)
        return []
    return rows


def test_an_escaped_quote_does_not_end_a_field() -> None:
    text = b'"a\\"\nb",1\nc\\\nd,2\n'
    assert [text[slice(*span)] for span in CsvDialect(escape="\\").records(text)] == [b'"a\\"\nb",1\n', b"c\\\nd,2\n"]


def test_carriage_returns_alone_end_records() -> None:
    assert CsvDialect().last_end(b"a,b\rc,d\re") == 8
    assert CsvDialect().last_end(b"a,b\r") == 0  # a line feed may follow


def test_an_open_quote_is_seen() -> None:
    assert CsvDialect().has_open_quote(b'a,"b\nc')
    assert not CsvDialect().has_open_quote(b'a,"b\nc"')


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"delimiter": "ab"}, r"delimiter=ab is not one ASCII character"),
        ({"delimiter": '"'}, "must be different"),
        ({"encoding": "utf-16"}, r"encoding=utf-16 cannot be read"),
        ({"encoding": "shift-jis"}, r"encoding=shift-jis cannot be read"),
        ({"encoding": "nonsense"}, r"encoding=nonsense cannot be read"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        CsvDialect.from_options(options, ",")
