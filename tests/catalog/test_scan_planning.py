"""Server-side scan planning: the plan is the one that PyIceberg makes by itself, in the document's words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.rest.scan_planning import PlanCompleted, ScanTasks
from pyiceberg.expressions import BooleanExpression
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType, TimestampType

import frazil
from frazil.catalog import scan_planning
from frazil.catalog.errors import InvalidRequest, NoSuchPlan, NoSuchPlanTask
from frazil.catalog.scan_planning import fetch_tasks, plan_again, plan_scan
from frazil.snapshot.delete_file import equality_delete, write_position_deletes
from lakes import Lake, append, embedded, write

Document = dict[str, Any]

COLUMNS = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "at", TimestampType()),
    NestedField(3, "city", StringType()),
    NestedField(4, "fare", DoubleType()),
    NestedField(5, "day", DateType()),
)
SPEC = PartitionSpec(
    PartitionField(2, 1000, DayTransform(), "at_day"),
    PartitionField(1, 1001, BucketTransform(4), "id_bucket"),
    PartitionField(3, 1002, TruncateTransform(2), "city_trunc"),
)


def trips(first: int) -> pa.Table:
    numbers = range(first, first + 6)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "at": pa.array([datetime(2026, 1, 1 + number % 5, number % 24) for number in numbers], pa.timestamp("us")),
            "city": [("Oslo", "Rome", "Riga", None)[number % 4] for number in numbers],
            "fare": [number * 1.5 for number in numbers],
            "day": pa.array([date(2026, 1, 1 + number % 5) for number in numbers], pa.date32()),
        }
    )


@pytest.fixture(scope="module")
def trips_table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table of many manifests, partitioned in three ways, with nulls in the partitions."""
    lake = embedded(tmp_path_factory.mktemp("lake"))
    table = lake.table("trips", schema=COLUMNS, spec=SPEC, commit__manifest_merge__enabled="false")
    for first in range(0, 24, 6):
        table.append(trips(first))
    return table


def metadata_of(table: Table) -> Document:
    document: Document = json.loads(table.metadata.model_dump_json())
    return document


def planned(table: Table, **request: Any) -> Iterator[tuple[Document, list[Document]]]:
    """Every file scan task of the plan with its delete files, plan tasks fetched."""
    metadata = metadata_of(table)
    reply = plan_scan(metadata, request, table.io)
    PlanCompleted.model_validate(as_pyiceberg_can_read(reply))
    assert plan_again(metadata, reply["plan-id"], table.io) == {key: reply[key] for key in reply if key != "plan-id"}
    replies = [reply, *(fetch_tasks(metadata, token, table.io) for token in reply.get("plan-tasks", ()))]
    for one in replies:
        ScanTasks.model_validate(as_pyiceberg_can_read(one))
        for task in one.get("file-scan-tasks", ()):
            yield task, [one["delete-files"][place] for place in task.get("delete-file-references", ())]


def as_pyiceberg_can_read(reply: Document) -> Document:
    """The reply without null partition values, which the document's schema leaves out, though partitions have them."""
    copy: Document = json.loads(json.dumps(reply))
    for task in copy.get("file-scan-tasks", ()):
        if "transform" in str(task["residual-filter"]):
            del task["residual-filter"]  # PyIceberg's model knows no transforms there
        task["data-file"]["partition"] = [one for one in task["data-file"]["partition"] if one is not None]
    return copy


def paths(table: Table, **request: Any) -> set[str]:
    return {task["data-file"]["file-path"] for task, _ in planned(table, **request)}


ORDERED = st.sampled_from(["lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq"])
TEXTUAL = st.sampled_from(["eq", "not-eq", "starts-with", "not-starts-with", "lt", "gt-eq"])
NULLS = st.sampled_from(["is-null", "not-null"])
SETS = st.sampled_from(["in", "not-in"])


BOTH = st.sampled_from(["and", "or"])
NEAR = st.integers(0, 26)
DAYS = st.integers(1, 6)
CITIES = st.sampled_from(["Ri", "Oslo", "Z"])


def compared(operators: st.SearchStrategy[str], column: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda operator, value: {"type": operator, "term": column, "value": value}, operators, values)


