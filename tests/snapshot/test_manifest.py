"""Manifests read back by PyIceberg's own reader, by fastavro and by ours."""

import json
import math
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from struct import pack
from uuid import UUID

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg import manifest as pyiceberg_manifest
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform, VoidTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from frazil.errors import BadInput, StorageFailed, WriteFailed
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.manifest import FieldSummary, ManifestContent, ManifestWriter, Status, read_manifest_entries

IO = PyArrowFileIO()
SNAPSHOT = 2**62 + 7
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))
UNPARTITIONED = PartitionSpec(spec_id=0)
BY_NAME = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"), spec_id=3)
ID = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")

FULL = DataFile(
    file_path="s3://bucket/ä/data.parquet",
    record_count=1_000_000,
    file_size_in_bytes=2**40,
    column_sizes={1: 10, 2: 2**35},
    value_counts={1: 1_000_000, 2: 1_000_000},
    null_value_counts={1: 0, 2: 17},
    nan_value_counts={1: 0},
    lower_bounds={1: b"\x01" * 8, 2: b"a" * 300},
    upper_bounds={1: b"\x02" * 8, 2: b""},
    key_metadata=b"\x00key",
    split_offsets=(4, 2**27, 2**33),
    sort_order_id=1,
)


def written(tmp_path, files, version=2, spec=UNPARTITIONED, schema=SCHEMA, **options):
    path = str(tmp_path / "m0.avro")
    writer = ManifestWriter(IO, path, schema=schema, spec=spec, format_version=version, snapshot_id=SNAPSHOT, **options)
    for file in files:
        writer.add(file)
    return writer.close()


def published(manifest, sequence_number=9):
    return replace(manifest, sequence_number=sequence_number, min_sequence_number=sequence_number)


def files_of(manifest):
    return [entry.data_file for entry in read_manifest_entries(IO, manifest)]


def pyiceberg_entries(manifest):
    row = pyiceberg_manifest.ManifestFile.from_args(
        manifest_path=manifest.manifest_path,
        partition_spec_id=manifest.partition_spec_id,
        added_snapshot_id=manifest.added_snapshot_id,
        sequence_number=manifest.sequence_number,
        content=pyiceberg_manifest.ManifestContent(manifest.content),
    )
    return row.fetch_manifest_entry(IO, discard_deleted=False)


def fastavro_records(manifest):
    with Path(manifest.manifest_path).open("rb") as stream:
        reader = fastavro.reader(stream)
        return reader.metadata, reader.writer_schema, list(reader)


STATISTICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_field_of_a_data_file_comes_back(tmp_path, version):
    assert files_of(written(tmp_path, [FULL], version)) == [FULL]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_the_same_data_file(tmp_path, version):
    (entry,) = pyiceberg_entries(published(written(tmp_path, [FULL], version)))
    file = entry.data_file
    assert (entry.status, entry.snapshot_id, entry.sequence_number) == (1, SNAPSHOT, 9)
    assert {name: dict(getattr(file, name)) for name in STATISTICS} == {
        name: getattr(FULL, name) for name in STATISTICS
    }
    for name in ("file_path", "record_count", "file_size_in_bytes", "key_metadata", "sort_order_id"):
        assert getattr(file, name) == getattr(FULL, name)
    assert tuple(file.split_offsets) == FULL.split_offsets


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fastavro_reads_the_same_data_file(tmp_path, version):
    _, _, (record,) = fastavro_records(written(tmp_path, [FULL], version))
    file = record["data_file"]
    maps = {name: {pair["key"]: pair["value"] for pair in file[name]} for name in STATISTICS}
    assert maps == {name: getattr(FULL, name) for name in STATISTICS}
    assert (file["file_path"], file["record_count"]) == (FULL.file_path, FULL.record_count)


