"""Avro files: every type as fastavro reads it, cut at markers, damage told by file and block."""

from __future__ import annotations

import json
import os
import pickle
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import polars
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.errors import SchemaMismatch, SourceUnreadable
from frazil.sources import avro
from frazil.sources.open import shard_from_document
from text_rows import opened, read, read_with_bad, rows_of

EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "all",
    "namespace": "x.y",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": "float"},
        {"name": "d", "type": ["double", "null"]},
        {"name": "b", "type": "boolean"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "fix", "type": {"type": "fixed", "name": "four", "size": 4}},
        {"name": "fix2", "type": ["null", "four"]},
        {"name": "e", "type": {"type": "enum", "name": "colour", "symbols": ["red", "green"]}},
        {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}},
        {
            "name": "decf",
            "type": ["null", {"type": "fixed", "name": "nine", "size": 9, "logicalType": "decimal", "precision": 20}],
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "tms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "tus", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "list", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "deep", "type": ["null", {"type": "array", "items": {"type": "map", "values": ["null", "long"]}}]},
        {
            "name": "rec",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "inner",
                    "fields": [
                        {"name": "n", "type": "int"},
                        {"name": "c", "type": ["null", "colour"]},
                        {"name": "l", "type": {"type": "array", "items": "int"}},
                    ],
                },
            ],
        },
        {"name": "rec2", "type": ["null", "inner"]},
        {"name": "nothing", "type": "null"},
    ],
}
INNER = st.none() | st.fixed_dictionaries(
    {
        "n": st.integers(-(2**31), 2**31 - 1),
        "c": st.none() | st.sampled_from(["red", "green"]),
        "l": st.lists(st.integers(-9, 9), max_size=3),
    }
)
WIDE = Context(prec=50)
TIMES = {"min_value": datetime(1, 1, 2), "max_value": datetime(9999, 12, 30)}
ROWS = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.floats(width=32, allow_nan=False),
        "d": st.none() | st.floats(allow_nan=False),
        "b": st.booleans(),
        "s": st.none() | st.text(max_size=200),
        "raw": st.binary(max_size=5),
        "fix": st.binary(min_size=4, max_size=4),
        "fix2": st.none() | st.binary(min_size=4, max_size=4),
        "e": st.sampled_from(["red", "green"]),
        "dec": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(number).scaleb(-10, WIDE)),
        "decf": st.none() | st.integers(-(10**20) + 1, 10**20 - 1).map(Decimal),
        "day": st.dates(),
        "tms": st.times().map(lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)),
        "tus": st.times(),
        "ms": st.datetimes(**TIMES).map(
            lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000, tzinfo=UTC)
        ),
        "us": st.none() | st.datetimes(**TIMES).map(lambda each: each.replace(tzinfo=UTC)),
        "local": st.datetimes(**TIMES),
        "uid": st.uuids(),
        "list": st.lists(st.none() | st.text(max_size=3), max_size=3),
        "deep": st.none()
        | st.lists(st.dictionaries(st.text(max_size=3), st.none() | st.integers(-9, 9), max_size=2), max_size=2),
        "rec": INNER,
        "rec2": INNER,
        "nothing": st.none(),
    }
)


def written(path: Path, schema: Any, rows: list[dict[str, Any]], **options: Any) -> Path:
    with path.open("wb") as stream:
        fastavro.writer(stream, fastavro.parse_schema(schema), rows, **options)
    return path


def as_pairs(row: dict[str, Any]) -> dict[str, Any]:
    """Maps as PyArrow gives them, as lists of pairs."""
    deep = row["deep"]
    return {**row, "deep": None if deep is None else [list(each.items()) for each in deep]}


