"""Manifest encoding: entries per second of PyIceberg's writer, fastavro and Frazil's, in interleaved rounds.

Run as `python -m bench.manifest_encoding [ENTRIES [ROUNDS]]`. All write the same data files, with the statistics of 16
columns and one partition field, as format version 2 with deflate, to a local file. What each writer takes as input is
made before the clock starts: PyIceberg's records, fastavro's dicts (with their maps already cut into key-value
records), Frazil's data files.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
from pyiceberg import manifest as pyiceberg_manifest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, DoubleType, IcebergType, LongType, NestedField, StringType

from frazil.snapshot.data_file import DataFile
from frazil.snapshot.manifest import ManifestWriter
from frazil.snapshot.manifest_schema import avro_json, manifest_entry_schema, partition_type

SNAPSHOT_ID = 4_951_200_337_012_345_678
_TYPES: list[tuple[IcebergType, int | None]] = [
    *[(LongType(), 8)] * 4,
    *[(DecimalType(15, 2), 4)] * 4,
    *[(DateType(), 4)] * 3,
    (DoubleType(), 8),
    *[(StringType(), None)] * 4,
]
SCHEMA = Schema(*(NestedField(i, f"column_{i}", kind) for i, (kind, _) in enumerate(_TYPES, start=1)))
SPEC = PartitionSpec(PartitionField(9, 1000, DayTransform(), "day"), spec_id=0)


def data_files(count: int, seed: int = 20261118) -> list[DataFile]:
    """Files as a load would make them: equal value counts within a file, sizes and bounds of every file its own."""
    chance = random.Random(seed)
    return [_data_file(chance, number) for number in range(count)]


def _data_file(chance: random.Random, number: int) -> DataFile:
    rows = chance.randint(200_000, 1_200_000)
    columns = range(1, 17)
    nullable = {13, 14, 15, 16}
    sizes = [size or chance.randint(3, 16) for _, size in _TYPES]
    return DataFile(
        file_path=f"s3://warehouse/db/lineitem/day=2026-01-{number % 28 + 1:02}/{chance.randbytes(16).hex()}.parquet",
        record_count=rows,
        file_size_in_bytes=chance.randint(10_000_000, 500_000_000),
        partition=(20_000 + number % 28,),
        column_sizes={column: chance.randint(1_000, 40_000_000) for column in columns},
        value_counts=dict.fromkeys(columns, rows),
        null_value_counts={column: chance.randint(0, 5_000) if column in nullable else 0 for column in columns},
        nan_value_counts={12: 0},
        lower_bounds={column: chance.randbytes(size) for column, size in zip(columns, sizes, strict=True)},
        upper_bounds={column: chance.randbytes(size) for column, size in zip(columns, sizes, strict=True)},
        split_offsets=(4, 134_217_732, 268_435_460),
    )


def frazil_writer(files: list[DataFile], path: str) -> Callable[[], Any]:
    """Frazil's way, ready to run."""

    def write() -> None:
        writer = ManifestWriter(
            PyArrowFileIO(), path, schema=SCHEMA, spec=SPEC, format_version=2, snapshot_id=SNAPSHOT_ID
        )
        for file in files:
            writer.add(file)
        writer.close()

    return write


def pyiceberg_writer(files: list[DataFile], path: str) -> Callable[[], Any]:
    """PyIceberg's way, ready to run."""
    entries = [_pyiceberg_entry(file) for file in files]

    def write() -> None:
        output = PyArrowFileIO().new_output(path)
        with pyiceberg_manifest.write_manifest(2, SPEC, SCHEMA, output, SNAPSHOT_ID, "deflate") as writer:
            for entry in entries:
                writer.add(entry)
        writer.to_manifest_file()

    return write


def _pyiceberg_entry(file: DataFile) -> pyiceberg_manifest.ManifestEntry:
    arguments = _data_file_fields(file)
    arguments["partition"] = Record(*file.partition)
    data_file = pyiceberg_manifest.DataFile.from_args(**arguments)
    return pyiceberg_manifest.ManifestEntry.from_args(
        status=pyiceberg_manifest.ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT_ID, data_file=data_file
    )


def fastavro_writer(files: list[DataFile], path: str) -> Callable[[], Any]:
    """The way of fastavro, whose inner loop is compiled, ready to run."""
    schema = avro_json(manifest_entry_schema(2, partition_type(SPEC, SCHEMA)), "manifest_entry")
    records = [_fastavro_record(file) for file in files]

    def write() -> None:
        parsed = fastavro.schema.parse_schema(json.loads(schema))
        with Path(path).open("wb") as stream:
            fastavro.writer(stream, parsed, records, codec="deflate", codec_compression_level=1)

    return write


def _fastavro_record(file: DataFile) -> dict[str, Any]:
    fields = {
        name: [{"key": key, "value": each} for key, each in value.items()] if isinstance(value, dict) else value
        for name, value in _data_file_fields(file).items()
    }
    fields["partition"] = {"day": file.partition[0]}
    return {"status": 1, "snapshot_id": SNAPSHOT_ID, "data_file": fields}


def _data_file_fields(file: DataFile) -> dict[str, Any]:
    names = [name for name in DataFile.__dataclass_fields__ if name not in ("spec_id", "partition")]
    fields = {name: getattr(file, name) for name in names}
    return {**fields, "content": int(file.content), "split_offsets": list(file.split_offsets), "equality_ids": None}


def main(entries: int = 20_000, rounds: int = 5) -> None:
    """Run and print."""
    files = data_files(entries)
    with tempfile.TemporaryDirectory() as folder:
        makers = {"PyIceberg": pyiceberg_writer, "fastavro from dicts": fastavro_writer, "Frazil": frazil_writer}
        writers = {
            name: make(files, str(Path(folder, f"{number}.avro"))) for number, (name, make) in enumerate(makers.items())
        }
        rates = measure(writers, entries, rounds)
        sizes = {name: Path(folder, f"{number}.avro").stat().st_size for number, name in enumerate(makers)}
    base = statistics.median(rates["PyIceberg"])
    print(f"{entries} entries, statistics of 16 columns, median of {rounds} interleaved rounds, one core")
    for name, each in rates.items():
        rate = statistics.median(each)
        size = sizes[name] / entries
        print(f"{name:20} {rate:10,.0f} entries/s  {rate / base:5.2f} x PyIceberg  {size:6.0f} bytes/entry")


def measure(writers: dict[str, Callable[[], Any]], entries: int, rounds: int) -> dict[str, list[float]]:
    """Entries per second (of processor time) of every writer in every round."""
    rates: dict[str, list[float]] = {name: [] for name in writers}
    for _ in range(rounds):
        for name, write in writers.items():
            started = time.process_time()
            write()
            rates[name].append(entries / (time.process_time() - started))
    return rates


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
