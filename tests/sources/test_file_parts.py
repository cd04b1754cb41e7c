"""ORC and Arrow IPC: every row once in any number of shards, types kept, positions by part, damage told by file."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from pyarrow import ipc, orc

from frazil.errors import BadInput, SchemaMismatch, SourceUnreadable
from frazil.sources.open import shard_from_document
from text_rows import opened, read, read_with_bad, rows_of

Write = Callable[[pa.Table, Path], Any]


def write_orc(table: pa.Table, path: Path) -> None:
    if not table.num_rows:
        orc.write_table(table, str(path))
        return
    with orc.ORCWriter(str(path), stripe_size=1, batch_size=1000) as writer:
        for batch in table.to_batches(max_chunksize=5000):
            writer.write(pa.Table.from_batches([batch]))


def write_file(table: pa.Table, path: Path) -> None:
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table, max_chunksize=1000)


def write_stream(table: pa.Table, path: Path) -> None:
    with ipc.new_stream(path, table.schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table, max_chunksize=1000)


FORMS: list[tuple[Write, str]] = [(write_orc, "a.orc"), (write_file, "a.arrow"), (write_stream, "a.arrows")]
forms = pytest.mark.parametrize(("write", "name"), FORMS, ids=[name for _, name in FORMS])

EDGES = pa.table(
    {
        "dec": pa.array([Decimal("9" * 28 + "." + "9" * 10), Decimal(0), None], pa.decimal128(38, 10)),
        "ns": pa.array([1704067200123456789, -1, None], pa.timestamp("ns")),
        "tz": pa.array([datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None, None], pa.timestamp("ns", "UTC")),
        "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
        "nan": pa.array([float("inf"), float("-inf"), None]),
        "none": pa.array([None, None, None], pa.int32()),
        "deep": pa.array(
            [[{"m": [("k", 1)]}], [None], None], pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))
        ),
        "long": pa.array(["x" * 5000, "", None]),
        "raw": pa.array([b"\x00\xff", b"", None]),
    }
)


def many(rows: int = 20_000) -> pa.Table:
    return pa.table({"id": range(rows), "t": [f"row {number * 7919 % 10007}" for number in range(rows)]})


@forms
@pytest.mark.parametrize("count", [1, 3, 50])
def test_any_number_of_shards_gives_every_row_once_and_in_order(
    tmp_path: Path, write: Write, name: str, count: int
) -> None:
    table = many()
    write(table, tmp_path / name)
    shards = opened(tmp_path / name).shards(count)
    assert len(shards) <= count
    assert rows_of(shards) == table.to_pylist()


@forms
def test_types_and_edges_are_kept(tmp_path: Path, write: Write, name: str) -> None:
    write(EDGES, tmp_path / name)
    assert opened(tmp_path / name).schema().equals(EDGES.schema)
    assert read(tmp_path / name) == EDGES.to_pylist()


@forms
def test_a_file_without_rows_has_no_shards_with_rows(tmp_path: Path, write: Write, name: str) -> None:
    write(EDGES.slice(0, 0), tmp_path / name)
    source = opened(tmp_path / name)
    assert source.schema().equals(EDGES.schema)
    assert rows_of(source.shards(2)) == []


@forms
def test_rows_are_placed_by_part_and_number(tmp_path: Path, write: Write, name: str) -> None:
    write(many(3), tmp_path / name)
    rows, _ = read_with_bad(opened(tmp_path / name))
    assert rows[2][1].startswith(f"{tmp_path / name}, ")
    assert rows[2][1].endswith(" 1, row 3")


@forms
def test_a_shard_is_a_value_and_refuses_a_changed_file(tmp_path: Path, write: Write, name: str) -> None:
    write(many(10), tmp_path / name)
    (shard,) = opened(tmp_path / name).shards(1)
    again = shard_from_document(shard.name, json.loads(json.dumps(shard.to_document())))
    assert again == pickle.loads(pickle.dumps(shard)) == shard
    assert rows_of([again]) == rows_of([shard])
    os.utime(tmp_path / name, (1, 1))
    with pytest.raises(SourceUnreadable, match="changed"):
        rows_of([shard])


@forms
def test_a_damaged_file_is_named(tmp_path: Path, write: Write, name: str) -> None:
    path = tmp_path / name
    write(many(), path)
    stored = path.read_bytes()
    path.write_bytes(stored[: len(stored) // 2])
    with pytest.raises(SourceUnreadable, match=rf"{name} is damaged or not readable"):
        read(path)


def test_a_feather_file_of_polars_is_read(tmp_path: Path) -> None:
    frame = polars.DataFrame({"id": [1, 2], "t": ["a", None], "l": [[1], []]})
    frame.write_ipc(tmp_path / "a.feather", compression="lz4", compat_level=polars.CompatLevel.oldest())
    assert read(tmp_path / "a.feather") == frame.to_dicts()


def test_dictionaries_are_columns_of_their_values(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array(["a", "b", "a", None]).dictionary_encode()})
    write_file(table, tmp_path / "a.arrow")
    assert opened(tmp_path / "a.arrow").schema() == pa.schema([("t", pa.string())])
    assert read(tmp_path / "a.arrow") == table.to_pylist()


def test_files_whose_types_clash_are_both_named(tmp_path: Path) -> None:
    write_file(pa.table({"a": [1]}), tmp_path / "1.arrow")
    write_file(pa.table({"a": ["x"]}), tmp_path / "2.arrow")
    with pytest.raises(SchemaMismatch, match=r"'a': it is int64 in .*1\.arrow and string in .*2\.arrow"):
        opened(tmp_path).schema()


def test_kinds_do_not_mix(tmp_path: Path) -> None:
    write_file(many(1), tmp_path / "1.arrow")
    write_orc(many(1), tmp_path / "2.orc")
    with pytest.raises(BadInput, match=r"of different kinds: arrow \(.*1\.arrow\) and orc \(.*2\.orc\)"):
        opened(tmp_path)


def test_a_timestamp_beyond_arrow_s_nanoseconds_is_refused_not_wrapped(tmp_path: Path) -> None:
    write_orc(pa.table({"t": pa.array([datetime(1500, 1, 1)], pa.timestamp("us"))}), tmp_path / "a.orc")
    with pytest.raises(SourceUnreadable, match="out of range for nanosecond"):
        read(tmp_path / "a.orc")
