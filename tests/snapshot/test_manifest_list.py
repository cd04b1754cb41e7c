"""Manifest lists read back by PyIceberg, by fastavro and by ours."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import manifest as pyiceberg_manifest
from pyiceberg.io.pyarrow import PyArrowFileIO

from frazil.errors import BadInput, StorageFailed
from frazil.snapshot.manifest_file import FieldSummary, ManifestContent, ManifestFile
from frazil.snapshot.manifest_list import read_manifest_list, write_manifest_list

IO = PyArrowFileIO()
SNAPSHOT = 2**62 + 1


def manifest(name, **changes):
    return replace(
        ManifestFile(
            manifest_path=name,
            manifest_length=1234,
            partition_spec_id=2,
            content=ManifestContent.DATA,
            added_snapshot_id=SNAPSHOT,
            added_files_count=1,
            existing_files_count=2,
            deleted_files_count=3,
            added_rows_count=10,
            existing_rows_count=20,
            deleted_rows_count=30,
            partitions=(FieldSummary(True, False, b"a", b"z"), FieldSummary(False, None, None, None)),
            key_metadata=b"key",
        ),
        **changes,
    )


def write(tmp_path, version, manifests, **changes):
    arguments = {
        "snapshot_id": SNAPSHOT,
        "parent_snapshot_id": 5,
        "sequence_number": 8,
        "first_row_id": 100 if version == 3 else None,
        **changes,
    }
    return write_manifest_list(
        IO, str(tmp_path / "snap.avro"), format_version=version, manifests=manifests, **arguments
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_field_comes_back(tmp_path, version):
    one = manifest("one")
    assigned = {
        1: replace(one, sequence_number=0, min_sequence_number=0),
        2: replace(one, sequence_number=8, min_sequence_number=8),
        3: replace(one, sequence_number=8, min_sequence_number=8, first_row_id=100),
    }
    written = write(tmp_path, version, [one])
    assert read_manifest_list(IO, written.path) == [assigned[version]]
    assert written.length == Path(written.path).stat().st_size


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_the_same_list(tmp_path, version):
    written = write(tmp_path, version, [manifest("one"), manifest("two")])
    rows = list(pyiceberg_manifest.read_manifest_list(IO.new_input(written.path)))
    assert [row.manifest_path for row in rows] == ["one", "two"]
    names = ("manifest_length", "partition_spec_id", "added_snapshot_id", "existing_rows_count", "key_metadata")
    assert all(getattr(rows[0], name) == getattr(manifest("one"), name) for name in names)
    assert rows[0].sequence_number == (0 if version == 1 else 8)
    assert [summary.upper_bound for summary in rows[0].partitions] == [b"z", None]


@pytest.mark.parametrize("parent", [None, 5])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_header_says_exactly_what_the_format_asks_for(tmp_path, version, parent):
    written = write(tmp_path, version, [manifest("one")], parent_snapshot_id=parent)
    with Path(written.path).open("rb") as stream:
        metadata = dict(fastavro.reader(stream)._header["meta"])
    assert json.loads(metadata.pop("avro.schema"))["name"] == "manifest_file"
    expected = {
        "snapshot-id": str(SNAPSHOT).encode(),
        "parent-snapshot-id": b"null" if parent is None else b"5",
        "format-version": str(version).encode(),
        "avro.codec": b"deflate",
    }
    added = {1: {}, 2: {"sequence-number": b"8"}, 3: {"sequence-number": b"8", "first-row-id": b"100"}}
    assert metadata == expected | added[version]


def test_fields_of_v1_are_those_of_v1(tmp_path):
    written = write(tmp_path, 1, [manifest("one")])
    with Path(written.path).open("rb") as stream:
        (record,) = fastavro.reader(stream)
    assert record.keys().isdisjoint({"content", "sequence_number", "min_sequence_number", "first_row_id"})


@pytest.mark.parametrize("version", [2, 3])
def test_assigned_numbers_are_kept_and_missing_ones_given(tmp_path, version):
    manifests = [
        manifest("old", added_snapshot_id=3, sequence_number=2, min_sequence_number=1),
        manifest("new"),
        manifest("mixed", min_sequence_number=4),
    ]
    read = read_manifest_list(IO, write(tmp_path, version, manifests).path)
    assert [(each.sequence_number, each.min_sequence_number) for each in read] == [(2, 1), (8, 8), (8, 4)]


@pytest.mark.parametrize("version", [2, 3])
def test_number_is_not_given_to_the_manifest_of_another_snapshot(tmp_path, version):
    with pytest.raises(BadInput, match=r"one.*written by snapshot 3"):
        write(tmp_path, version, [manifest("one", added_snapshot_id=3)])
    assert not list(tmp_path.iterdir())


def test_row_ids_advance_by_existing_and_added_rows_of_data_manifests_that_lack_them(tmp_path):
    manifests = [
        manifest("a"),
        manifest("deletes", content=ManifestContent.DELETES),
        manifest("has", first_row_id=7),
        manifest("b", existing_rows_count=0, added_rows_count=5),
        manifest("c"),
    ]
    written = write(tmp_path, 3, manifests)
    expected = [100, None, 7, 130, 135]
    assert [each.first_row_id for each in written.manifests] == expected
    assert [each.first_row_id for each in read_manifest_list(IO, written.path)] == expected
    assert (written.next_row_id, written.added_rows) == (165, 65)


@pytest.mark.parametrize("version", [1, 2])
def test_before_v3_no_row_ids_are_counted(tmp_path, version):
    written = write(tmp_path, version, [manifest("a")])
    assert (written.next_row_id, written.added_rows) == (None, None)


@pytest.mark.parametrize(("version", "first_row_id"), [(3, None), (2, 5)])
def test_first_row_id_is_required_in_v3_and_only_there(tmp_path, version, first_row_id):
    with pytest.raises(BadInput, match="first row id"):
        write(tmp_path, version, [manifest("a")], first_row_id=first_row_id)


def test_delete_manifest_is_refused_in_v1(tmp_path):
    with pytest.raises(BadInput, match="v1 table"):
        write(tmp_path, 1, [manifest("one", content=ManifestContent.DELETES)])


NO_COUNTS = dict.fromkeys(
    (
        "added_files_count",
        "existing_files_count",
        "deleted_files_count",
        "added_rows_count",
        "existing_rows_count",
        "deleted_rows_count",
    )
)


def test_counts_that_v1_left_out_are_none(tmp_path):
    written = write(tmp_path, 1, [manifest("one", **NO_COUNTS, partitions=(), key_metadata=None)])
    (read,) = read_manifest_list(IO, written.path)
    assert {name: getattr(read, name) for name in NO_COUNTS} == NO_COUNTS


def test_counts_missing_from_the_very_schema_are_none(tmp_path):
    fields = [
        ("manifest_path", "string", 500),
        ("manifest_length", "long", 501),
        ("partition_spec_id", "int", 502),
        ("added_snapshot_id", "long", 503),
    ]
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [{"name": n, "type": t, "field-id": i} for n, t, i in fields],
    }
    path = tmp_path / "old.avro"
    row = {"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "added_snapshot_id": 9}
    with path.open("wb") as stream:
        fastavro.writer(stream, schema, [row])
    expected = ManifestFile("m", 1, 0, ManifestContent.DATA, 9, sequence_number=0, min_sequence_number=0)
    assert read_manifest_list(IO, str(path)) == [expected]


def test_manifest_without_counts_is_refused_after_v1(tmp_path):
    with pytest.raises(BadInput, match="rewrite"):
        write(tmp_path, 2, [manifest("one", **NO_COUNTS)])


def test_empty_list_is_written(tmp_path):
    assert read_manifest_list(IO, write(tmp_path, 2, []).path) == []


def test_list_cut_short_is_a_storage_failure(tmp_path):
    path = Path(write(tmp_path, 2, [manifest(str(n)) for n in range(50)]).path)
    content = path.read_bytes()
    for length in (0, 50):
        path.write_bytes(content[:length])
        with pytest.raises(StorageFailed, match=r"snap\.avro"):
            read_manifest_list(IO, str(path))


@pytest.mark.parametrize("codec", ["deflate", "null"])
def test_nothing_is_decoded_of_a_list_that_ends_within_a_block(tmp_path, codec):
    path = Path(write(tmp_path, 2, [manifest(str(n)) for n in range(50)], codec=codec).path)
    content = path.read_bytes()
    for missing in (1, 17, 200):
        path.write_bytes(content[:-missing])
        with pytest.raises(StorageFailed, match=r"snap\.avro.*whole block"):
            read_manifest_list(IO, str(path))


def test_unwritable_place_is_a_storage_failure(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed, match=r"snap\.avro"):
        write(tmp_path / "file", 2, [])


optional_long = st.none() | st.integers(0, 2**63 - 1)
summaries = st.builds(
    FieldSummary, st.booleans(), st.none() | st.booleans(), st.none() | st.binary(), st.none() | st.binary()
)
manifests = st.builds(
    ManifestFile,
    st.text(),
    st.integers(0),
    st.integers(0),
    st.sampled_from(ManifestContent),
    st.integers(),
    *[optional_long] * 8,
    st.lists(summaries).map(tuple),
    st.none() | st.binary(),
    optional_long,
)


@given(manifests)
def test_json_round_trip_is_exact(value):
    assert ManifestFile.from_json(json.loads(json.dumps(value.to_json()))) == value


@given(manifests)
def test_pickle_round_trip_is_exact(value):
    assert pickle.loads(pickle.dumps(value)) == value


def test_json_with_unknown_or_missing_fields_is_refused_by_name():
    entry = manifest("one").to_json()
    with pytest.raises(BadInput, match="colour"):
        ManifestFile.from_json({**entry, "colour": 1})
    with pytest.raises(BadInput, match="manifest_length"):
        ManifestFile.from_json({name: value for name, value in entry.items() if name != "manifest_length"})