counts = st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), max_size=5)
bounds = st.dictionaries(st.integers(0, 2**31 - 1), st.binary(max_size=40), max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            DataFile,
            st.text(min_size=1),
            st.integers(0, 2**62),
            st.integers(0, 2**62),
            column_sizes=counts,
            value_counts=counts,
            lower_bounds=bounds,
            upper_bounds=bounds,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_statistics_come_back(tmp_path, files):
    assert files_of(written(tmp_path, files)) == files


@pytest.mark.parametrize("version", [2, 3])
def test_added_files_leave_sequence_numbers_null_in_the_file(tmp_path, version):
    _, _, (record,) = fastavro_records(written(tmp_path, [FULL], version))
    assert (record["status"], record["snapshot_id"]) == (1, SNAPSHOT)
    assert record["sequence_number"] is None
    assert record["file_sequence_number"] is None


def test_v1_entries_hold_a_snapshot_id_and_the_default_block_size_and_no_content(tmp_path):
    _, _, (record,) = fastavro_records(written(tmp_path, [FULL], 1))
    assert record.keys() == {"status", "snapshot_id", "data_file"}
    assert record["data_file"]["block_size_in_bytes"] == 64 * 1024 * 1024
    assert "content" not in record["data_file"]


@pytest.mark.parametrize(
    ("version", "content"), [(1, None), (2, b"data"), (3, b"data"), (2, b"deletes"), (3, b"deletes")]
)
def test_header_says_exactly_what_the_format_asks_for(tmp_path, version, content):
    deletes = content == b"deletes"
    file = replace(
        FULL, content=FileContent.POSITION_DELETES if deletes else FileContent.DATA, partition=("x",), spec_id=3
    )
    kind = ManifestContent.DELETES if deletes else ManifestContent.DATA
    manifest = written(tmp_path, [file], version, BY_NAME, content=kind)
    with Path(manifest.manifest_path).open("rb") as stream:
        metadata = fastavro.reader(stream)._header["meta"]
    schema = Schema.model_validate_json(metadata["schema"])
    assert (schema, schema.schema_id) == (SCHEMA, SCHEMA.schema_id)
    field = {"source-id": 2, "field-id": 1000, "transform": "identity", "name": "name"}
    assert json.loads(metadata["partition-spec"]) == [field]
    rest = {key: value for key, value in metadata.items() if key not in ("schema", "partition-spec", "avro.schema")}
    expected = {"partition-spec-id": b"3", "format-version": str(version).encode(), "avro.codec": b"deflate"}
    assert rest == (expected if content is None else {**expected, "content": content})


def test_avro_schema_carries_the_ids_of_fields_elements_keys_and_values(tmp_path):
    _, schema, _ = fastavro_records(written(tmp_path, [FULL], 3))
    file = next(field for field in schema["fields"] if field["name"] == "data_file")["type"]
    fields = {field["name"]: field for field in file["fields"]}
    assert (schema["name"], file["name"]) == ("manifest_entry", "r2")
    assert {name: field["field-id"] for name, field in fields.items() if field["field-id"] > 139} == {
        "sort_order_id": 140,
        "first_row_id": 142,
        "referenced_data_file": 143,
        "content_offset": 144,
        "content_size_in_bytes": 145,
    }
    sizes = fields["column_sizes"]["type"][1]
    assert (sizes["type"], sizes["logicalType"], sizes["items"]["name"]) == ("array", "map", "k117_v118")
    assert [(f["name"], f["type"], f["field-id"]) for f in sizes["items"]["fields"]] == [
        ("key", "int", 117),
        ("value", "long", 118),
    ]
    assert fields["equality_ids"]["type"][1] == {"type": "array", "items": "int", "element-id": 136}


@pytest.mark.parametrize("version", [2, 3])
def test_existing_and_deleted_files_keep_their_numbers(tmp_path, version):
    path = str(tmp_path / "m0.avro")
    with ManifestWriter(
        IO, path, schema=SCHEMA, spec=UNPARTITIONED, format_version=version, snapshot_id=SNAPSHOT
    ) as writer:
        writer.existing(replace(FULL, file_path="e", record_count=2), 5, 4, 3)
        writer.delete(replace(FULL, file_path="d", record_count=3), 2, 1)
        writer.add(replace(FULL, file_path="a", record_count=4))
    manifest = writer.close()
    entries = [
        (entry.status, entry.snapshot_id, entry.sequence_number, entry.file_sequence_number, entry.data_file.file_path)
        for entry in read_manifest_entries(IO, published(manifest))
    ]
    assert entries == [
        (Status.EXISTING, 5, 4, 3, "e"),
        (Status.DELETED, SNAPSHOT, 2, 1, "d"),
        (Status.ADDED, SNAPSHOT, 9, 9, "a"),
    ]
    assert [e.sequence_number for e in pyiceberg_entries(published(manifest))] == [4, 2, 9]
    live = [entry.data_file.file_path for entry in read_manifest_entries(IO, manifest, live_only=True)]
    assert live == ["e", "a"]
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (1, 1, 1)
    assert (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count) == (4, 2, 3)
    assert (manifest.sequence_number, manifest.min_sequence_number) == (None, 4)


def test_description_holds_the_length_of_the_file(tmp_path):
    manifest = written(tmp_path, [FULL] * 3)
    assert manifest.manifest_length == Path(manifest.manifest_path).stat().st_size


def test_entries_of_v1_count_as_of_sequence_number_0(tmp_path):
    path = str(tmp_path / "m0.avro")
    writer = ManifestWriter(IO, path, schema=SCHEMA, spec=UNPARTITIONED, format_version=1, snapshot_id=SNAPSHOT)
    writer.existing(FULL, 5, None, None)
    (entry,) = read_manifest_entries(IO, published(writer.close(), 0))
    assert (entry.snapshot_id, entry.sequence_number, entry.file_sequence_number) == (5, 0, 0)


def test_existing_file_does_not_inherit_a_file_sequence_number(tmp_path):
    path = str(tmp_path / "m0.avro")
    writer = ManifestWriter(IO, path, schema=SCHEMA, spec=UNPARTITIONED, format_version=2, snapshot_id=SNAPSHOT)
    writer.existing(FULL, 5, 4, None)
    (entry,) = read_manifest_entries(IO, published(writer.close()))
    assert (entry.sequence_number, entry.file_sequence_number) == (4, None)


def test_row_ids_are_inherited_by_live_data_files_that_lack_them(tmp_path):
    path = str(tmp_path / "m0.avro")
    writer = ManifestWriter(IO, path, schema=SCHEMA, spec=UNPARTITIONED, format_version=3, snapshot_id=SNAPSHOT)
    writer.add(replace(FULL, record_count=10, first_row_id=77))
    writer.existing(replace(FULL, record_count=20, first_row_id=500), 1, 1, 1)
    writer.delete(replace(FULL, record_count=30), 1, 1)
    writer.existing(replace(FULL, record_count=40), 1, 1, 1)
    manifest = replace(published(writer.close()), first_row_id=1000)
    assert [file.first_row_id for file in files_of(manifest)] == [1000, 500, None, 1010]


def test_deletion_vector_comes_back_in_v3(tmp_path):
    vector = DataFile(
        "dv.puffin",
        3,
        100,
        content=FileContent.POSITION_DELETES,
        file_format="PUFFIN",
        referenced_data_file="a.parquet",
        content_offset=4,
        content_size_in_bytes=40,
    )
    assert files_of(written(tmp_path, [vector], 3, content=ManifestContent.DELETES)) == [vector]


@pytest.mark.parametrize("version", [2, 3])
def test_delete_files_come_back(tmp_path, version):
    files = [
        DataFile("p", 3, 100, content=FileContent.POSITION_DELETES, referenced_data_file="a.parquet"),
        DataFile("e", 3, 100, content=FileContent.EQUALITY_DELETES, equality_ids=(1, 2)),
    ]
    manifest = written(tmp_path, files, version, content=ManifestContent.DELETES)
    assert files_of(manifest) == files
    assert [int(entry.data_file.content) for entry in pyiceberg_entries(manifest)] == [1, 2]


MICROS = 1_700_000_000_123_456
PARTITIONS = [
    (BooleanType(), True, True),
    (IntegerType(), -5, -5),
    (LongType(), 2**62, 2**62),
    (FloatType(), 1.5, 1.5),
    (DoubleType(), -1.25, -1.25),
    (DateType(), date(2024, 1, 2), 19724),
    (DateType(), -3, -3),
    (TimeType(), time(0, 0, 1), 1_000_000),
    (TimestampType(), datetime(2023, 11, 14, 22, 13, 20, 123456), MICROS),
    (TimestamptzType(), datetime(2023, 11, 14, 22, 13, 20, 123456, UTC), MICROS),
    (TimestampNanoType(), MICROS * 1000 + 1, MICROS * 1000 + 1),
    (TimestamptzNanoType(), -1, -1),
    (StringType(), "ö", "ö"),
    (UUIDType(), ID, ID),
    (FixedType(3), b"abc", b"abc"),
    (BinaryType(), b"\x00\xff", b"\x00\xff"),
    (DecimalType(9, 2), Decimal("-12.34"), Decimal("-12.34")),
    (DecimalType(9, 2), Decimal("7"), Decimal("7.00")),
    (DecimalType(38, 0), Decimal(10**38 - 1), Decimal(10**38 - 1)),
]


def by_identity(*kinds):
    schema = Schema(*(NestedField(i, f"c{i}", kind) for i, kind in enumerate(kinds, 1)))
    fields = (PartitionField(i, 999 + i, IdentityTransform(), f"c{i}") for i in range(1, len(kinds) + 1))
    return schema, PartitionSpec(*fields, spec_id=1)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("kind", "value", "read"), PARTITIONS, ids=lambda each: str(each)[:20])
