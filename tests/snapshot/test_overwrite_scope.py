"""An overwrite of partitions or by a filter replaces what it says and nothing else, whatever others do meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType

import frazil
from frazil import BadInput, CommitConflict, FileContent, Landed
from frazil.errors import StorageFailed
from frazil.snapshot.delete_file import equality_delete, write_position_deletes
from frazil.snapshot.manifest import read_manifest_entries
from frazil.snapshot.overwrite_scope import MatchingRows, Overwrite, TouchedPartitions, WholeTable
from lakes import Lake, through
from readers import read_with_duckdb, read_with_pyiceberg

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "day", DateType()),
    NestedField(3, "city", StringType()),
    NestedField(4, "km", DoubleType()),
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day_day"))
BY_CITY = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "city"))
BY_KM = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "km"))
FIRST = date(2026, 1, 1)


def rows(*ids: int, days: int = 1, **columns: Any) -> pa.Table:
    """Rows whose day is that of their id modulo `days`."""
    made = {
        "id": pa.array(ids, pa.int64()),
        "day": pa.array([FIRST + timedelta(each % days) for each in ids]),
        "city": pa.array(["Bergen" if each % 2 else "Oslo" for each in ids]),
        "km": pa.array([float(each) for each in ids]),
    }
    return pa.table({**made, **columns})


def publish(
    table: Table, *shards: pa.Table, overwrite: Overwrite | bool = False, meanwhile: Any = None, **options: Any
) -> Landed:
    """One snapshot of these rows, a shard for each. `meanwhile` is done between its begin and its publish."""
    snapshot = frazil.begin_snapshot(table)
    reports = [frazil.write_shard(snapshot, f"s{at}", [shard], io=table.io) for at, shard in enumerate(shards)]
    if meanwhile is not None:
        meanwhile()
    return frazil.publish_snapshot(table, snapshot, reports, overwrite=overwrite, **options)


def ids(table: Table) -> list[int]:
    """What both readers agree is in the table."""
    table.refresh()
    by_duckdb = read_with_duckdb(table)
    assert by_duckdb.equals(read_with_pyiceberg(table))
    return sorted(by_duckdb["id"].to_pylist())


def summary(table: Table) -> dict[str, str]:
    table.refresh()
    return dict(table.current_snapshot().summary.additional_properties)  # type: ignore[union-attr]


# ---- partitions


@pytest.mark.parametrize("version", [1, 2, 3])
def test_only_the_partitions_that_were_written_to_are_replaced(any_lake: Lake, version: int) -> None:
    table = any_lake.table(schema=SCHEMA, spec=BY_DAY, version=version)
    publish(table, rows(0, 1, 2, 3, days=2), rows(10, 11, days=2))
    publish(table, rows(20, days=2), overwrite=TouchedPartitions())
    assert ids(table) == [1, 3, 11, 20]
    publish(table, rows(30, 31, days=2))
    assert ids(table) == [1, 3, 11, 20, 30, 31]
    assert any_lake.orphans(table) == set()


def test_the_partitions_of_null_and_nan_are_partitions_too(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA, spec=BY_KM)
    values = pa.array([None, float("nan"), 1.0])
    publish(table, rows(1, 2, 3, km=values))
    publish(table, rows(4, 5, km=values[:2]), overwrite=TouchedPartitions())
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [3, 4, 5]


def test_an_overwrite_of_partitions_by_no_rows_replaces_nothing(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA, spec=BY_DAY)
    publish(table, rows(1, 2))
    publish(table, overwrite=TouchedPartitions())
    assert ids(table) == [1, 2]


def test_a_table_without_partitions_is_replaced_whole(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(1, 2))
    publish(table, rows(3), overwrite=TouchedPartitions())
    assert ids(table) == [3]


def test_partitions_cannot_be_told_in_files_of_another_spec(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(1, 2))
    with table.update_spec() as spec:
        spec.add_identity("city")
    before = lake.files(table)
    snapshot = frazil.begin_snapshot(table)
    report = frazil.write_shard(snapshot, "s", [rows(3)], io=table.io)
    with pytest.raises(BadInput, match="by another spec"):
        frazil.publish_snapshot(table, snapshot, [report], overwrite=TouchedPartitions())
    assert ids(table) == [1, 2]
    frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert {path for path in lake.files(table) - before if "metadata.json" not in path} == set()


def test_an_overwrite_of_partitions_follows_a_commit_to_others(any_lake: Lake) -> None:
    table = any_lake.table(schema=SCHEMA, spec=BY_CITY)
    publish(table, rows(1, 2))
    other = any_lake.again(table)
    landed = publish(
        table, rows(5), overwrite=TouchedPartitions(), meanwhile=lambda: publish(other, rows(4))
    )  # 5 is in Bergen, 4 in Oslo
    assert landed.attempts == 1 and ids(table) == [2, 4, 5]


@pytest.mark.parametrize("scope", [TouchedPartitions(), MatchingRows("city = 'Bergen'"), WholeTable()])
def test_an_overwrite_never_removes_rows_that_it_has_not_seen(any_lake: Lake, scope: Overwrite) -> None:
    table = any_lake.table(schema=SCHEMA, spec=BY_CITY)
    publish(table, rows(1, 2))
    other = any_lake.again(table)
    with pytest.raises(CommitConflict, match="rows that it has not seen"):
        publish(table, rows(5), overwrite=scope, meanwhile=lambda: publish(other, rows(7)))
    assert ids(table) == [1, 2, 7]


def test_an_overwrite_conflicts_with_another_that_was_first(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA, spec=BY_CITY)
    publish(table, rows(1, 2))
    other = lake.again(table)
    by_city = MatchingRows("city = 'Bergen'")
    with pytest.raises(CommitConflict, match="rows that it has not seen"):
        publish(table, rows(5), overwrite=by_city, meanwhile=lambda: publish(other, overwrite=by_city))
    assert ids(table) == [2]


def test_an_overwrite_conflicts_with_deletes_among_its_rows(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA, spec=BY_CITY)
    publish(table, rows(1, 3))
    other = lake.again(table)
    with pytest.raises(CommitConflict, match="rows that it has not seen"):
        publish(table, rows(5), overwrite=TouchedPartitions(), meanwhile=lambda: delete(other, 0))
    assert ids(table) == [3]


# ---- filters


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_filter_along_the_partitions_drops_whole_files(any_lake: Lake, version: int) -> None:
    table = any_lake.table(schema=SCHEMA, spec=BY_DAY, version=version)
    publish(table, rows(*range(6), days=3))
    publish(table, rows(30, days=3), overwrite=MatchingRows("day = DATE '2026-01-01'"))
    assert ids(table) == [1, 2, 4, 5, 30]
    found = summary(table)
    assert (found["deleted-data-files"], found["added-data-files"], found["total-records"]) == ("1", "1", "5")
    assert any_lake.orphans(table) == set()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_that_a_filter_takes_in_part_are_written_again_without_its_rows(any_lake: Lake, version: int) -> None:
    table = any_lake.table(schema=SCHEMA, version=version)
    publish(table, rows(*range(10)), rows(*range(10, 20)), rows(*range(20, 30)))
    publish(table, rows(105), overwrite=MatchingRows("id >= 5 and id < 20"))
    assert ids(table) == [0, 1, 2, 3, 4, *range(20, 30), 105]
    found = summary(table)
    assert (found["deleted-data-files"], found["added-data-files"]) == ("2", "2")
    assert (found["deleted-records"], found["added-records"], found["total-records"]) == ("20", "6", "16")
    assert any_lake.orphans(table) == set()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("km > 2", [0, 1, 2, 7]),
        ("km != 3.0", [3, 7]),
        ("not km = 3.0", [3, 7]),
        ("km not in (3.0, 4.0)", [3, 4, 7]),
        ("km is null", list(range(7))),
        ("km <= 1 or city = 'Bergen'", [2, 4, 6]),
    ],
)
def test_rows_for_which_a_filter_is_null_stay(lake: Lake, text: str, left: list[int]) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(*range(8), km=pa.array([*map(float, range(7)), None])))
    publish(table, overwrite=MatchingRows(text))
    assert ids(table) == left


def test_a_filter_that_takes_no_row_replaces_nothing(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(1, 2))
    before = table.refresh().inspect.files()["file_path"].to_pylist()
    publish(table, rows(9), overwrite=MatchingRows("id > 5"))
    assert ids(table) == [1, 2, 9]
    assert set(before) < set(table.inspect.files()["file_path"].to_pylist())


def test_a_filter_that_takes_every_row_of_a_file_by_its_bounds_drops_it_unread(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(1, 2), rows(8, 9))
    io = through(lake.catalog, table)
    publish(table, overwrite=MatchingRows("id between 5 and 10"))
    assert not [path for path in io.done("open") if path.endswith(".parquet")]
    assert ids(table) == [1, 2]


def test_rows_deleted_before_are_not_brought_back_by_writing_a_file_again(any_lake: Lake) -> None:
    table = any_lake.table(schema=SCHEMA)
    publish(table, rows(*range(6)))
    delete(table, 0, 1)
    publish(table, rows(100), overwrite=MatchingRows("id >= 4"))
    assert ids(table) == [2, 3, 100]


def test_equality_deletes_in_a_file_taken_in_part_are_refused(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(*range(6)))
    elsewhere = frazil.begin_snapshot(table)
    made = frazil.write_shard(elsewhere, "s", [rows(2)], io=table.io)
    written = next(iter(read_manifest_entries(table.io, made.manifests[0]))).data_file
    snapshot = frazil.begin_snapshot(table)
    report = frazil.report_files(snapshot, "deletes", [equality_delete(written, [1])], io=table.io)
    frazil.publish_snapshot(table, snapshot, [report])
    with pytest.raises(BadInput, match="choose a filter along the table's partitions"):
        publish(table, overwrite=MatchingRows("id >= 4"))
    table.refresh()
    assert sorted(read_with_duckdb(table)["id"].to_pylist()) == [0, 1, 3, 4, 5]


def test_a_failed_overwrite_leaves_no_file_of_the_rows_it_kept(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(*range(10)))
    snapshot = frazil.begin_snapshot(table)
    report = frazil.write_shard(snapshot, "s", [rows(7)], io=table.io)
    before = lake.files(table)
    io = through(lake.catalog, table)
    io.fail("close", path="-overwrite-[0-9]+-m0")
    with pytest.raises(StorageFailed):
        frazil.publish_snapshot(table, snapshot, [report], overwrite=MatchingRows("id > 5"))
    assert lake.files(table) == before


def test_an_overwrite_whose_rows_were_rewritten_meanwhile_conflicts_and_leaves_nothing(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(*range(10)))
    other = lake.again(table)
    snapshot = frazil.begin_snapshot(table)
    report = frazil.write_shard(snapshot, "s", [rows(7)], io=table.io)
    publish(other, overwrite=MatchingRows("id < 2"))
    before = lake.files(table)
    with pytest.raises(CommitConflict, match="came or went"):
        frazil.publish_snapshot(table, snapshot, [report], overwrite=MatchingRows("id > 5"))
    assert lake.files(table) == before and ids(table) == list(range(2, 10))


def test_a_filter_sees_through_schemas_and_specs_of_the_past(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA, spec=BY_CITY)
    publish(table, rows(0, 1, 2, 3))
    with table.update_spec() as spec:
        spec.remove_field("city")
        spec.add_field("day", DayTransform())
    with table.update_schema() as schema:
        schema.add_column("note", StringType())
        schema.rename_column("city", "town")
    later = rows(4, 5).rename_columns(["id", "day", "town", "km"])
    publish(table, later.append_column("note", pa.array(["x", None])))
    publish(table, overwrite=MatchingRows("town = 'Bergen' and note is null"))
    assert ids(table) == [0, 2, 4]


def test_a_filter_on_a_column_that_is_not_there_is_refused_by_its_name(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(1))
    with pytest.raises(BadInput, match=r"nope.*its columns are id \(long\)"):
        publish(table, overwrite=MatchingRows("nope = 1"))


def test_an_overwrite_that_was_published_by_another_call_is_recognised(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(*range(4)))
    snapshot = frazil.begin_snapshot(table)
    report = frazil.write_shard(snapshot, "s", [rows(3)], io=table.io)
    frazil.publish_snapshot(table, snapshot, [report], overwrite=MatchingRows("id > 2"))
    before = lake.files(table)
    with pytest.raises(frazil.AlreadyConsumed):
        frazil.publish_snapshot(table, snapshot, [report], overwrite=MatchingRows("id > 2"))
    assert lake.files(table) == before and ids(table) == [0, 1, 2, 3]


def delete(table: Table, *positions: int) -> None:
    """Delete these rows of the table's only file."""
    snapshot = frazil.begin_snapshot(table)
    (task,) = table.refresh().scan().plan_files()
    path = f"{table.location()}/data/deletes-{snapshot.snapshot_id}.parquet"
    spec = table.spec()
    made = write_position_deletes(table.io, path, {task.file.file_path: list(positions)})
    assert made.content is FileContent.POSITION_DELETES
    if not spec.is_unpartitioned():
        made = replace(made, partition=tuple(task.file.partition._data), spec_id=spec.spec_id)
    frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "deletes", [made], io=table.io)])


def test_the_rows_kept_are_those_that_were_there(lake: Lake) -> None:
    table = lake.table(schema=SCHEMA)
    publish(table, rows(*range(1000)))
    before = read_with_duckdb(table.refresh())
    publish(table, overwrite=MatchingRows("id >= 400"))
    kept = before.filter(pc.less(before["id"], 400))
    assert read_with_duckdb(table.refresh()).equals(kept.combine_chunks())
