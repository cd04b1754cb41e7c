"""JSON lines: nested types, exact numbers, ranges that lose and double nothing, bad lines told by file and byte."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    ListType,
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

from frazil.errors import BadInput, SchemaMismatch, SourceUnreadable
from frazil.sources import text_blocks, text_files
from frazil.sources.open import shard_from_document
from text_rows import opened, read, read_with_bad, rows_of


def written(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_text("".join(line + end for line in lines), encoding="utf-8", newline="")
    return path


def kind_of(tmp_path: Path, *values: str) -> str:
    path = written(tmp_path / "a.jsonl", *(f'{{"v": {value}}}' for value in values))
    return str(opened(path).schema().field("v").type)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "null"], "int64"),
        (["1", "2.5"], "double"),
        (["9223372036854775808", "1"], "decimal128(38, 0)"),
        (["true"], "bool"),
        (['"x"', '"2024-01-01"'], "string"),
        (['"2024-01-01"'], "date32[day]"),
        (['"2024-01-01T00:00:00Z"', '"2024-01-01 00:00:00.5+02:00"'], "timestamp[us, tz=UTC]"),
        (['"2024-01-01T00:00:00"'], "timestamp[us]"),
        (["null"], "string"),
        (["[]", "[1, null]"], "list<item: int64>"),
        (["[[1], [2.5]]"], "list<item: list<item: double>>"),
        (['{"a": 1}', '{"b": {"c": "x"}}'], "struct<a: int64, b: struct<c: string>>"),
        (['[{"a": 1}, {"b": true}]'], "list<item: struct<a: int64, b: bool>>"),
    ],
)
def test_types_are_told_from_all_values_of_the_sample(tmp_path: Path, values: list[str], kind: str) -> None:
    assert kind_of(tmp_path, *values) == kind


def test_columns_come_from_all_files_and_may_be_missing(tmp_path: Path) -> None:
    written(tmp_path / "1.json", '{"a": 1}', "", '{"b": "x"}')
    written(tmp_path / "2.jsonl", '{"c": [1], "a": 2.5}')
    assert read(tmp_path) == [
        {"a": 1.0, "b": None, "c": None},
        {"a": None, "b": "x", "c": None},
        {"a": 2.5, "b": None, "c": [1]},
    ]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (["1", '"x"'], r"column 'v' is a number \(.*a\.jsonl, byte 0\) and a string \(.*a\.jsonl, byte 9\)"),
        (["{}"], "nothing but empty objects"),
        (["1" + "0" * 38], "more than 38 digits"),
        (['[{"w": 1}, {"w": "x"}]'], r"column 'v\.element\.w' is a number"),
    ],
)
def test_values_that_no_type_holds_are_refused_with_both_places(
    tmp_path: Path, values: list[str], complaint: str
) -> None:
    with pytest.raises(SchemaMismatch, match=complaint):
        kind_of(tmp_path, *values)


EVERYTHING = Schema(
    NestedField(1, "dec", DecimalType(38, 30)),
    NestedField(2, "int", IntegerType()),
    NestedField(3, "real", FloatType()),
    NestedField(4, "ts", TimestampType()),
    NestedField(5, "tz", TimestamptzType()),
    NestedField(6, "ns", TimestampNanoType()),
    NestedField(7, "day", DateType()),
    NestedField(8, "clock", TimeType()),
    NestedField(9, "uid", UUIDType()),
    NestedField(10, "raw", BinaryType()),
    NestedField(
        11,
        "deep",
        ListType(12, StructType(NestedField(13, "d", DecimalType(9, 2)), NestedField(14, "at", TimestamptzType()))),
    ),
    NestedField(15, "later", StringType()),
)
LINE = (
    '{"dec": 12345678.012345678901234567890123456789, "int": -7, "real": 1.5, "ts": "2024-01-01T00:00:00.000001",'
    ' "tz": "1969-12-31T23:59:59.999999-01:00", "ns": "2024-01-01 00:00:00.123456789", "day": "0001-01-01",'
    ' "clock": "23:59:59.999999", "uid": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "raw": "é",'
    ' "deep": [{"d": 1.1, "at": "2024-01-01T00:00:00Z"}, null, {"at": null}]}'
)
ROW: dict[str, Any] = {
    "dec": Decimal("12345678.012345678901234567890123456789"),
    "int": -7,
    "real": 1.5,
    "ts": datetime(2024, 1, 1, 0, 0, 0, 1),
    "tz": datetime(1970, 1, 1, 0, 59, 59, 999999, UTC),
    "day": date(1, 1, 1),
    "clock": time(23, 59, 59, 999999),
    "uid": UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    "raw": "é".encode(),
    "deep": [{"d": Decimal("1.10"), "at": datetime(2024, 1, 1, tzinfo=UTC)}, None, {"d": None, "at": None}],
    "later": None,
}


def test_values_are_read_as_the_table_s_types_and_no_digit_is_lost(tmp_path: Path) -> None:
    source = opened(written(tmp_path / "a.jsonl", LINE, "{}")).for_table(EVERYTHING)
    row, nulls = rows_of(source.shards(1))
    assert row.pop("ns").value == 1704067200123456789
    assert row == ROW
    assert set(nulls.values()) == {None}


def test_maps_are_read_from_objects(tmp_path: Path) -> None:
    table = Schema(*EVERYTHING.fields, NestedField(20, "m", MapType(21, StringType(), 22, DecimalType(5, 2))))
    line = LINE[:-1] + ', "m": {"k": 1.25, "l": null}}'
    row, none = rows_of(opened(written(tmp_path / "a.jsonl", line, '{"m": {}}')).for_table(table).shards(1))
    assert row.pop("ns").value == 1704067200123456789
    assert row == {**ROW, "m": [("k", Decimal("1.25")), ("l", None)]}
    assert none["m"] == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 1', "it is not JSON"),
        ("[1]", "it is not a JSON object"),
        ('{"a": "x"}', "column 'a' is bigint, and 'x' is not"),
        ('{"a": 9223372036854775808}', "column 'a' is bigint, and 9223372036854775808 is not"),
        ('{"a": 1.5}', r"column 'a' is bigint, and Decimal\('1\.5'\) is not"),
        ('{"d": 1.234}', r"column 'd' is decimal\(5,2\), and Decimal\('1.234'\) is not"),
        ('{"t": "2024-01-01 00:00:00"}', r"column 't' is timestamptz, and '2024-01-01 00:00:00' is not"),
        ('{"a": 1}{"a": 2}', "it is not JSON: Extra data"),
        ('{"s": {"x": 1, "y": 2}}', r"field 's\.y' is not known"),
        ('{"a": 1, "b": 2}', "field 'b' is not known"),
        ('{"a": 1, "a": 2}', "it is not JSON: an object has two fields of one name"),
    ],
)
@pytest.mark.parametrize("schema", ["", ", m map<string, bigint>"])
def test_a_bad_line_is_told_with_place_reason_and_text_and_the_others_read(
    tmp_path: Path, line: str, reason: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_SAMPLE", 9)  # the first line
    monkeypatch.setattr("frazil.sources.json_lines._SAMPLE_BYTES", 9)
    path = written(tmp_path / "a.jsonl", '{"a": 1}', line, "", '{"a": 3}')
    schema = "a bigint, d decimal(5,2), t timestamptz, s struct<x bigint>" + schema
    source = opened(path, schema=schema)
    rows, bad = read_with_bad(source)
    assert [(row["a"], place) for row, place in rows] == [(1, f"{path}, byte 0"), (3, f"{path}, byte {11 + len(line)}")]
    assert [(each.position, each.raw) for each in bad] == [(f"{path}, byte 9", line)]
    with pytest.raises(SourceUnreadable, match=rf"a\.jsonl, byte 9: {reason}"):
        rows_of(source.shards(1))


def test_a_field_that_the_sample_does_not_show_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_SAMPLE", 10)
    monkeypatch.setattr("frazil.sources.json_lines._SAMPLE_BYTES", 10)
    path = written(tmp_path / "a.jsonl", '{"a": 1}', '{"a": 2, "s": {"x": 1}}')
    with pytest.raises(SourceUnreadable, match=r"byte 9: field 's' is not known: .*--schema"):
        read(path)
    assert read(path, schema="s struct<x int>")[1] == {"s": {"x": 1}, "a": 2}


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_files_without_a_value_have_no_rows(tmp_path: Path, text: str) -> None:
    empty = tmp_path / "0.jsonl"
    empty.write_text(text)
    with pytest.raises(BadInput, match="is empty"):
        opened(empty)
    assert rows_of(opened(empty, schema="a int").shards(3)) == []


@pytest.mark.parametrize("text", ['[{"a": 1}]', '{\n  "a": 1\n}\n'])
def test_a_file_that_is_not_lines_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(SourceUnreadable, match="one object on each line"):
        opened(tmp_path / "a.json")


def test_bytes_that_are_not_utf8_are_a_bad_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": "x"}\n{"a": "\xff"}\n')
    rows, (bad,) = read_with_bad(opened(tmp_path / "a.jsonl"))
    assert [row for row, _ in rows] == [{"a": "x"}]
    assert (bad.position, bad.raw) == (f"{tmp_path}/a.jsonl, byte 11", '{"a": "\\xff"}')


def test_compressed_files_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 10_000))
    shards = opened(tmp_path / "a.json.gz").shards(4)
    assert len(shards) == 1
    assert rows_of(shards) == [{"a": 1}] * 10_000


VALUES = st.fixed_dictionaries(
    {
        "n": st.integers(-(2**63), 2**63 - 1),
        "t": st.none() | st.text(max_size=5),
        "l": st.lists(st.none() | st.booleans(), max_size=3),
        "s": st.none() | st.fixed_dictionaries({"x": st.floats(allow_nan=False, allow_infinity=False)}),
    }
)


@given(
    rows=st.lists(VALUES, max_size=30),
    count=st.integers(1, 12),
    block=st.integers(1, 200),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_number_of_shards_gives_exactly_the_rows_of_the_file(
    tmp_path: Path, rows: list[dict[str, Any]], count: int, block: int, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_RANGE", 1)
    monkeypatch.setattr(text_blocks.read_blocks, "__defaults__", (block,))
    path = written(tmp_path / "a.jsonl", *(json.dumps(row, ensure_ascii=row["n"] % 2 == 0) for row in rows), end=end)
    schema = "n bigint, t string, l list<boolean>, s struct<x double>"
    assert rows_of(opened(path, schema=schema).shards(count)) == rows


def test_a_shard_is_a_value_that_reads_the_same_twice_and_refuses_a_changed_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '{"a b": [{"x`y": 1}], "m": "2024-01-01"}')
    (shard,) = opened(path).shards(1)
    again = shard_from_document(shard.name, json.loads(json.dumps(shard.to_document())))
    assert again == pickle.loads(pickle.dumps(shard)) == shard
    assert rows_of([again]) == rows_of([shard]) == [{"a b": [{"x`y": 1}], "m": date(2024, 1, 1)}]
    os.utime(path, (1, 1))
    with pytest.raises(SourceUnreadable, match=r"a\.jsonl changed"):
        rows_of([shard])


def test_duckdb_and_polars_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_RANGE", 1024)
    chosen = random.Random(7)
    lines = [
        json.dumps(
            {"id": number, "x": chosen.random(), "s": {"t": chosen.choice(["a", 'b"', "ü\n"]), "l": [number, None]}}
        )
        for number in range(3000)
    ]
    path = written(tmp_path / "a.jsonl", *lines)
    rows = read(path, count=7)
    assert rows == polars.read_ndjson(path).to_dicts()
    assert [tuple(row.values()) for row in rows] == duckdb.sql(f"FROM read_json('{path}')").fetchall()