def test_partition_value_of_every_type_comes_back(tmp_path, version, kind, value, read):
    schema, spec = by_identity(kind)
    files = [DataFile(str(n), 1, 1, partition=(each,), spec_id=1) for n, each in enumerate([value, None])]
    manifest = written(tmp_path, files, version, spec, schema)
    assert [file.partition for file in files_of(manifest)] == [(read,), (None,)]
    fastavro_values = [record["data_file"]["partition"]["c1"] for record in fastavro_records(manifest)[2]]
    assert fastavro_values[1] is None
    if not isinstance(kind, TimestampNanoType | TimestamptzNanoType):  # which PyIceberg's reader does not know
        assert [entry.data_file.partition[0] for entry in pyiceberg_entries(manifest)] == [read, None]


@pytest.mark.parametrize(("kind", "value", "read"), PARTITIONS, ids=lambda each: str(each)[:20])
def test_partition_summary_of_every_type_is_the_one_pyiceberg_makes(tmp_path, kind, value, read):
    schema, spec = by_identity(kind)
    manifest = written(tmp_path, [DataFile("a", 1, 1, partition=(value,), spec_id=1)], 2, spec, schema)
    bound = to_bytes(kind, read)
    assert manifest.partitions == (FieldSummary(False, False, bound, bound),)


