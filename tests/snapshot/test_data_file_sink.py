"""Batches in, data files out: rows, partitions, rolling, memory, and nothing left after abort."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform
from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, NestedField, StringType

from frazil.errors import SchemaMismatch, StorageFailed
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.data_file_sink import DataFileSink, MemoryLimits
from frazil.spark.session import WORKER_MEMORY

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "day", DateType(), required=False),
    NestedField(3, "name", StringType(), required=False),
)
BY_MONTH = PartitionSpec(PartitionField(2, 1000, MonthTransform(), "day_month"))
BY_ID = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))

MakeSink = Callable[..., DataFileSink]


@pytest.fixture
def make(tmp_path: Path) -> MakeSink:
    numbers = count()

    def sink(spec: PartitionSpec = PartitionSpec(), schema: Schema = SCHEMA, **given: Any) -> DataFileSink:  # noqa: B008
        arguments: dict[str, Any] = {
            "schema": schema,
            "spec": spec,
            "location": str(tmp_path / "table"),
            "properties": {},
            "io": PyArrowFileIO(),
            "file_name": lambda: f"{next(numbers):05d}.parquet",
        }
        return DataFileSink(**{**arguments, **given})

    return sink


def batch(start: int, rows: int, months: int = 3) -> pa.RecordBatch:
    ids = range(start, start + rows)
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([dt.date(2024, 1 + at % months, 1 + at % 28) for at in ids], pa.date32()),
            "name": pa.array([f"name {at % 7}" for at in ids]),
        }
    )


def stored_ids(files: list[DataFile]) -> list[int]:
    return sorted(row for file in files for row in pq.read_table(file.file_path, partitioning=None)["id"].to_pylist())


def test_rows_of_batches_tables_and_readers_are_all_written(make: MakeSink) -> None:
    sink = make()
    written = sink.write(batch(0, 10))
    written += sink.write(pa.Table.from_batches([batch(10, 10), batch(20, 10)]))
    written += sink.write(pa.RecordBatchReader.from_batches(batch(0, 1).schema, iter([batch(30, 10)])))
    files = sink.close()
    assert written == sum(file.record_count for file in files) == 40
    assert stored_ids(files) == list(range(40))


def test_what_is_not_arrow_is_refused(make: MakeSink) -> None:
    with pytest.raises(SchemaMismatch, match="list is not an Arrow batch"):
        make().write([1, 2])


def test_no_rows_make_no_file(make: MakeSink, tmp_path: Path) -> None:
    sink = make()
    assert sink.write(batch(0, 0)) == 0
    assert sink.close() == []
    assert not list(tmp_path.rglob("*.parquet"))


def test_every_partition_has_its_file_in_its_folder_with_its_rows_alone(make: MakeSink) -> None:
    sink = make(BY_MONTH)
    sink.write(batch(0, 300))
    files = sink.close()
    assert sorted(file.partition for file in files) == [(648,), (649,), (650,)]
    for file in files:
        (month,) = file.partition
        assert f"/day_month=2024-{month - 647:02d}/" in file.file_path
        days = pq.read_table(file.file_path, partitioning=None)["day"].to_pylist()
        assert {(day.year - 1970) * 12 + day.month - 1 for day in days} == {month}
        assert from_bytes(DateType(), file.lower_bounds[2]) == (min(days) - dt.date(1970, 1, 1)).days
        assert from_bytes(DateType(), file.upper_bounds[2]) == (max(days) - dt.date(1970, 1, 1)).days
    assert stored_ids(files) == list(range(300))


def test_two_transforms_of_one_column_make_one_path(make: MakeSink) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, MonthTransform(), "day_month"), PartitionField(2, 1001, DayTransform(), "day_day")
    )
    sink = make(spec)
    sink.write(batch(0, 1))
    (file,) = sink.close()
    assert "/day_month=2024-01/day_day=2024-01-01/" in file.file_path


def test_files_roll_near_the_target_size(make: MakeSink) -> None:
    target = 200_000
    sink = make(properties={"write.target-file-size-bytes": str(target)})
    noise = np.random.default_rng(5)
    for start in range(0, 400_000, 50_000):
        ids = noise.permutation(np.arange(start, start + 50_000))
        sink.write(
            pa.record_batch({"id": ids, "day": pa.nulls(50_000, pa.date32()), "name": pa.nulls(50_000, pa.string())})
        )
    files = sink.close()
    assert len(files) > 2
    assert all(target / 2 < file.file_size_in_bytes < target * 2 for file in files[:-1])
    assert stored_ids(files) == list(range(400_000))


def test_row_groups_keep_to_the_limit_of_rows(make: MakeSink) -> None:
    sink = make(properties={"write.parquet.row-group-limit": "1000"})
    sink.write(batch(0, 2500))
    (file,) = sink.close()
    footer = pq.read_metadata(file.file_path)
    assert [footer.row_group(at).num_rows for at in range(footer.num_row_groups)] == [1000, 1000, 500]
    assert len(file.split_offsets) == 3


def test_more_partitions_than_open_files_give_more_files_and_the_same_rows(make: MakeSink) -> None:
    sink = make(BY_ID, limits=MemoryLimits(buffered_bytes=100_000, open_files=4))
    for _ in range(30):
        sink.write(pa.Table.from_batches([batch(0, 50)] * 200))
    files = sink.close()
    assert {file.partition for file in files} == {(number,) for number in range(50)}
    assert len(files) > 50
    assert stored_ids(files) == sorted(list(range(50)) * 6000)


def test_a_small_partition_beside_large_ones_waits_for_a_row_group_of_its_own(make: MakeSink) -> None:
    sink = make(BY_MONTH, limits=MemoryLimits(buffered_bytes=3_000_000, open_files=8))
    for start in range(0, 2_000_000, 100_000):
        sink.write(batch(start, 100_000, months=2))
        sink.write(pa.record_batch({"id": [start], "day": [dt.date(2030, 1, 1)], "name": ["rare"]}))
    files = {file.partition: file for file in sink.close()}
    assert files[(720,)].record_count == 20
    assert len(files[(720,)].split_offsets) == 1
    assert len(files[(648,)].split_offsets) > 1


def test_dictionaries_of_different_batches_become_one_column(make: MakeSink) -> None:
    sink = make(BY_MONTH)
    words = [["a", "b", None], ["c", "b", "d"], ["e", None, "a"]]
    for at, names in enumerate(words):
        rows = batch(3 * at, 3, months=1)
        sink.write(rows.set_column(2, "name", pa.array(names).dictionary_encode()))
    (file,) = sink.close()
    read = pq.read_table(file.file_path, partitioning=None)
    assert dict(zip(read["id"].to_pylist(), read["name"].to_pylist(), strict=True)) == dict(
        enumerate([name for names in words for name in names])
    )
    assert (file.lower_bounds[3], file.upper_bounds[3], file.null_value_counts[3]) == (b"a", b"e", 2)


def test_bounds_of_a_slice_of_a_dictionary_are_of_its_own_values(make: MakeSink) -> None:
    sink = make(BY_MONTH)
    rows = batch(0, 4, months=2)
    sink.write(rows.set_column(2, "name", pa.array(["z", "b", "y", "a"]).dictionary_encode()))
    first, second = sorted(sink.close(), key=lambda file: file.partition)
    assert (first.lower_bounds[3], first.upper_bounds[3]) == (b"y", b"z")
    assert (second.lower_bounds[3], second.upper_bounds[3]) == (b"a", b"b")


def test_decimals_keep_their_values_in_every_width(make: MakeSink) -> None:
    kinds = [DecimalType(9, 2), DecimalType(18, 2), DecimalType(38, 2)]
    schema = Schema(*[NestedField(at + 1, f"c{at}", kind, required=False) for at, kind in enumerate(kinds)])
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(1), "bucket"))
    values = pa.array([-150, None, 99999], pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(30, 2))
    table = pa.table({f"c{at}": values.cast(pa.decimal128(kind.precision, 2)) for at, kind in enumerate(kinds)})
    sink = make(spec, schema)
    sink.write(table)
    files = sink.close()
    read = pa.concat_tables([pq.read_table(file.file_path, partitioning=None) for file in files]).sort_by("c0")
    assert read.to_pydict() == table.sort_by("c0").to_pydict()
    physical = [pq.ParquetFile(files[0].file_path).schema.column(at).physical_type for at in range(3)]
    assert physical == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    bounds = [
        from_bytes(kind, max(file.upper_bounds.get(at + 1, b"") for file in files)) for at, kind in enumerate(kinds)
    ]
    assert [str(bound) for bound in bounds] == ["99999.00"] * 3


def test_abort_leaves_neither_closed_nor_open_files(make: MakeSink, tmp_path: Path) -> None:
    sink = make(BY_ID, limits=MemoryLimits(buffered_bytes=10_000, open_files=2))
    sink.write(pa.Table.from_batches([batch(0, 10)] * 20_000))
    assert len(list(tmp_path.rglob("*.parquet"))) > 2
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))


def test_abort_after_close_removes_the_files_too(make: MakeSink, tmp_path: Path) -> None:
    sink = make()
    sink.write(batch(0, 10))
    assert len(sink.close()) == 1
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_batch_that_does_not_fit_is_refused_and_abort_still_cleans_up(make: MakeSink, tmp_path: Path) -> None:
    sink = make(properties={"write.parquet.row-group-limit": "5"})
    sink.write(batch(0, 10))
    sink.write(batch(10, 10))
    with pytest.raises(SchemaMismatch, match="'id'"):
        sink.write(pa.record_batch({"id": ["a"], "day": [None], "name": ["b"]}))
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_warehouse_that_cannot_be_written_is_named(make: MakeSink, tmp_path: Path) -> None:
    (tmp_path / "table").write_text("a file, not a folder")
    sink = make()
    sink.write(batch(0, 10))
    with pytest.raises(StorageFailed, match=r"00000\.parquet"):
        sink.close()


def test_abort_cleans_up_after_a_file_that_could_not_be_completed(
    make: MakeSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = make(properties={"write.parquet.compression-level": "3"})
    sink.write(batch(0, 10))

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", refuse)
    with pytest.raises(StorageFailed, match="No space left"):
        sink.close()
    sink.abort()
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_field_whose_type_is_narrower_in_the_source_is_widened(make: MakeSink) -> None:
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "n", IntegerType(), required=False))
    sink = make(schema=schema)
    sink.write(pa.record_batch({"n": pa.array([1], pa.int8()), "id": pa.array([2], pa.int32())}))
    (file,) = sink.close()
    read = pq.read_table(file.file_path)
    assert read.schema.types == [pa.int64(), pa.int32()]
    assert read.to_pylist() == [{"id": 2, "n": 1}]


MEMORY_PROGRAM = """
    import itertools, json, sys
    from pathlib import Path
    import numpy as np, pyarrow as pa
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import DoubleType, LongType, NestedField, StringType
    from frazil.snapshot.data_file_sink import DataFileSink

    columns = [NestedField(1, "id", LongType())]
    columns += [NestedField(at + 2, f"v{at}", DoubleType()) for at in range(12)]
    columns += [NestedField(20, "text", StringType())]
    names = itertools.count()
    sink = DataFileSink(
        schema=Schema(*columns), spec=PartitionSpec(PartitionField(1, 1000, BucketTransform(32), "b")),
        location=sys.argv[1], properties={"write.parquet.compression-codec": "snappy"}, io=PyArrowFileIO(),
        file_name=lambda: f"{next(names):05d}.parquet",
    )
    rows, noise, streamed = 100_000, np.random.default_rng(3), 0
    text = pa.array([f"some words to fill a line with, number {at}" for at in range(rows)])
    while streamed < 2_000_000_000:
        arrays = [pa.array(noise.integers(0, 1 << 60, rows))] + [pa.array(noise.random(rows)) for _ in range(12)] + [text]
        batch = pa.record_batch(arrays, names=[column.name for column in columns])
        streamed += batch.nbytes
        sink.write(batch)
    files = sink.close()
    partitions = len({file.partition for file in files})
    written = sum(file.record_count for file in files)
    sink.abort()
    # Not `getrusage`: its peak is kept over exec, so it would be that of the test process that started this one.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    print(json.dumps({"peak_bytes": peak, "partitions": partitions, "rows": written, "streamed": streamed}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, WORKER_MEMORY], ids=["as it comes", "as in a Spark worker"])
def test_two_gigabytes_into_32_partitions_stay_below_600_megabytes(tmp_path: Path, environment: dict[str, str]) -> None:
    program = textwrap.dedent(MEMORY_PROGRAM)
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    seen = json.loads(run.stdout)
    assert seen["partitions"] == 32
    assert seen["streamed"] >= 2_000_000_000
    assert seen["peak_bytes"] < 600_000_000
