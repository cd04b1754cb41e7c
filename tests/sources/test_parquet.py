"""Parquet files are cut into shards by row group, and their schemas made one."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import SchemaMismatch, SourceUnreadable
from frazil.sources.files import SourceFile
from frazil.sources.parquet import Footer, ParquetShard, ParquetSource, RowGroups
from frazil.sources.source import Shard


def written(path: Path, group: int = 10, **columns: pa.Array) -> str:
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return str(path)


def numbers(count: int, first: int = 0) -> pa.Array:
    return pa.array(range(first, first + count), pa.int64())


def source_of(*sizes: list[int]) -> ParquetSource:
    """A source whose files have row groups of these bytes, without any file."""
    source = object.__new__(ParquetSource)
    source.footers = [
        Footer(
            SourceFile(f"/{at}", 1, 1),
            pa.schema([]),
            tuple(RowGroups(f"/{at}", 1, 1, (number,), 1, size) for number, size in enumerate(file)),
        )
        for at, file in enumerate(sizes)
    ]
    return source


def test_shards_hold_every_row_once_and_in_order(tmp_path: Path) -> None:
    paths = [written(tmp_path / "a.parquet", id=numbers(35)), written(tmp_path / "b.parquet", id=numbers(25, 35))]
    source = ParquetSource(paths, {})
    shards = source.shards(3)
    assert (len(shards), source.rows, sum(shard.rows for shard in shards)) == (3, 60, 60)
    rows = [row for shard in shards for batch in shard.batches({}) for row in batch["id"].to_pylist()]
    assert rows == list(range(60))
    assert isinstance(shards[0], Shard)


@pytest.mark.parametrize("halves", [[49, 51], [51, 49], [50, 50]])
def test_two_row_groups_make_two_shards_whichever_is_larger(halves: list[int]) -> None:
    assert [shard.bytes for shard in source_of(halves).shards(2)] == halves


@given(st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=8), min_size=1, max_size=8), st.integers(1, 20))
def test_no_group_is_lost_and_no_shard_is_larger_than_its_share_and_one_group(
    files: list[list[int]], count: int
) -> None:
    shards = source_of(*files).shards(count)
    groups = [(piece.path, number) for shard in shards for piece in shard.pieces for number in piece.numbers]
    assert groups == [(f"/{at}", number) for at, file in enumerate(files) for number in range(len(file))]
    assert len(shards) <= count + 1
    sizes = [size for file in files for size in file]
    assert all(shard.bytes <= sum(sizes) / count + max(sizes) for shard in shards)


def test_small_files_share_a_shard(tmp_path: Path) -> None:
    for number in range(20):
        written(tmp_path / f"{number:02d}.parquet", id=numbers(5, 5 * number))
    shards = ParquetSource([str(tmp_path)], {}).shards(2)
    assert [len(shard.pieces) for shard in shards] == [10, 10]


def test_files_without_rows_make_no_shard(tmp_path: Path) -> None:
    assert ParquetSource([written(tmp_path / "a.parquet", id=numbers(0))], {}).shards(4) == []


def test_a_shard_survives_the_jobs_log_and_a_pickle(tmp_path: Path) -> None:
    (shard,) = ParquetSource([written(tmp_path / "a.parquet", id=numbers(30))], {}).shards(1)
    assert ParquetShard.from_document(shard.name, json.loads(json.dumps(shard.to_document()))) == shard
    assert pickle.loads(pickle.dumps(shard)) == shard


@pytest.mark.parametrize("change", ["rewritten", "touched", "gone"])
def test_a_file_that_changed_since_the_plan_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.parquet"
    (shard,) = ParquetSource([written(path, id=numbers(30))], {}).shards(1)
    if change == "rewritten":
        written(path, id=numbers(31))
    elif change == "touched":
        os.utime(path, (1, 1))
    else:
        path.unlink()
    with pytest.raises(SourceUnreadable, match=r"a\.parquet changed \(or vanished\)"):
        list(shard.batches({}))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"id,text\n1,one\n", b"PAR1" + bytes(100) + b"PAR1"])
def test_what_is_not_parquet_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(SourceUnreadable, match=r"a\.parquet is not a readable Parquet file"):
        ParquetSource([str(tmp_path / "a.parquet")], {})


def merged(tmp_path: Path, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    for name, kind in (("1", one), ("2", other)):
        written(tmp_path / f"{name}.parquet", c=pa.nulls(1, kind))
    return ParquetSource([str(tmp_path)], {}).schema().field("c").type


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.uint32(), pa.int32(), pa.int64()),
        (pa.uint8(), pa.int8(), pa.int32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(18, 2), pa.decimal128(18, 2)),
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.string()),
        (pa.int32(), pa.int32(), pa.int32()),
    ],
)
def test_types_that_one_type_can_hold_are_merged_in_either_order(
    tmp_path: Path, one: pa.DataType, other: pa.DataType, common: pa.DataType
) -> None:
    assert merged(tmp_path, one, other) == common
    assert merged(tmp_path, other, one) == common


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.uint64(), pa.int64()),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.date32()),
        (pa.string(), pa.binary()),
    ],
)
def test_types_that_clash_are_named_with_their_files(tmp_path: Path, one: pa.DataType, other: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch) as told:
        merged(tmp_path, one, other)
    for words in ("'c'", str(one), str(other), "1.parquet", "2.parquet"):
        assert words in str(told.value)


def test_columns_come_in_the_order_of_their_appearance_and_are_optional_where_a_file_lacks_them(tmp_path: Path) -> None:
    required = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False)])
    pq.write_table(pa.table({"a": [1], "b": [2]}, schema=required), tmp_path / "1.parquet")
    pq.write_table(
        pa.table({"c": [1], "a": [2]}, schema=pa.schema([("c", pa.int64()), required.field("a")])),
        tmp_path / "2.parquet",
    )
    schema = ParquetSource([str(tmp_path)], {}).schema()
    assert [(field.name, field.nullable) for field in schema] == [("a", False), ("b", True), ("c", True)]