LEAVES = st.one_of(
    st.booleans(),
    compared(ORDERED, "id", st.integers(-2, 26)),
    compared(ORDERED, "fare", st.floats(-5, 40)),
    compared(ORDERED, "day", st.builds("2026-01-0{}".format, DAYS)),
    compared(ORDERED, "at", st.builds("2026-01-0{}T05:00:00".format, DAYS)),
    compared(TEXTUAL, "city", CITIES),
    st.builds(lambda operator, name: {"type": operator, "term": name}, NULLS, st.sampled_from(["city", "id"])),
    st.builds(
        lambda operator, values: {"type": operator, "term": "id", "values": values},
        SETS,
        st.lists(NEAR, min_size=2, max_size=4),
    ),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda child: {"type": "not", "child": child}, inner),
        st.builds(lambda operator, left, right: {"type": operator, "left": left, "right": right}, BOTH, inner, inner),
    ),
    max_leaves=6,
)


def expression(document: Any) -> BooleanExpression:
    return BooleanExpression.model_validate(document)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(FILTERS)
def test_any_filter_gives_files_and_residuals_that_lose_no_row_and_keep_none(trips_table: Table, document: Any) -> None:
    everything = pa.concat_tables([trips(first) for first in range(0, 24, 6)])
    wanted = set(_matching(trips_table, everything, document))
    found: set[int] = set()
    for task, _ in planned(trips_table, filter=document):
        rows = pa.parquet.read_table(task["data-file"]["file-path"].removeprefix("file://"))
        left = task["residual-filter"]
        found |= set(_matching(trips_table, rows, left))
    assert found == wanted


def _matching(table: Table, rows: pa.Table, residual: Any) -> list[int]:
    from pyiceberg.expressions.visitors import bind
    from pyiceberg.io.pyarrow import expression_to_pyarrow

    if isinstance(residual, bool):
        return rows["id"].to_pylist() if residual else []
    condition = expression_to_pyarrow(bind(table.schema(), expression(residual), True), table.schema())
    matching: list[int] = rows.filter(condition)["id"].to_pylist()
    return matching


@pytest.mark.parametrize(
    "document",
    [
        {"type": "eq", "term": "id", "value": 7},
        {"type": "lt", "term": "at", "value": "2026-01-02T00:00:00"},
        {
            "type": "and",
            "left": {"type": "gt", "term": "id", "value": 5},
            "right": {"type": "lt", "term": "id", "value": 9},
        },
        {"type": "gt", "term": "fare", "value": 20.0},
    ],
)
def test_a_filter_prunes_as_much_as_pyiceberg_does(trips_table: Table, document: Document) -> None:
    theirs = {task.file.file_path for task in trips_table.scan(row_filter=expression(document)).plan_files()}
    assert paths(trips_table, filter=document) == theirs
    assert len(theirs) < len(paths(trips_table))


@pytest.mark.parametrize(
    "newer",
    [
        {"type": "gt", "left": {"type": "reference", "name": "id"}, "right": 5},
        {"type": "gt", "left": {"type": "reference", "id": 1}, "right": {"type": "literal", "value": 5}},
        {
            "type": "lt",
            "left": {"type": "literal", "value": 5, "data-type": "long"},
            "right": {"type": "reference", "name": "id"},
        },
        {"type": "not", "child": {"type": "lt-eq", "term": "id", "value": 5}},
        {"type": "gt", "term": {"type": "reference", "term": "id"}, "value": 5},
    ],
)
def test_every_form_of_a_predicate_means_the_same(trips_table: Table, newer: Document) -> None:
    older = {"type": "gt", "term": "id", "value": 5}
    assert paths(trips_table, filter=newer) == paths(trips_table, filter=older)


def test_a_predicate_that_nobody_here_evaluates_prunes_nothing_and_is_left_to_the_client(trips_table: Table) -> None:
    beyond = {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "at"}, "value": 20454}
    for document in (beyond, {"type": "not", "child": beyond}):
        tasks = list(planned(trips_table, filter=document))
        assert {task["data-file"]["file-path"] for task, _ in tasks} == paths(trips_table)
        assert all(task["residual-filter"] == document for task, _ in tasks)
    narrowed = {"type": "and", "left": beyond, "right": {"type": "eq", "term": "id", "value": 7}}
    assert paths(trips_table, filter=narrowed) == paths(trips_table, filter={"type": "eq", "term": "id", "value": 7})


def test_a_partition_that_decides_the_filter_leaves_nothing_to_test(trips_table: Table) -> None:
    document = {"type": "lt", "term": "at", "value": "2026-01-03T00:00:00"}
    residuals = [task["residual-filter"] for task, _ in planned(trips_table, filter=document)]
    assert True in residuals
    assert all(residual in (True, document) for residual in residuals)


