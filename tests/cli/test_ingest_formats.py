"""Each format of files lands in a table as it was written, and what cannot be read lands nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc, orc

from commands import Frazil
from frazil.testing import crash_environment
from readers import read_with_duckdb, read_with_pyiceberg

ROWS = pa.table(
    {
        "id": pa.array(range(3000), pa.int64()),
        "price": pa.array([Decimal(f"{'9' * 30}.{number:05d}") for number in range(3000)], pa.decimal128(38, 5)),
        "at": pa.array([datetime(2024, 1, 1, 0, 0, number % 60, number) for number in range(3000)], pa.timestamp("us")),
        "tz": pa.array(
            [datetime(1969, 12, 31, 23, 59, 59, number, UTC) for number in range(3000)], pa.timestamp("us", "UTC")
        ),
        "day": pa.array([date(1 + number, 2, 28) if number % 7 else None for number in range(3000)]),
        "real": pa.array([number / 7 if number % 5 else float("nan") for number in range(3000)]),
        "text": pa.array(["ü" * (number % 40) + '", \n' if number % 3 else None for number in range(3000)]),
        "long": pa.array([f"{'x' * 2000}{number}" for number in range(3000)]),
        "none": pa.array([None] * 3000, pa.string()),
    }
)
NESTED = pa.table(
    {
        **{name: ROWS[name] for name in ROWS.column_names},
        "tags": pa.array([["a", None] if number % 2 else None for number in range(3000)]),
        "deep": pa.array(
            [{"n": number, "l": [{"x": Decimal("1.10")}]} for number in range(3000)],
            pa.struct([("n", pa.int64()), ("l", pa.list_(pa.struct([("x", pa.decimal128(5, 2))])))]),
        ),
    }
)
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": name, "type": ["null", kind]}
        for name, kind in {
            "id": "long",
            "price": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 5},
            "at": {"type": "long", "logicalType": "local-timestamp-micros"},
            "tz": {"type": "long", "logicalType": "timestamp-micros"},
            "day": {"type": "int", "logicalType": "date"},
            "real": "double",
            "text": "string",
            "long": "string",
            "none": "string",
            "tags": {"type": "array", "items": ["null", "string"]},
        }.items()
    ]
    + [
        {
            "name": "deep",
            "type": {
                "type": "record",
                "name": "deep",
                "fields": [
                    {"name": "n", "type": "long"},
                    {
                        "name": "l",
                        "type": {
                            "type": "array",
                            "items": {
                                "type": "record",
                                "name": "x",
                                "fields": [
                                    {
                                        "name": "x",
                                        "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
                                    }
                                ],
                            },
                        },
                    },
                ],
            },
        }
    ],
}


def with_duckdb(options: str) -> Callable[[pa.Table, Path], None]:
    def write(rows: pa.Table, path: Path) -> None:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"COPY (FROM rows) TO '{path}' ({options})")

    return write


def as_json(rows: pa.Table, path: Path) -> None:
    """One object on each line, with every digit of decimals as a number."""

    def text(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(name)}: {text(inner)}" for name, inner in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(text, value)) + "]"
        if isinstance(value, Decimal):
            return str(value)
        return json.dumps(value.isoformat() if isinstance(value, date) else value)

    path.write_text("".join(text(row) + "\n" for row in rows.to_pylist()), encoding="utf-8")


def as_arrow(rows: pa.Table, path: Path) -> None:
    with ipc.new_file(path, rows.schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(rows, max_chunksize=700)


def as_stream(rows: pa.Table, path: Path) -> None:
    with ipc.new_stream(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=700)


def as_avro(rows: pa.Table, path: Path) -> None:
    with path.open("wb") as stream:
        fastavro.writer(stream, fastavro.parse_schema(AVRO), rows.to_pylist(), codec="deflate", sync_interval=50_000)


FORMATS: dict[str, tuple[Callable[[pa.Table, Path], Any], pa.Table]] = {
    "a.csv": (with_duckdb("HEADER"), ROWS),
    "a.csv.gz": (with_duckdb("HEADER, COMPRESSION gzip"), ROWS),
    "a.jsonl": (as_json, NESTED),
    "a.arrow": (as_arrow, NESTED),
    "a.arrows": (as_stream, NESTED),
    "a.orc": (lambda rows, path: orc.write_table(rows, str(path)), NESTED),
    "a.avro": (as_avro, NESTED),
}


def by_id(table: pa.Table) -> list[str]:
    """Rows as texts, in which a NaN is equal to itself."""
    return [str(row) for row in table.sort_by("id").to_pylist()]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_lands_in_a_table_as_it_was_written(frazil: Frazil, name: str) -> None:
    write, rows = FORMATS[name]
    frazil.home.mkdir(exist_ok=True)
    write(rows, frazil.home / name)
    pq.write_table(rows.slice(0, 0), frazil.home / "typed.parquet")
    pq.write_table(rows, frazil.home / "same.parquet")
    for source, table in (("typed.parquet", "db.t"), ("same.parquet", "db.same")):
        assert frazil.here("ingest", source, table, "--root", frazil.root).code == 0
    ran = frazil.here("ingest", name, "db.t", "--root", frazil.root, "--shard-size", "400000", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert (ran.document["rows"], ran.document["table_created"]) == (3000, False)
    expected = by_id(read_with_duckdb(frazil.table("db.same")))
    assert by_id(read_with_duckdb(frazil.table())) == expected
    assert by_id(read_with_pyiceberg(frazil.table())) == expected


def test_large_text_files_are_written_by_several_tasks(frazil: Frazil) -> None:
    as_json(NESTED, frazil.home / "a.jsonl")
    ran = frazil.here("ingest", "a.jsonl", "db.t", "--root", frazil.root, "--shard-size", "400000", "--json")
    assert ran.document["shards"] > 10
    assert (ran.document["rows"], frazil.rows()) == (3000, 3000)


def test_a_new_table_has_the_types_that_the_texts_show_or_that_are_said(frazil: Frazil) -> None:
    (frazil.home / "a.csv").write_text("id;price;at\n1;2.50;2024-01-01 00:00:00\n")
    options = ["--option", "delimiter=;", "--schema", "price decimal(9,2)"]
    ran = frazil.here("ingest", "a.csv", "db.t", "--root", frazil.root, "--partition-by", "day(at)", *options)
    assert ran.code == 0
    assert [str(field.field_type) for field in frazil.table().schema().fields] == ["long", "decimal(9, 2)", "timestamp"]
    assert read_with_duckdb(frazil.table()).to_pylist()[0]["price"] == Decimal("2.50")


def test_nanoseconds_keep_their_digits_in_a_table_that_has_them(frazil: Frazil) -> None:
    (frazil.home / "a.csv").write_text("id,t,z\n1,2024-01-01 00:00:00.123456789,1969-12-31T23:59:59.999999999Z\n")
    options = ["--root", frazil.root, "--format-version", "3"]
    assert frazil.here("ingest", "a.csv", "db.t", *options).code == 0
    (frazil.home / "b.jsonl").write_text('{"z": "1700-01-01T00:00:00.000000001+01:00", "id": 2}\n')
    assert frazil.here("ingest", "b.jsonl", "db.t", *options).code == 0
    rows = frazil.table().scan().to_arrow().sort_by("id")
    assert rows.schema.field("t").type == pa.timestamp("ns")
    assert rows["t"].cast(pa.int64()).to_pylist() == [1704067200123456789, None]
    assert rows["z"].cast(pa.int64()).to_pylist() == [-1, -8520339600000000000 + 1]


def test_a_value_that_does_not_fit_is_told_with_its_place_and_nothing_lands(frazil: Frazil) -> None:
    path = frazil.home / "a.csv"
    path.write_text("id,n\n1,1\n2,two\n")
    ran = frazil.here("ingest", path, "db.t", "--root", frazil.root, "--schema", "n int")
    assert (ran.code, not frazil.catalog.table_exists("db.t")) == (1, True)
    assert f"{path}, byte 9: column 'n' is int, and 'two' is not" in " ".join(ran.err.split())
    assert not any(name.endswith(".parquet") for name in frazil.stored())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--option", "delimeter=;"], "a csv source has no option delimeter; it has delimiter,"),
        (["--schema", "id bigint, price decimal"], "there should be '('"),
        (["--option", "header=yes"], "header=yes is neither true nor false"),
    ],
)
def test_what_cannot_be_asked_of_a_format_is_refused_by_name(
    frazil: Frazil, options: list[str], complaint: str
) -> None:
    (frazil.home / "a.csv").write_text("id\n1\n")
    ran = frazil.here("ingest", "a.csv", "db.t", "--root", frazil.root, *options)
    assert ran.code == 2
    assert complaint in " ".join(ran.err.split())


@pytest.mark.slow
def test_a_killed_run_over_text_is_resumed_with_its_options_to_the_exact_rows(frazil: Frazil) -> None:
    path = frazil.home / "a.csv"
    path.write_text("id;d\n" + "".join(f'{number};"{number}.5"\n' for number in range(100_000)))
    process = frazil.start(
        *("ingest", path, "db.t", "--root", frazil.root, "--master", "local[2]", "--shard-size", "200000"),
        *("--option", "delimiter=;", "--schema", "d decimal(9,1)"),
        environment=crash_environment("job:report-stored", nth=2),
    )
    assert frazil.ended(process).code != 0
    ran = frazil.here("ingest", "--resume", frazil.job(), "--json")
    assert (ran.code, ran.document["shards_done_before"], ran.document["shards"]) == (0, 2, 8)
    rows = read_with_duckdb(frazil.table()).sort_by("id")
    assert rows["id"].to_pylist() == list(range(100_000))
    assert rows["d"].to_pylist() == [Decimal(f"{number}.5") for number in range(100_000)]
    assert frazil.orphans() == set()


@pytest.mark.parametrize("name", ["header.csv", "empty.csv"])
def test_files_without_rows_are_nothing_to_do(frazil: Frazil, name: str) -> None:
    pq.write_table(ROWS.slice(0, 5), frazil.home / "a.parquet")
    assert frazil.here("ingest", "a.parquet", "db.t", "--root", frazil.root).code == 0
    (frazil.home / name).write_text("id,text\n" if name == "header.csv" else "")
    ran = frazil.here("ingest", name, "db.t", "--root", frazil.root, "--schema", "id bigint", "--json")
    assert (ran.code, ran.document["outcome"], frazil.rows()) == (0, "nothing to do", 5)
