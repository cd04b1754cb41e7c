"""A source's kind is told by its suffix or first bytes, or by the user; kinds do not mix."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import BadInput
from frazil.sources.open import open_source, shard_from_document
from frazil.sources.source import located_batches


def parquet(path: Path) -> str:
    pq.write_table(pa.table({"id": [1, 2, 3]}), path, row_group_size=2)
    return str(path)


def test_a_file_without_a_suffix_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    assert open_source([parquet(tmp_path / "part-0")], {}).rows == 3


def test_a_file_that_does_not_show_its_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello")
    with pytest.raises(BadInput, match=r"notes does not show its format; say it with --format"):
        open_source([str(tmp_path / "notes")], {})


def test_an_option_that_a_kind_does_not_have_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a parquet source has no option delimiter"):
        open_source([parquet(tmp_path / "a.parquet")], {}, options={"delimiter": ";"})


def test_a_format_that_is_not_known_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--format xml is not known; use one of .*parquet"):
        open_source([parquet(tmp_path / "a.parquet")], {}, format="xml")


def test_a_shard_comes_back_from_its_document_as_its_kind(tmp_path: Path) -> None:
    (shard,) = open_source([parquet(tmp_path / "a.parquet")], {}).shards(1)
    assert shard_from_document(shard.name, json.loads(json.dumps(shard.to_document()))) == shard


def test_rows_are_located_by_file_and_number(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet")
    (shard,) = open_source([path], {}).shards(1)
    places = [each.position(row) for each in located_batches(shard, {}) for row in range(each.batch.num_rows)]
    assert places[-1] == f"{path}, from row group 0, row 3"