def test_partition_values_are_those_of_the_document(trips_table: Table) -> None:
    partitions = {tuple(task["data-file"]["partition"]) for task, _ in planned(trips_table)}
    days = {partition[0] for partition in partitions}
    assert days == {f"2026-01-0{number}" for number in range(1, 6)}
    assert {partition[2] for partition in partitions} == {"Os", "Ro", "Ri", None}


def test_metrics_come_for_the_columns_that_are_asked_for(trips_table: Table) -> None:
    (task, _), *_ = planned(
        trips_table, **{"stats-fields": ["id", "day"]}, filter={"type": "eq", "term": "id", "value": 7}
    )
    file = task["data-file"]
    assert file["lower-bounds"]["keys"] == [1, 5]
    assert file["lower-bounds"]["values"][1].startswith("2026-01-0")
    assert set(file["value-counts"]["keys"]) == {1, 5}
    (plain, _), *_ = planned(trips_table)
    assert "lower-bounds" not in plain["data-file"]


def test_a_big_table_is_planned_in_tasks_that_together_are_the_whole(
    trips_table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = paths(trips_table)
    monkeypatch.setattr(scan_planning, "FILES_PER_TASK", 1)
    reply = plan_scan(metadata_of(trips_table), {}, trips_table.io)
    assert len(reply["plan-tasks"]) == 4
    assert "file-scan-tasks" not in reply
    assert paths(trips_table) == whole
    only = {"type": "eq", "term": "at", "value": "2026-01-01T00:00:00"}
    assert paths(trips_table, filter=only) <= whole


def test_tokens_of_another_table_or_of_nobody_are_refused(trips_table: Table, lake: Lake) -> None:
    metadata = metadata_of(trips_table)
    other = lake.table("other")
    foreign = plan_scan(metadata_of(other), {}, other.io)["plan-id"]
    for token in ("", "x", "äö", foreign, "eJyrrgUAAXUA-Q", "A" * 5000):
        with pytest.raises(NoSuchPlan):
            plan_again(metadata, token, trips_table.io)
        with pytest.raises(NoSuchPlanTask):
            fetch_tasks(metadata, token, trips_table.io)


def test_a_table_without_snapshots_has_nothing_to_read(lake: Lake) -> None:
    assert list(planned(lake.table())) == []


def test_an_older_snapshot_can_be_read(trips_table: Table) -> None:
    first = trips_table.metadata.snapshots[0]
    theirs = {task.file.file_path for task in trips_table.scan(snapshot_id=first.snapshot_id).plan_files()}
    assert paths(trips_table, **{"snapshot-id": first.snapshot_id}) == theirs


def test_an_incremental_scan_reads_what_was_appended_in_between(trips_table: Table) -> None:
    ids = [snapshot.snapshot_id for snapshot in trips_table.metadata.snapshots]
    between = paths(trips_table, **{"start-snapshot-id": ids[0], "end-snapshot-id": ids[2]})
    assert between == paths(trips_table, **{"snapshot-id": ids[2]}) - paths(trips_table, **{"snapshot-id": ids[0]})
    theirs = trips_table.incremental_append_scan(from_snapshot_id_exclusive=ids[0], to_snapshot_id_inclusive=ids[2])
    assert between == {task.file.file_path for task in theirs.plan_files()}


def test_the_snapshots_own_schema_serves_when_asked_for(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2)
    table.refresh()
    with table.update_schema() as update:
        update.rename_column("text", "words")
    by_old_name = {"type": "eq", "term": "text", "value": "row 1"}
    asked = {"filter": by_old_name, "snapshot-id": table.metadata.snapshots[0].snapshot_id}
    assert len(paths(table, **asked, **{"use-snapshot-schema": True})) == 1
    with pytest.raises(InvalidRequest, match="Cannot find field 'text' in struct"):
        plan_scan(metadata_of(table), asked, table.io)


def commit_files(table: Table, *files: Any) -> None:
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "part-0", files, io=table.io)])
    table.refresh()


def written(table: Table, *ids: int) -> Any:
    """One data file of these rows, written and not committed."""
    scratch = frazil.begin_snapshot(table)
    return write(table, scratch, *ids)


