"""What a user names becomes a list of files, each once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from frazil.errors import SourceNotFound, SourceUnreadable
from frazil.sources.files import find_files

if TYPE_CHECKING:
    from services.seaweedfs import SeaweedFS

SUFFIXES = (".parquet",)
FILES = [
    "a.parquet",
    "b[1].parquet",
    "data/x.parquet",
    "data/x.crc",
    "data/_SUCCESS",
    "data/.x.parquet",
    "data/day=1/y.PARQUET",
    "data/_tmp/z.parquet",
    "data/_day=1/w.parquet",
    "raw/part-0",
    "raw/_metadata",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files below a folder that is itself hidden, which must not count."""
    root = tmp_path / "_root"
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


CASES = [
    (["a.parquet"], ["a.parquet"]),
    (["raw/part-0"], ["raw/part-0"]),
    (["b[1].parquet"], ["b[1].parquet"]),
    (["data/_SUCCESS"], ["data/_SUCCESS"]),
    (["data"], ["data/_day=1/w.parquet", "data/day=1/y.PARQUET", "data/x.parquet"]),
    (["data/"], ["data/_day=1/w.parquet", "data/day=1/y.PARQUET", "data/x.parquet"]),
    (["*.parquet"], ["a.parquet", "b[1].parquet"]),
    (["?.parquet"], ["a.parquet"]),
    (["raw/*"], ["raw/part-0"]),
    (["raw/_*"], ["raw/_metadata"]),
    (["d*a"], ["data/_day=1/w.parquet", "data/day=1/y.PARQUET", "data/x.parquet"]),
    (["data/day=[0-9]"], ["data/day=1/y.PARQUET"]),
    (["data/**/*.parquet"], ["data/_day=1/w.parquet", "data/x.parquet"]),
    (["data/x.parquet", "a.parquet", "data/x.*"], ["data/x.parquet", "a.parquet", "data/x.crc"]),
]


@pytest.mark.parametrize(("patterns", "expected"), CASES)
def test_local_patterns(folder: Path, patterns: list[str], expected: list[str]) -> None:
    found = find_files([f"{folder}/{pattern}" for pattern in patterns], {}, SUFFIXES)
    assert [os.path.relpath(file.path, folder) for file in found] == expected


def test_patterns_on_an_object_store_mean_the_same(folder: Path, seaweedfs: SeaweedFS) -> None:
    base = f"{seaweedfs.bucket}/{folder.parent.name}/_root"
    system = seaweedfs.filesystem()
    for name in [*FILES, "what?.parquet"]:
        with system.open_output_stream(f"{base}/{name}") as stream:
            stream.write(name.encode())
    storage = seaweedfs.file_io_properties()
    for patterns, expected in [*CASES, (["what?.parquet"], ["what?.parquet"])]:
        if patterns == ["*.parquet"]:
            expected = [*expected, "what?.parquet"]
        found = find_files([f"s3://{base}/{pattern}" for pattern in patterns], storage, SUFFIXES)
        assert [file.path.removeprefix(f"s3://{base}/") for file in found] == expected, patterns


def test_a_relative_path_and_a_file_address_are_the_same_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = find_files(["data/../a.parquet", "a.parquet", f"file://{folder}/a.parquet"], {}, SUFFIXES)
    assert [file.path for file in found] == [f"{folder}/a.parquet"]
    assert (found[0].size, found[0].modified_ms) == (9, os.stat("a.parquet").st_mtime_ns // 1_000_000)  # noqa: PTH116


@pytest.mark.parametrize("pattern", ["none.parquet", "data/*.csv", "nowhere/**/*.parquet", "raw", "data/day=2"])
def test_a_pattern_that_names_nothing_is_an_error(folder: Path, pattern: str) -> None:
    with pytest.raises(SourceNotFound, match="source "):
        find_files([f"{folder}/a.parquet", f"{folder}/{pattern}"], {}, SUFFIXES)


def test_an_unknown_kind_of_storage_is_an_error() -> None:
    with pytest.raises(SourceNotFound, match="gopher"):
        find_files(["gopher://host/a.parquet"], {}, SUFFIXES)


def test_a_store_that_cannot_be_reached_is_an_error() -> None:
    storage = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    with pytest.raises(SourceUnreadable, match="cannot be listed"):
        find_files(["s3://bucket/a.parquet"], {**storage, "s3.connect-timeout": "1", "s3.region": "x"}, SUFFIXES)