@given(
    rows=st.lists(ROWS, max_size=12),
    codec=st.sampled_from(["null", "deflate", "bzip2", "xz"]),
    count=st.integers(1, 5),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_type_is_read_as_fastavro_wrote_it_in_any_number_of_shards(
    tmp_path: Path, rows: list[dict[str, Any]], codec: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro, "_SMALLEST_RANGE", 1)
    path = written(tmp_path / "a.avro", EVERYTHING, rows, codec=codec, sync_interval=200)
    assert rows_of(opened(path).shards(count)) == [as_pairs(row) for row in rows]


def test_columns_have_the_types_that_their_logical_types_say(tmp_path: Path) -> None:
    schema = opened(written(tmp_path / "a.avro", EVERYTHING, [])).schema()
    kinds = {field.name: (str(field.type), field.nullable) for field in schema}
    assert kinds["dec"] == ("decimal128(38, 10)", False)
    assert kinds["decf"] == ("decimal128(20, 0)", True)
    assert kinds["ms"] == ("timestamp[ms, tz=UTC]", False)
    assert kinds["local"] == ("timestamp[us]", False)
    assert kinds["uid"] == ("extension<arrow.uuid>", False)
    assert kinds["fix2"] == ("fixed_size_binary[4]", True)
    assert kinds["deep"][0].startswith("list<element: map<string, int64")


def test_nanoseconds_keep_their_digits(tmp_path: Path) -> None:
    kind = {"type": "long", "logicalType": "timestamp-nanos"}
    schema = {"type": "record", "name": "r", "fields": [{"name": "t", "type": kind}]}
    source = opened(written(tmp_path / "a.avro", schema, [{"t": 1704067200123456789}]))
    assert source.schema() == pa.schema([pa.field("t", pa.timestamp("ns", "UTC"), False)])
    assert read(tmp_path / "a.avro")[0]["t"].value == 1704067200123456789


def test_snappy_as_polars_writes_it(tmp_path: Path) -> None:
    frame = polars.DataFrame(
        {"id": range(5000), "t": [f"row {number}" for number in range(5000)], "x": [None, 1.5] * 2500}
    )
    frame.write_avro(tmp_path / "a.avro", compression="snappy")
    assert read(tmp_path / "a.avro") == frame.to_dicts() == polars.read_avro(tmp_path / "a.avro").to_dicts()


def number(value: int) -> bytes:
    """As Avro writes a number that is not negative and below 2**27."""
    value <<= 1
    return bytes((value >> shift & 127) | 128 for shift in range(0, 21, 7)) + bytes([value >> 21])


def test_zstandard_is_read(tmp_path: Path) -> None:
    with written(tmp_path / "plain.avro", SMALL, small(500), sync_interval=500).open("rb") as stream:
        blocks = [(block.num_records, block.bytes_.getvalue()) for block in fastavro.block_reader(stream)]
    header = {b"avro.codec": b"zstandard", b"avro.schema": json.dumps(SMALL).encode()}
    data = b"Obj\x01" + number(2) + b"".join(number(len(each)) + each for pair in header.items() for each in pair)
    data += number(0) + b"s" * 16
    for records, content in blocks:
        packed = pa.Codec("zstd").compress(content).to_pybytes()
        data += number(records) + number(len(packed)) + packed + b"s" * 16
    (tmp_path / "a.avro").write_bytes(data)
    assert read(tmp_path / "a.avro") == small(500)


def test_a_snappy_block_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    polars.DataFrame({"t": ["abc" * 100]}).write_avro(tmp_path / "a.avro", compression="snappy")
    stored = bytearray((tmp_path / "a.avro").read_bytes())
    stored[-17] ^= 1
    (tmp_path / "a.avro").write_bytes(bytes(stored))
    with pytest.raises(SourceUnreadable, match=r"the block at byte \d+ is damaged: its checksum is wrong"):
        read(tmp_path / "a.avro")


SMALL = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "t", "type": "string"}]}


def small(number: int) -> list[dict[str, Any]]:
    return [{"id": each, "t": f"row {each}"} for each in range(number)]


def test_large_files_are_cut_at_their_markers(tmp_path: Path) -> None:
    path = written(tmp_path / "a.avro", SMALL, small(200_000), sync_interval=2000)
    shards = opened(path).shards(7)
    assert len(shards) == 7
    sizes = [shard.bytes for shard in shards]
    assert max(sizes) < 1.1 * min(sizes)
    ids = [row for shard in shards for batch in shard.batches({}) for row in batch["id"].to_pylist()]
    assert ids == list(range(200_000))