def test_deletes_are_named_where_they_apply_and_nowhere_else(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2, 3)
    append(table, 4, 5)
    table.refresh()
    first, second = sorted(paths(table), key=lambda path: _rows_of(path))[::-1]
    deletes = f"{table.location()}/data/deletes.parquet"
    commit_files(table, write_position_deletes(table.io, deletes, {first: [0]}))
    append(table, 6)
    table.refresh()
    named = {task["data-file"]["file-path"]: [one["file-path"] for one in files] for task, files in planned(table)}
    assert named.pop(first) == [deletes]
    assert named.pop(second) == []
    assert list(named.values()) == [[]]


def _rows_of(path: str) -> int:
    count: int = pa.parquet.read_metadata(path.removeprefix("file://")).num_rows
    return count


def test_position_deletes_of_several_files_apply_to_those_whose_paths_they_span(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2, 3)
    append(table, 4, 5)
    table.refresh()
    both = sorted(paths(table))
    deletes = f"{table.location()}/data/deletes.parquet"
    commit_files(table, write_position_deletes(table.io, deletes, {path: [0] for path in both}))
    for task, files in planned(table):
        assert [one["file-path"] for one in files] == [deletes]
        assert task["delete-file-references"] == [0]
    theirs = {
        (task.file.file_path, *(one.file_path for one in task.delete_files)) for task in table.scan().plan_files()
    }
    assert theirs == {(path, deletes) for path in both}


def test_an_equality_delete_applies_to_older_data_alone(lake: Lake) -> None:
    table = lake.table()
    append(table, 1, 2, 3)
    keys = f"{table.location()}/data/keys.parquet"
    pa.parquet.write_table(pa.table({"id": pa.array([2], pa.int64())}), keys.removeprefix("file://"))
    from frazil.snapshot.data_file import DataFile

    commit_files(table, equality_delete(DataFile(keys, 1, 100), [1]))
    old = paths(table)
    append(table, 9)
    table.refresh()
    for task, files in planned(table):
        applies = task["data-file"]["file-path"] in old
        assert [one["content"] for one in files] == (["equality-deletes"] if applies else [])
        assert [one["equality-ids"] for one in files] == ([[1]] if applies else [])


def test_a_partition_by_identity_of_a_date_is_a_date(lake: Lake) -> None:
    spec = PartitionSpec(PartitionField(5, 1000, IdentityTransform(), "day"))
    table = lake.table("by_day", schema=COLUMNS, spec=spec)
    table.append(trips(0))
    assert {task["data-file"]["partition"][0] for task, _ in planned(table)} == {f"2026-01-0{n}" for n in range(1, 6)}


@pytest.mark.parametrize(
    ("request_body", "message"),
    [
        ([], "Cannot parse scan request from non-object"),
        ({"snapshot-id": 1}, "Cannot find snapshot with ID 1"),
        ({"snapshot-id": 1, "start-snapshot-id": 2}, "Invalid scan: cannot provide both"),
        ({"start-snapshot-id": 1}, "Invalid incremental scan: startSnapshotId and endSnapshotId is required"),
        ({"select": "id"}, "Cannot parse JSON array from non-array value: select"),
        ({"stats-fields": ["nothing"]}, "Cannot find stats field 'nothing' in struct"),
        ({"case-sensitive": "no"}, "Cannot parse to a boolean value: case-sensitive"),
        ({"filter": "id > 5"}, "Cannot parse expression from non-object"),
        ({"filter": {}}, "Cannot parse missing string: type"),
        ({"filter": {"type": "like", "term": "id", "value": 1}}, 'Cannot parse expression: no operation "like"'),
        ({"filter": {"type": "eq", "term": "id"}}, "Cannot parse missing field: value"),
        ({"filter": {"type": "eq", "term": 5, "value": 1}}, "Cannot parse reference (requires string or object): 5"),
        ({"filter": {"type": "eq", "term": "nothing", "value": 1}}, "Cannot find field 'nothing' in struct"),
        ({"filter": {"type": "eq", "term": "id", "value": "x"}}, "Invalid value for column id of type long"),
        ({"filter": {"type": "eq", "term": "id", "value": None}}, "Cannot parse missing field: value"),
        ({"filter": {"type": "in", "term": "id", "values": [1, True]}}, "Invalid value for column id of type long"),
        (
            {"filter": {"type": "starts-with", "term": "id", "value": 1}},
            "Invalid filter: starts-with is for text",
        ),
    ],
)
def test_a_malformed_request_is_refused_in_one_sentence(trips_table: Table, request_body: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        plan_scan(metadata_of(trips_table), request_body, trips_table.io)
    assert message in refusal.value.message
