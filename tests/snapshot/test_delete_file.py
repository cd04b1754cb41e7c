import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.types import LongType

from frazil.errors import BadInput, StorageFailed
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.delete_file import FILE_PATH_ID, POSITION_ID, equality_delete, write_position_deletes


def test_position_deletes_are_sorted_once_each_and_carry_the_reserved_field_ids(tmp_path):
    path = str(tmp_path / "deletes.parquet")
    write_position_deletes(PyArrowFileIO(), path, {"b": [3, 1, 3], "a": [7]})
    table = pq.read_table(path)
    assert table.to_pylist() == [
        {"file_path": "a", "pos": 7},
        {"file_path": "b", "pos": 1},
        {"file_path": "b", "pos": 3},
    ]
    ids = {field.name: field.metadata[b"PARQUET:field_id"] for field in table.schema}
    assert ids == {"file_path": b"2147483546", "pos": b"2147483545"}


def test_position_deletes_are_described_as_they_are(tmp_path):
    path = tmp_path / "deletes.parquet"
    file = write_position_deletes(PyArrowFileIO(), str(path), {"b": [3, 1], "a": [7]}, partition=(4,), spec_id=2)
    assert (file.content, file.record_count, file.partition, file.spec_id) == (FileContent.POSITION_DELETES, 3, (4,), 2)
    assert file.file_size_in_bytes == path.stat().st_size
    assert (file.lower_bounds[FILE_PATH_ID], file.upper_bounds[FILE_PATH_ID]) == (b"a", b"b")
    bounds = [from_bytes(LongType(), each[POSITION_ID]) for each in (file.lower_bounds, file.upper_bounds)]
    assert bounds == [1, 7]
    assert sum(file.column_sizes.values()) < file.file_size_in_bytes


@pytest.mark.parametrize(("positions", "referenced"), [({"a": [1]}, "a"), ({"a": [1], "b": [1]}, None)])
def test_data_file_is_referenced_where_there_is_only_one(tmp_path, positions, referenced):
    file = write_position_deletes(PyArrowFileIO(), str(tmp_path / "d.parquet"), positions)
    assert file.referenced_data_file == referenced


@pytest.mark.parametrize("positions", [{}, {"a": []}, {"a": [-1]}])
def test_nothing_to_delete_is_refused_and_leaves_no_file(tmp_path, positions):
    with pytest.raises(BadInput, match=r"d\.parquet"):
        write_position_deletes(PyArrowFileIO(), str(tmp_path / "d.parquet"), positions)
    assert not list(tmp_path.iterdir())


def test_unwritable_place_is_a_storage_failure(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed, match=r"d\.parquet"):
        write_position_deletes(PyArrowFileIO(), str(tmp_path / "file" / "d.parquet"), {"a": [1]})


def test_equality_delete_keeps_the_file_and_names_its_columns():
    written = DataFile("x.parquet", 1, 10, partition=(1,), column_sizes={3: 5})
    deletes = equality_delete(written, [3])
    assert (deletes.content, deletes.equality_ids) == (FileContent.EQUALITY_DELETES, (3,))
    assert (deletes.file_path, deletes.partition, deletes.column_sizes) == ("x.parquet", (1,), {3: 5})


def test_equality_delete_without_columns_is_refused():
    with pytest.raises(BadInput, match="column"):
        equality_delete(DataFile("x.parquet", 1, 10), [])