def test_rows_are_placed_by_block_and_number(tmp_path: Path) -> None:
    path = written(tmp_path / "a.avro", SMALL, small(1000), sync_interval=500)
    rows, _ = read_with_bad(opened(path))
    places = [place.removeprefix(f"{path}, block at byte ").split(", row ") for _, place in rows]
    blocks = sorted({int(byte) for byte, _ in places})
    with path.open("rb") as stream:
        expected = [block.offset for block in fastavro.block_reader(stream)]
    assert blocks == expected
    assert [int(number) for _, number in places[:3]] == [1, 2, 3]


def test_a_shard_is_a_value_and_refuses_a_changed_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.avro", SMALL, small(10))
    (shard,) = opened(path).shards(1)
    again = shard_from_document(shard.name, json.loads(json.dumps(shard.to_document())))
    assert again == pickle.loads(pickle.dumps(shard)) == shard
    assert rows_of([again]) == small(10)
    os.utime(path, (1, 1))
    with pytest.raises(SourceUnreadable, match="changed"):
        rows_of([shard])


def test_files_with_different_schemas_are_one_source(tmp_path: Path) -> None:
    written(tmp_path / "1.avro", SMALL, small(1))
    more = {**SMALL, "fields": [*SMALL["fields"], {"name": "x", "type": "double"}]}  # type: ignore[misc]
    written(tmp_path / "2.avro", more, [{**small(1)[0], "x": 1.5}])
    source = opened(tmp_path)
    assert [(field.name, field.nullable) for field in source.schema()] == [("id", False), ("t", False), ("x", True)]
    assert rows_of(source.shards(1)) == [small(1)[0], {**small(1)[0], "x": 1.5}]


@pytest.mark.parametrize("at", [0, 3, 60, 250, 2000, -1])
def test_a_damaged_file_is_named_and_no_row_of_it_invented(tmp_path: Path, at: int) -> None:
    path = written(tmp_path / "a.avro", SMALL, small(500), sync_interval=500)
    stored = bytearray(path.read_bytes())
    stored[at] ^= 0xFF
    path.write_bytes(bytes(stored))
    try:
        assert len(read(path)) == 500
    except SourceUnreadable as error:
        assert "a.avro" in str(error)


@pytest.mark.parametrize("keep", [0, 4, 100, 3000])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, keep: int) -> None:
    path = written(tmp_path / "a.avro", SMALL, small(500), sync_interval=500)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(SourceUnreadable, match=r"a\.avro is damaged or not readable Avro"):
        read(path)


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (["int", "string"], r"column 'v' of .* is a union of 2 types"),
        ({"type": "array", "items": ["null", "int", "string"]}, r"column 'v\.element' of .* is a union of 2 types"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "a decimal of 39 digits"),
        (["null", "r"], "a r within a r"),
    ],
)
def test_what_no_table_can_hold_is_refused_by_column(tmp_path: Path, kind: Any, complaint: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": kind}]}
    path = written(tmp_path / "a.avro", schema, [])
    with pytest.raises(SchemaMismatch, match=complaint):
        opened(path)


def test_arrays_may_be_nested_as_deeply_as_anybody_nests_them_and_no_deeper(tmp_path: Path) -> None:
    def nested(depth: int) -> Any:
        return {"type": "array", "items": nested(depth - 1)} if depth else "long"

    def schema(depth: int) -> Any:
        return {"type": "record", "name": "r", "fields": [{"name": "v", "type": nested(depth)}]}

    assert read(written(tmp_path / "a.avro", schema(6), [{"v": [[[[[[1, 2]]]]]]}])) == [{"v": [[[[[[1, 2]]]]]]}]
    with pytest.raises(SourceUnreadable, match="nested too deeply"):
        opened(written(tmp_path / "b.avro", schema(30), []))


def test_edges(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "x", "type": "double"},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "c", "type": {"type": "int", "logicalType": "date"}},
            {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "k", "type": {"type": "int", "logicalType": "time-millis"}},
        ],
    }
    row = {
        "x": float("nan"),
        "t": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        "c": date(1, 1, 1),
        "u": UUID(int=0),
        "k": time(23, 59, 59, 999000),
    }
    (found,) = read(written(tmp_path / "a.avro", schema, [row]))
    assert str(found.pop("x")) == "nan"
    assert found == {name: value for name, value in row.items() if name != "x"}
