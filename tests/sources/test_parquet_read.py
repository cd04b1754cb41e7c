"""Row groups as batches: every row once, dictionaries where they pay, errors that name the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from frazil.errors import SourceNotFound, SourceUnreadable
from frazil.sources.parquet_read import dictionary_strings, read_row_groups


@pytest.fixture
def path(tmp_path: Path) -> str:
    rows = 400_000
    table = pa.table(
        {
            "id": range(rows),
            "few": [f"word {at % 5}" for at in range(rows)],
            "many": [f"{at * 2654435761 % 2**32:08x} {at:08d}" for at in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=150_000)
    return str(tmp_path / "a.parquet")


def ids(path: str, row_groups: list[int] | None) -> list[int]:
    return [row for batch in read_row_groups(LocalFileSystem(), path, row_groups) for row in batch["id"].to_pylist()]


def test_the_rows_of_the_row_groups_asked_for_come_in_order(path: str) -> None:
    assert ids(path, None) == list(range(400_000))
    assert ids(path, [1]) == list(range(150_000, 300_000))


def test_only_strings_that_repeat_come_as_dictionaries(path: str) -> None:
    assert dictionary_strings(pq.read_metadata(path)) == ["few"]
    batch = next(read_row_groups(LocalFileSystem(), path))
    assert pa.types.is_dictionary(batch["few"].type)
    assert pa.types.is_string(batch["many"].type)
    assert batch["few"].to_pylist()[:6] == ["word 0", "word 1", "word 2", "word 3", "word 4", "word 0"]


def test_batches_are_smaller_than_a_row_group(path: str) -> None:
    assert max(batch.num_rows for batch in read_row_groups(LocalFileSystem(), path)) < 150_000


def test_columns_can_be_chosen(path: str) -> None:
    batch = next(read_row_groups(LocalFileSystem(), path, [0], ["many"]))
    assert batch.schema.names == ["many"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"no\.parquet"):
        list(read_row_groups(LocalFileSystem(), str(tmp_path / "no.parquet")))


def test_a_truncated_file_is_named(path: str) -> None:
    stored = Path(path).read_bytes()
    Path(path).write_bytes(stored[: len(stored) // 2])
    with pytest.raises(SourceUnreadable, match=r"a\.parquet"):
        list(read_row_groups(LocalFileSystem(), path))
