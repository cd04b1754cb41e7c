"""Rows that do not fit are told apart from the others, land beside them with reason and position, or leave nothing."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

import frazil
from frazil import DistributedSnapshot, NotLanded, RejectTo, Report, SchemaMismatch, TooManyRejected
from frazil.snapshot.alignment import BatchAlignment
from frazil.snapshot.rejected_rows import rows_as_json
from frazil.snapshot.rejected_table import publish_rejected, take_back
from lakes import Lake
from readers import read_with_duckdb, read_with_pyiceberg

SMALL = Schema(
    NestedField(1, "id", IntegerType(), required=True), NestedField(2, "price", DecimalType(5, 2), required=False)
)


@pytest.mark.parametrize(
    ("kind", "array", "bad"),
    [
        (IntegerType(), pa.array([1, 2**31, None, -(2**31)]), {1}),
        (IntegerType(), pa.array([1.0, 1.5, float("nan"), None]), {1, 2}),
        (IntegerType(), pa.array(["1", "x", "", "99999999999", None]), {1, 2, 3}),
        (IntegerType(), pa.array([Decimal("1.00"), Decimal("1.50")]), {1}),
        (LongType(), pa.array([1, 2**63], pa.uint64()), {1}),
        (FloatType(), pa.array([0.5, 0.1, 1e300, float("nan"), float("inf"), None]), {1, 2}),
        (DoubleType(), pa.array([2**53, 2**53 + 1, None]), {1}),
        (DecimalType(5, 2), pa.array([Decimal("1.230"), Decimal("1.234"), Decimal("1000.000"), None]), {1, 2}),
        (DecimalType(5, 2), pa.array(["1.23", "1.234", "1000", "one", None]), {1, 2, 3}),
        (BooleanType(), pa.array(["true", "maybe"]), {1}),
        (DateType(), pa.array(["2024-02-29", "2023-02-29", "soon"]), {1, 2}),
        (TimestampType(), pa.array([0, 2**62, None], pa.timestamp("s")), {1}),
        (TimestampType(), pa.array([1000, 1], pa.timestamp("ns")), {1}),
        (TimestamptzType(), pa.array(["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"]), {1}),
        (LongType(), pa.array(["1", "x", "x", "3"]).dictionary_encode(), {1, 2}),
        (ListType(2, IntegerType()), pa.array([[1], [2, 2**40], [], None]), {1}),
        (StructType(NestedField(2, "x", IntegerType())), pa.array([{"x": 2**40}, {"x": 1}, None]), {0}),
    ],
)
def test_the_rows_with_a_value_that_would_lose_are_found_and_the_others_fit(
    kind: Any, array: pa.Array, bad: set[int]
) -> None:
    alignment = BatchAlignment(Schema(NestedField(1, "c", kind, required=False)), narrow=True)
    batch = pa.record_batch({"c": array})
    with pytest.raises(SchemaMismatch):
        alignment.align(batch)
    found = alignment.bad_rows(batch)
    assert found.keys() == bad and all("column 'c" in reason for reason in found.values())
    good = batch.filter(pa.array([row not in bad for row in range(len(array))]))
    assert alignment.align(good).num_rows == len(array) - len(bad)


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (StringType(), pa.int64()),
        (IntegerType(), pa.binary()),
        (DateType(), pa.timestamp("us")),
        (LongType(), pa.bool_()),
    ],
)
def test_types_of_which_no_value_is_meant_are_a_misfit_of_the_whole(kind: Any, source: pa.DataType) -> None:
    alignment = BatchAlignment(Schema(NestedField(1, "c", kind)), narrow=True)
    with pytest.raises(SchemaMismatch, match="in the table and"):
        alignment.bad_rows(pa.record_batch({"c": pa.nulls(2, source)}))


def test_a_row_that_is_bad_in_two_columns_is_one_row_with_both_reasons() -> None:
    batch = pa.record_batch({"id": pa.array([1, None]), "price": ["1.23", "x"]})
    (reason,) = BatchAlignment(SMALL, narrow=True).bad_rows(batch).values()
    assert "column 'id' is required and holds 1 nulls" in reason and "column 'price'" in reason


def test_raw_rows_are_json_whatever_they_hold() -> None:
    moments = pa.array([2**62], pa.timestamp("s"))
    batch = pa.record_batch(
        {"d": [Decimal("1.50")], "b": [b"\x00\xff"], "t": moments, "n": [None], "s": [{"x": [1, None]}], "u": ["é"]}
    )
    (row,) = rows_as_json(batch)
    assert json.loads(row) == {
        "d": "1.50",
        "b": "00ff",
        "t": "<value out of range: 4611686018427387904>",
        "n": None,
        "s": {"x": [1, None]},
        "u": "é",
    }


class Both:
    """A table and the one for its rejected rows, each with a snapshot reserved."""

    def __init__(self, lake: Lake, **options: Any) -> None:
        self.lake = lake
        self.table = lake.table(schema=SMALL)
        self.rejected, self.created = frazil.open_rejected(lake.catalog, ("db", "t"))
        self.snapshot = frazil.begin_snapshot(self.table)
        self.reserved = frazil.begin_snapshot(self.rejected)
        self.to = RejectTo(self.reserved, self.snapshot.snapshot_id, "job-1", **options)

    def write(self, *batches: Any, shard: str = "a") -> Report:
        return frazil.write_shard(self.snapshot, shard, batches, io=self.table.io, rejects=self.to)

    def files(self) -> set[str]:
        return {
            path for path in self.lake.files(self.table) | self.lake.files(self.rejected) if "metadata.json" not in path
        }


@pytest.fixture
def both(lake: Lake) -> Both:
    return Both(lake)


def rows(count: int, bad: set[int]) -> pa.Table:
    ids = pa.array([2**40 if each in bad else each for each in range(count)], pa.int64())
    return pa.table({"id": ids, "price": pa.array([Decimal("1.25")] * count)})


def test_rejected_rows_land_beside_the_others_with_all_that_is_known_of_them(both: Both) -> None:
    with frazil.SnapshotWriter(both.snapshot, "a", io=both.table.io, rejects=both.to) as writer:
        writer.write(rows(300_000, {5, 200_000}), lambda row: f"x.parquet, row {row + 1}")
        writer.reject("x.csv, byte 70", "a quote is not closed", '1,"')
    report = writer.report
    assert (report.rows, report.rejected_rows) == (299_998, 3)
    assert publish_rejected(both.rejected, both.reserved, [report], {"frazil.job": "job-1"})
    frazil.publish_snapshot(both.table, both.snapshot, [report])
    assert both.table.current_snapshot().summary["frazil.rejected-rows"] == "3"
    found = sorted(read_with_duckdb(both.rejected).to_pylist(), key=lambda row: row["position"])
    assert read_with_pyiceberg(both.rejected).num_rows == 3
    assert [row["position"] for row in found] == ["x.csv, byte 70", "x.parquet, row 200001", "x.parquet, row 6"]
    assert {(row["job"], row["snapshot_id"], row["shard"]) for row in found} == {
        ("job-1", both.snapshot.snapshot_id, "a")
    }
    assert found[0]["row"] == '1,"' and json.loads(found[2]["row"]) == {"id": 2**40, "price": "1.25"}
    assert "column 'id' is int32 in the table and int64 in the source" in found[2]["reason"]
    assert read_with_duckdb(both.table).num_rows == 299_998


def test_a_report_keeps_the_rejected_one_through_every_form(both: Both) -> None:
    report = both.write(rows(10, {3}))
    assert report.rejected is not None and report.rejected.rows == 1
    assert Report.from_json(report.to_json()) == Report.from_protobuf(report.to_protobuf()) == report


def test_where_all_fits_there_is_no_trace_of_rejecting(both: Both) -> None:
    report = both.write(rows(10, set()))
    assert (report.rejected_rows, report.rejected) == (0, None)
    assert not publish_rejected(both.rejected, both.reserved, [report], {})
    assert both.lake.files(both.rejected) == {
        path for path in both.lake.files(both.rejected) if "metadata.json" in path
    }


def test_a_shard_of_which_no_row_fits_has_a_report_all_the_same(both: Both) -> None:
    report = both.write(rows(3, {0, 1, 2}))
    assert (report.rows, report.manifests, report.rejected_rows) == (0, (), 3)


def test_without_rejects_the_first_bad_row_is_an_error_and_leaves_no_file(both: Both) -> None:
    with pytest.raises(SchemaMismatch, match="column 'id' is int32 in the table and int64 in the source"):
        frazil.write_shard(both.snapshot, "a", [rows(10, {3})], io=both.table.io)
    assert both.files() == set()


def test_a_writer_that_fails_leaves_neither_kind_of_file(both: Both) -> None:
    with (
        pytest.raises(RuntimeError),
        frazil.SnapshotWriter(both.snapshot, "a", io=both.table.io, rejects=both.to) as writer,
    ):
        writer.write(rows(30_000, set(range(0, 30_000, 2))))
        raise RuntimeError("no")
    assert both.files() == set()


def test_a_manifest_that_cannot_be_written_leaves_neither_kind_of_file(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.snapshot import write_shard as module

    whole = module.report_files

    def fails_for_the_main_table(snapshot: DistributedSnapshot, *arguments: Any, **options: Any) -> Report:
        if snapshot is both.snapshot:
            raise OSError("injected")
        return whole(snapshot, *arguments, **options)

    monkeypatch.setattr(module, "report_files", fails_for_the_main_table)
    with pytest.raises(OSError, match="injected"):
        both.write(rows(10, {3}))
    assert both.files() == set()


def test_more_than_a_shard_may_reject_ends_it_with_an_example(lake: Lake) -> None:
    both = Both(lake, most=2)
    assert both.write(rows(10, {1, 2}), shard="enough").rejected_rows == 2
    before = both.files()
    with pytest.raises(TooManyRejected, match=r"shard b of table db\.t has more than 2 rows .* column 'id' is int32"):
        both.write(rows(10, {1, 2, 3}), shard="b")
    assert both.files() == before


def test_a_batch_whose_every_row_is_bad_is_sorted_out(both: Both) -> None:
    count = 2_000
    ids = pa.array(np.full(count, 2**40))
    assert both.write(pa.table({"id": ids, "price": pa.array(["x"] * count)})).rejected_rows == count


def test_the_table_of_rejected_rows_is_made_once_and_another_of_its_name_refused(lake: Lake) -> None:
    lake.table()
    assert frazil.open_rejected(lake.catalog, ("db", "t"))[1]
    assert not frazil.open_rejected(lake.catalog, ("db", "t"))[1]
    lake.table("u__rejected")
    with pytest.raises(SchemaMismatch, match=r"rejected rows do not fit table db\.u__rejected: .*'job'"):
        frazil.open_rejected(lake.catalog, ("db", "u"))


def landed(both: Both, *bad: int) -> None:
    report = both.write(rows(10, set(bad)))
    assert publish_rejected(both.rejected, both.reserved, [report], {})
    assert publish_rejected(both.rejected, both.reserved, [report], {})  # an earlier call that landed is recognised
    assert read_with_duckdb(both.rejected).num_rows == len(bad)


def test_rejected_rows_are_taken_back_whole(both: Both) -> None:
    landed(both, 1, 2)
    assert take_back(both.rejected, both.reserved)
    assert not take_back(both.rejected, both.reserved)
    rejected = both.lake.again(both.rejected)
    assert rejected.current_snapshot() is None and rejected.scan().to_arrow().num_rows == 0
    frazil.sweep(rejected, both.reserved.commit_uuid, force=True)
    assert both.lake.orphans(rejected) == set()


def test_taking_back_leaves_the_rows_that_were_rejected_before(lake: Lake) -> None:
    both = Both(lake)
    landed(both, 1)
    both.reserved = frazil.begin_snapshot(both.rejected)
    both.to = RejectTo(both.reserved, both.snapshot.snapshot_id, "job-2")
    report = both.write(rows(10, {5, 6}), shard="b")
    publish_rejected(both.rejected, both.reserved, [report], {})
    assert read_with_duckdb(both.rejected).num_rows == 3
    assert take_back(both.rejected, both.reserved)
    assert read_with_duckdb(lake.again(both.rejected)).num_rows == 1


def test_rejected_rows_with_others_after_them_stay_and_are_named(both: Both) -> None:
    landed(both, 1)
    later = frazil.begin_snapshot(both.rejected)
    frazil.publish_snapshot(both.rejected, later, [])
    with pytest.raises(NotLanded, match=rf"stay in table db\.t__rejected.*snapshot {both.reserved.snapshot_id}"):
        take_back(both.rejected, both.reserved)
