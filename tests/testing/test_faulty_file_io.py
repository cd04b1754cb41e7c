"""A file operation fails when the test says so, and what was done is on record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from frazil.testing import FaultyFileIO

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def io() -> FaultyFileIO:
    return FaultyFileIO(PyArrowFileIO())


def write(io: FaultyFileIO, path: Path) -> None:
    with io.new_output(str(path)).create() as stream:
        stream.write(b"some")
        stream.write(b"more")


def test_the_nth_write_to_a_matching_path_fails(io: FaultyFileIO, tmp_path: Path) -> None:
    io.fail("write", path="b$", nth=2)
    write(io, tmp_path / "a")
    with pytest.raises(OSError, match="injected"):
        write(io, tmp_path / "b")
    write(io, tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes() == b"somemore"


def test_a_file_that_cannot_be_made_is_not_there(io: FaultyFileIO, tmp_path: Path) -> None:
    io.fail("create", lambda: PermissionError("read-only"))
    with pytest.raises(PermissionError):
        write(io, tmp_path / "a")
    assert not (tmp_path / "a").exists()
    assert io.done("create") == ()


@pytest.mark.parametrize("operation", ["open", "read", "exists"])
def test_a_file_that_is_there_cannot_be_read(io: FaultyFileIO, tmp_path: Path, operation: str) -> None:
    (tmp_path / "a").write_bytes(b"some")
    io.fail(operation, path="a$")
    file = io.new_input(str(tmp_path / "a"))
    with pytest.raises(OSError, match="injected"):
        file.exists() and file.open().read()
    assert (file.exists(), file.open().read()) == (True, b"some")


def test_a_delete_that_fails_leaves_the_file_and_the_others_are_on_record(io: FaultyFileIO, tmp_path: Path) -> None:
    write(io, tmp_path / "a")
    write(io, tmp_path / "b")
    io.fail("delete")
    with pytest.raises(OSError, match="injected"):
        io.delete(str(tmp_path / "a"))
    io.delete(str(tmp_path / "b"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert io.done("delete") == (str(tmp_path / "b"),)


def test_a_close_that_fails_is_told(io: FaultyFileIO, tmp_path: Path) -> None:
    io.fail("close")
    with pytest.raises(OSError, match="injected"):
        write(io, tmp_path / "a")


def test_pyarrow_writes_and_reads_parquet_through_it(io: FaultyFileIO, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3]})
    location = str(tmp_path / "a.parquet")
    with io.new_output(location).create() as stream:
        pq.write_table(table, stream)
    with io.new_input(location).open() as stream:
        assert pq.read_table(stream).equals(table)
    assert io.done("create") == io.done("open") == (location,)