def test_summary_covers_all_values_with_nulls_and_nans(tmp_path):
    schema, spec = by_identity(DoubleType(), StringType())
    values = [(2.0, "b"), (math.nan, None), (-1.0, "c"), (None, "a")]
    files = [DataFile("a", 1, 1, partition=each, spec_id=1) for each in values]
    first, second = written(tmp_path, files, 2, spec, schema).partitions
    assert first == FieldSummary(True, True, pack("<d", -1.0), pack("<d", 2.0))
    assert second == FieldSummary(True, False, b"a", b"c")


def test_zero_and_negative_zero_stay_apart(tmp_path):
    schema, spec = by_identity(DoubleType())
    files = [DataFile("a", 1, 1, partition=(each,), spec_id=1) for each in (0.0, -0.0)]
    signs = [math.copysign(1, file.partition[0]) for file in files_of(written(tmp_path, files, 2, spec, schema))]
    assert signs == [1, -1]


def test_two_fields_of_one_fixed_type_make_a_valid_schema(tmp_path):
    kinds = (UUIDType(), UUIDType(), FixedType(2), FixedType(2), DecimalType(5, 1), DecimalType(5, 1))
    schema, spec = by_identity(*kinds)
    values = (ID, UUID(int=1), b"ab", b"cd", Decimal("1.5"), Decimal("2.5"))
    manifest = written(tmp_path, [DataFile("a", 1, 1, partition=values, spec_id=1)], 2, spec, schema)
    assert files_of(manifest)[0].partition == values
    assert fastavro_records(manifest)[2][0]["data_file"]["partition"]["c4"] == b"cd"


