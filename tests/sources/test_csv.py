"""CSV files: types, dialects, ranges that lose and double nothing, and bad records told by file and byte."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import os
import pickle
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
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
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from frazil.errors import BadInput, SchemaMismatch, SourceUnreadable
from frazil.sources import text_blocks, text_files
from frazil.sources.open import shard_from_document
from text_rows import opened, read, read_with_bad, rows_of


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def table_of(*fields: tuple[str, object]) -> Schema:
    return Schema(*(NestedField(at, name, kind, required=False) for at, (name, kind) in enumerate(fields, 1)))


def kinds(path: Path, **options: str) -> dict[str, str]:
    return {field.name: str(field.type) for field in opened(path, **options).schema()}


def test_types_are_told_from_the_values_of_all_files(tmp_path: Path) -> None:
    written(tmp_path / "1.csv", "a,b,c,d,e,f,g,h\n1,1,true,2024-01-02,2024-01-02 03:04:05,007,,12:30:00\n")
    written(tmp_path / "2.csv", "a,b,c,d,e,f,g,h\n2,2.5,false,2024-01-03,2024-01-02T03:04:05.123456,8,,12:30\n")
    assert kinds(tmp_path) == {
        "a": "int64",
        "b": "double",
        "c": "bool",
        "d": "date32[day]",
        "e": "timestamp[us]",
        "f": "string",  # a postal code keeps its zeros
        "g": "string",
        "h": "time64[us]",
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "x"], "string"),
        (["9223372036854775807"], "int64"),
        (["9223372036854775808"], "decimal128(38, 0)"),
        (["1", "NaN", "-inf", "1e3"], "double"),
        (["2024-01-01 00:00:00Z", "2024-01-01 00:00:00+02:00"], "timestamp[us, tz=UTC]"),
        (["2024-01-01 00:00:00.123456789"], "timestamp[ns]"),
        (["2024-01-01 00:00:00Z", "2024-01-01 00:00:00"], "string"),
        (["2024-01-01", "2024-13-01"], "string"),
        (["9" * 39], "string"),
    ],
)
def test_a_column_has_the_narrowest_type_that_holds_its_sample(tmp_path: Path, values: list[str], kind: str) -> None:
    path = written(tmp_path / "a.csv", "v,w\n" + "".join(f"{value},\n" for value in values))
    assert kinds(path)["v"] == kind


def test_nulls_and_empty_texts_are_told_apart_by_quotes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'n,t\n1,""\n,\nNA,NA\n')
    assert read(path, null_values=",NA") == [{"n": 1, "t": ""}, {"n": None, "t": None}, {"n": None, "t": None}]


def test_values_are_read_as_the_table_s_types_without_loss(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.csv",
        "dec,i,flag,ts,tz,day,clock,uid,fix,text,real\n"
        "12345678901234567890123456789012345.678,7,t,2024-01-01 00:00:00.000001,1969-12-31T23:59:59.999999-01:00,0001-01-01,"
        "23:59:59.999999,f81d4fae-7dec-11d0-a765-00a0c91e6bf6,ab,007,nan\n,,,,,,,,,,\n",
    )
    table = table_of(
        ("dec", DecimalType(38, 3)),
        ("i", IntegerType()),
        ("flag", BooleanType()),
        ("ts", TimestampType()),
        ("tz", TimestamptzType()),
        ("day", DateType()),
        ("clock", TimeType()),
        ("uid", UUIDType()),
        ("fix", FixedType(2)),
        ("text", StringType()),
        ("real", DoubleType()),
    )
    row, nulls = rows_of(opened(path).for_table(table).shards(1))
    assert str(row.pop("real")) == "nan"
    assert row == {
        "dec": Decimal("12345678901234567890123456789012345.678"),
        "i": 7,
        "flag": True,
        "ts": datetime(2024, 1, 1, 0, 0, 0, 1),
        "tz": datetime(1970, 1, 1, 0, 59, 59, 999999, UTC),
        "day": date(1, 1, 1),
        "clock": time(23, 59, 59, 999999),
        "uid": UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        "fix": b"ab",
        "text": "007",
    }
    assert set(nulls.values()) == {None}


def test_a_schema_given_wins_over_the_table_and_the_sample(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,price\n1,2.50\n")
    source = opened(path, schema="price decimal(9,2)").for_table(
        table_of(("id", StringType()), ("price", StringType()))
    )
    assert rows_of(source.shards(1)) == [{"id": "1", "price": Decimal("2.50")}]
    with pytest.raises(SchemaMismatch, match="--schema names column prise"):
        opened(path, schema="prise double").schema()


def test_a_column_that_csv_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "tags\nx\n")
    table = table_of(("tags", ListType(2, LongType(), False)))
    with pytest.raises(SchemaMismatch, match=r"'tags'.*which CSV cannot hold"):
        opened(path).for_table(table).schema()


def test_files_without_a_header_get_names_from_the_schema_the_table_or_their_places(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "1;x\n2;y\n")
    options = {"header": "false", "delimiter": "semicolon"}
    assert opened(path, **options).schema().names == ["column_1", "column_2"]
    assert opened(path, schema="id int, t text", **options).schema() == pa.schema(
        [("id", pa.int32()), ("t", pa.string())]
    )
    table = table_of(("n", LongType()), ("m", StringType()))
    assert rows_of(opened(path, **options).for_table(table).shards(1))[0] == {"n": 1, "m": "x"}
    with pytest.raises(SchemaMismatch, match=r"has 2 columns and no header, but 1 are named: id"):
        opened(path, schema="id int", **options).schema()


def test_files_may_have_their_columns_in_other_orders_and_some_not_at_all(tmp_path: Path) -> None:
    written(tmp_path / "1.csv", "a,b\n1,x\n")
    written(tmp_path / "2.csv", "b,c,a\ny,2,2\n")
    source = opened(tmp_path)
    assert source.schema().names == ["a", "b", "c"]
    assert rows_of(source.shards(1)) == [{"a": 1, "b": "x"}, {"b": "y", "c": 2, "a": 2}]
    assert [Path(path).name for path, _ in source.schemas()] == ["1.csv", "2.csv"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n", []),
        ("a,b", []),
        ("\n\na,b\n\n1,2\n\n", [{"a": 1, "b": 2}]),
        ("a,b\r\n1,2\r\n3,4", [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
        ("a,b\r1,2\r3,4\r", [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
        ("\ufeffa,b\n1,2\n", [{"a": 1, "b": 2}]),
        ("a\n1\n\n3\n", [{"a": 1}, {"a": None}, {"a": 3}]),
        ('"a\nb",c\n1,2\n', [{"a\nb": 1, "c": 2}]),
    ],
)
def test_forms_that_a_file_may_have(tmp_path: Path, text: str, rows: list[dict[str, object]]) -> None:
    assert read(written(tmp_path / "a.csv", text)) == rows


def test_a_header_may_be_longer_than_a_file_s_share_of_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_SAMPLE", 100)
    monkeypatch.setattr("frazil.sources.csv._SAMPLE_BYTES", 100)
    names = [f"column number {number}" for number in range(1000)]
    path = written(tmp_path / "a.csv", ",".join(names) + "\n" + ",".join(map(str, range(1000))) + "\n")
    assert read(path) == [{name: number for number, name in enumerate(names)}]


def test_an_empty_file_has_neither_rows_nor_columns(tmp_path: Path) -> None:
    empty = written(tmp_path / "0.csv", "")
    with pytest.raises(BadInput, match="is empty"):
        opened(empty)
    written(tmp_path / "1.csv", "a\n1\n")
    assert read(tmp_path) == [{"a": 1}]


def test_lines_before_the_header_can_be_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "made by a tool\n\na,b\n1,2\n")
    assert read(path, skip_lines="2") == [{"a": 1, "b": 2}]


def test_other_encodings_and_tabs_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "name\tn\nMünchen\t1\n".encode("latin-1"))
    assert read(path, encoding="latin-1") == [{"name": "München", "n": 1}]
    rows, (bad,) = read_with_bad(opened(path, schema="name string"))
    assert rows == []
    assert bad.position.endswith("a.tsv, byte 7")
    assert bad.raw == "M\\xfcnchen\t1"


def test_files_with_commas_and_with_tabs_are_not_read_as_one(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", "a,b\n1,2\n")
    written(tmp_path / "b.tsv", "a\tb\n1\t2\n")
    with pytest.raises(BadInput, match=r"both \.tsv \(.*b\.tsv\) and not \(.*a\.csv\)"):
        opened(tmp_path)
    assert opened(tmp_path, delimiter="|").schema().names == ["a,b", "a\tb"]


@pytest.mark.parametrize(
    ("ending", "compress"),
    [
        (".csv.gz", gzip.compress),
        (".csv.bz2", bz2.compress),
        (".csv.zst", lambda data: pa.Codec("zstd").compress(data).to_pybytes()),
        (".csv.lz4", lambda data: pa.Codec("lz4").compress(data).to_pybytes()),
        (".csv", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),  # told by its bytes; two members
    ],
)
def test_compressed_files_are_read_whole(tmp_path: Path, ending: str, compress: object) -> None:
    text = b"a,b\n" + b"".join(b"%d,x\n" % number for number in range(5000))
    path = written(tmp_path / f"a{ending}", compress(text))  # type: ignore[operator]
    shards = opened(path).shards(8)
    assert len(shards) == 1
    assert [row["a"] for row in rows_of(shards)] == list(range(5000))
    rows, _ = read_with_bad(opened(path))
    assert rows[1][1].endswith(f"a{ending}, byte of the text in it 8")


def test_a_compressed_file_that_is_cut_short_is_refused_by_name(tmp_path: Path) -> None:
    noise = random.Random(1)
    text = b"a\n" + b"".join(b"%d\n" % noise.randrange(10**12) for _ in range(400_000))
    path = written(tmp_path / "a.csv.gz", gzip.compress(text)[:-20])
    with pytest.raises(SourceUnreadable, match=r"a\.csv\.gz cannot be read"):
        read(path)


@given(
    rows=st.lists(st.tuples(st.integers(), st.text('ab",\n\r é', max_size=6)), max_size=40),
    count=st.integers(1, 12),
    multiline=st.just("true"),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_number_of_shards_gives_exactly_the_rows_of_the_file(
    tmp_path: Path, rows: list[tuple[int, str]], count: int, multiline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_RANGE", 1)
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerows([["n", "t"], *rows])
    monkeypatch.setattr(text_blocks.read_blocks, "__defaults__", (7,))
    source = opened(path, multiline=multiline, schema="n decimal(38,0), t string")
    assert [(int(row["n"]), row["t"]) for row in rows_of(source.shards(count))] == rows


@given(count=st.integers(1, 40), block=st.integers(1, 100))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_quoted_line_ends_are_read_rightly_or_refused(
    tmp_path: Path, count: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_RANGE", 1)
    monkeypatch.setattr(text_blocks.read_blocks, "__defaults__", (block,))
    path = written(tmp_path / "a.csv", "n,t\n" + "".join(f'{number},"x\ny,z\n"\n' for number in range(50)))
    expected = [{"n": number, "t": "x\ny,z\n"} for number in range(50)]
    assert read(path, count=count) == expected  # the sample shows the quoted line ends
    try:
        assert read(path, count=count, multiline="false", schema="n string") == [
            {"n": str(row["n"]), "t": row["t"]} for row in expected
        ]
    except SourceUnreadable as error:
        assert "multiline=true" in str(error)


def test_a_cut_within_a_quoted_field_fails_the_shard_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_RANGE", 1)
    path = written(tmp_path / "a.csv", 'n,t\n1,"' + "x\n" * 100 + '"\n')
    first, second = opened(path, multiline="false").shards(2)
    with pytest.raises(SourceUnreadable, match=r"lies within a quoted field .*multiline=true"):
        list(first.batches({}))
    assert second.pieces[0].start > 7


def test_a_quote_that_is_never_closed_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", 'n,t\n1,"x\n2,y\n')
    with pytest.raises(SourceUnreadable, match=r"a\.csv, byte 4: this record is the file's last and .* never closed"):
        read(path)


def test_a_record_that_does_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "LONGEST_RECORD", 1000)
    monkeypatch.setattr(text_blocks.read_blocks, "__defaults__", (500,))
    path = written(tmp_path / "a.csv", 'n,t\n1,"' + "x\n" * 5000)
    with pytest.raises(SourceUnreadable, match="begins at byte 4 does not end"):
        read(path)


def test_bad_records_are_told_with_place_reason_and_text_and_the_others_read(tmp_path: Path) -> None:
    lines = [f"{number},2024-01-01" for number in range(1000)]
    lines[10], lines[500], lines[501] = "ten,2024-01-01", "500,2024-01-01,more", "501,2024-02-30"
    path = written(tmp_path / "a.csv", "n,d\n" + "\n".join(lines) + "\n")
    rows, bad = read_with_bad(opened(path, schema="n bigint, d date"))
    assert [row["n"] for row, _ in rows] == [number for number in range(1000) if number not in (10, 500, 501)]
    text = path.read_bytes()
    assert all(text[int(place.rpartition(" ")[2]) :].startswith(b"%d," % row["n"]) for row, place in rows)
    assert [(each.raw, each.reason) for each in bad] == [
        ("ten,2024-01-01", "column 'n' is bigint, and 'ten' is not"),
        ("500,2024-01-01,more", "Expected 2 columns, got 3: 500,2024-01-01,more"),
        ("501,2024-02-30", "column 'd' is date, and '2024-02-30' is not"),
    ]
    assert bad[0].position == f"{path}, byte {text.index(b'ten')}"


def test_without_anybody_to_take_it_a_bad_record_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "n,d\n1,x\n2,y\nz,z\n")
    with pytest.raises(SourceUnreadable, match=r"a\.csv, byte 12: column 'n' is bigint, and 'z' is not"):
        read(path, schema="n bigint")


@pytest.mark.parametrize("header", ["a,a", "a,"])
def test_a_header_that_does_not_name_each_column_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(SchemaMismatch, match=r"the header of .*a\.csv names"):
        opened(written(tmp_path / "a.csv", f"{header}\n1,2\n")).schema()


def test_a_shard_is_a_value_that_reads_the_same_twice_and_refuses_a_changed_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "n,t\n1,x\n2,y\n")
    (shard,) = opened(path, null_values="x").shards(1)
    again = shard_from_document(shard.name, json.loads(json.dumps(shard.to_document())))
    assert again == pickle.loads(pickle.dumps(shard)) == shard
    assert rows_of([shard]) == rows_of([again]) == [{"n": 1, "t": None}, {"n": 2, "t": "y"}]
    os.utime(path, (1, 1))
    with pytest.raises(SourceUnreadable, match=r"a\.csv changed"):
        list(shard.batches({}))


def test_duckdb_and_polars_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_SMALLEST_RANGE", 1024)
    chosen = random.Random(7)
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "price", "text", "day", "at"])
        for number in range(3000):
            text = chosen.choice(["plain", 'with "quotes"', "a, b", "two\nlines", "ünï", "x" * 100])
            writer.writerow(
                [
                    number,
                    chosen.random(),
                    text,
                    f"2024-02-{1 + number % 29:02d}",
                    f"2024-02-01 00:{number % 60:02d}:00.5",
                ]
            )
    rows = [tuple(row.values()) for row in read(path, count=7)]
    assert rows == duckdb.sql(f"FROM read_csv('{path}')").fetchall()
    assert rows == polars.read_csv(path, try_parse_dates=True).rows()