def test_every_transform_and_odd_names_are_written(tmp_path):
    schema = Schema(NestedField(1, "ts", TimestampType(), required=True), NestedField(2, "größe 1", StringType()))
    spec = PartitionSpec(
        PartitionField(1, 1000, DayTransform(), "ts_day"),
        PartitionField(2, 1001, BucketTransform(16), "1 bücket"),
        PartitionField(2, 1002, TruncateTransform(3), "größe-1.t"),
        PartitionField(1, 1003, VoidTransform(), "gone"),
        PartitionField(99, 1004, VoidTransform(), "dropped"),
        spec_id=1,
    )
    file = DataFile("a", 1, 1, partition=(date(2024, 1, 2), 5, "abc", None, None), spec_id=1)
    manifest = written(tmp_path, [file], 2, spec, schema)
    _, avro_schema, (record,) = fastavro_records(manifest)
    assert files_of(manifest)[0].partition == (19724, 5, "abc", None, None)
    assert all(name.isascii() and name.replace("_", "a").isalnum() for name in record["data_file"]["partition"])
    assert "iceberg-field-name" in json.dumps(avro_schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (IntegerType(), 2**31),
        (IntegerType(), "5"),
        (LongType(), 1.5),
        (StringType(), b"x"),
        (FixedType(3), b"ab"),
        (UUIDType(), b"short"),
        (DateType(), datetime(2024, 1, 1)),
        (DecimalType(5, 1), Decimal("1.25")),
        (DecimalType(3, 1), Decimal("100.0")),
        (DecimalType(3, 1), Decimal("NaN")),
        (BooleanType(), 2),
    ],
    ids=str,
)
def test_value_of_another_type_is_refused_by_name_and_the_writer_goes_on(tmp_path, kind, value):
    schema, spec = by_identity(kind)
    writer = ManifestWriter(IO, str(tmp_path / "m"), schema=schema, spec=spec, format_version=2, snapshot_id=SNAPSHOT)
    with pytest.raises(BadInput, match=r"bad\.parquet.*'c1'"):
        writer.add(DataFile("bad.parquet", 1, 1, partition=(value,), spec_id=1))
    writer.add(DataFile("good.parquet", 1, 1, partition=(None,), spec_id=1))
    manifest = writer.close()
    assert [file.file_path for file in files_of(manifest)] == ["good.parquet"]
    assert manifest.partitions == (FieldSummary(True, False, None, None),)


@pytest.mark.parametrize(
    ("file", "options", "says"),
    [
        (replace(FULL, partition=("x", "y"), spec_id=3), {"spec": BY_NAME}, "2 partition values for 1 partition field"),
        (FULL, {"spec": BY_NAME}, "spec 0"),
        (FULL, {"content": ManifestContent.DELETES}, "DATA"),
        (replace(FULL, content=FileContent.POSITION_DELETES), {}, "POSITION_DELETES"),
        (replace(FULL, lower_bounds={1: "text"}), {}, "data.parquet"),
        (replace(FULL, column_sizes={1: 2**63}), {}, "64 bits"),
    ],
)
def test_file_that_cannot_be_listed_is_refused(tmp_path, file, options, says):
    with pytest.raises(BadInput, match=says):
        written(tmp_path, [file], **options)
    assert not list(tmp_path.iterdir())


def test_deletion_vector_is_refused_before_v3(tmp_path):
    vector = DataFile("dv", 3, 100, content=FileContent.POSITION_DELETES, content_offset=4)
    with pytest.raises(BadInput, match="version 3"):
        written(tmp_path, [vector], 2, content=ManifestContent.DELETES)


def test_delete_manifest_of_a_v1_table_is_refused(tmp_path):
    with pytest.raises(BadInput, match="v1 table has no delete files"):
        written(tmp_path, [], 1, content=ManifestContent.DELETES)


def test_existing_file_without_a_sequence_number_is_refused(tmp_path):
    writer = ManifestWriter(
        IO, str(tmp_path / "m"), schema=SCHEMA, spec=UNPARTITIONED, format_version=2, snapshot_id=SNAPSHOT
    )
    with pytest.raises(BadInput, match="sequence number"):
        writer.existing(FULL, 1, None, None)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_closing_an_empty_writer_says_so_and_leaves_no_file(tmp_path, version):
    with pytest.raises(WriteFailed, match=r"m0\.avro is empty"):
        written(tmp_path, [], version)
    assert not list(tmp_path.iterdir())


def test_an_exception_leaves_no_file(tmp_path):
    path = tmp_path / "m0.avro"
    writer = ManifestWriter(
        IO, str(path), schema=SCHEMA, spec=UNPARTITIONED, format_version=2, snapshot_id=SNAPSHOT, codec="null"
    )
    with pytest.raises(KeyError), writer:
        for _ in range(500):
            writer.add(FULL)
        assert path.exists()
        raise KeyError
    assert not path.exists()


def test_closed_writer_takes_no_more_and_closes_to_the_same_value(tmp_path):
    writer = ManifestWriter(
        IO, str(tmp_path / "m"), schema=SCHEMA, spec=UNPARTITIONED, format_version=2, snapshot_id=SNAPSHOT
    )
    writer.add(FULL)
    assert writer.close() is writer.close()
    with pytest.raises(WriteFailed, match="closed"):
        writer.add(FULL)


def test_unwritable_place_is_a_storage_failure(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed, match=r"m0\.avro"):
        written(tmp_path / "file", [FULL])


def test_missing_manifest_is_a_storage_failure(tmp_path):
    manifest = written(tmp_path, [FULL])
    Path(manifest.manifest_path).unlink()
    with pytest.raises(StorageFailed, match=r"m0\.avro"):
        files_of(manifest)


def test_manifest_cut_short_anywhere_is_a_storage_failure(tmp_path):
    manifest = written(tmp_path, [replace(FULL, file_path=str(n)) for n in range(3_000)], codec="null")
    content = Path(manifest.manifest_path).read_bytes()
    sync = content[-16:]
    block_end = content.index(sync, content.index(sync) + 16) + 16
    for length in (0, 3, 100, block_end, block_end + 1, block_end + 500, len(content) - 16, len(content) - 1):
        Path(manifest.manifest_path).write_bytes(content[:length])
        with pytest.raises(StorageFailed, match=r"m0\.avro"):
            files_of(manifest)


@pytest.mark.parametrize("codec", ["deflate", "null"])
def test_manifest_of_many_blocks_is_read_by_pyiceberg_and_fastavro(tmp_path, codec):
    files = [replace(FULL, file_path=str(number)) for number in range(1_500)]
    manifest = written(tmp_path, files, codec=codec)
    paths = [file.file_path for file in files]
    assert [entry.data_file.file_path for entry in pyiceberg_entries(manifest)] == paths
    assert [record["data_file"]["file_path"] for record in fastavro_records(manifest)[2]] == paths


def test_manifest_written_by_pyiceberg_is_read(tmp_path):
    output = IO.new_output(str(tmp_path / "p.avro"))
    names = (*STATISTICS, "file_path", "record_count", "file_size_in_bytes", "key_metadata", "sort_order_id")
    data_file = pyiceberg_manifest.DataFile.from_args(
        content=pyiceberg_manifest.DataFileContent.DATA,
        file_format="PARQUET",
        partition=pyiceberg_manifest.Record(),
        split_offsets=list(FULL.split_offsets),
        **{name: getattr(FULL, name) for name in names},
    )
    entry = pyiceberg_manifest.ManifestEntry.from_args(status=1, snapshot_id=SNAPSHOT, data_file=data_file)
    with pyiceberg_manifest.write_manifest(2, UNPARTITIONED, SCHEMA, output, SNAPSHOT, "deflate") as writer:
        writer.add(entry)
    manifest = replace(written(tmp_path, [FULL]), manifest_path=output.location)
    assert files_of(manifest) == [FULL]
