"""A schema is merged into a table once, whatever happens to the commit, and what was in the table reads the same."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import create_mapping_from_schema, parse_mapping_from_json
from pyiceberg.types import LongType, NestedField, StringType, StructType

import frazil
from frazil import BadInput, CommitConflict, CommitRefused, OutcomeUnknown, SchemaMismatch
from frazil.testing import FaultyCatalog
from lakes import Lake, append, embedded
from readers import read_with_duckdb, read_with_pyiceberg

MORE = pa.schema([("id", pa.int64()), ("text", pa.string()), ("more", pa.int32())])


def other(lake: Lake, table: Table) -> Table:
    """Another writer's view of the table. It shares the catalog, whose lock it would wait for otherwise."""
    rival = lake.again(table)
    rival.catalog = table.catalog
    return rival


def columns(table: Table) -> list[str]:
    return [field.name for field in table.schema().fields]


def test_rows_written_before_and_after_are_read_together_on_every_catalog(any_lake: Lake) -> None:
    table = any_lake.table()
    append(table, 1)
    merge = frazil.merge_schema(table, MORE)
    assert merge.changes == ("column 'more' (int) is added",)
    assert columns(table) == columns(any_lake.again(table)) == ["id", "text", "more"]
    snapshot = frazil.begin_snapshot(table)
    rows = pa.table({"id": [2], "text": ["two"], "more": pa.array([20], pa.int32())})
    landed = frazil.publish_snapshot(table, snapshot, [frazil.write_shard(snapshot, "a", [rows], io=table.io)])
    table = any_lake.again(table)
    assert table.snapshot_by_id(landed.snapshot_id).schema_id == table.schema().schema_id == 1
    expected = [{"id": 1, "more": None, "text": "row 1"}, {"id": 2, "more": 20, "text": "two"}]
    assert sorted(read_with_pyiceberg(table).to_pylist(), key=lambda row: row["id"]) == expected
    if any_lake.kind != "postgres":
        assert sorted(read_with_duckdb(table).to_pylist(), key=lambda row: row["id"]) == expected


def test_merging_again_asks_the_catalog_for_nothing(lake: Lake) -> None:
    table = lake.table()
    frazil.merge_schema(table, MORE)
    with FaultyCatalog(table.catalog) as catalog:
        assert frazil.merge_schema(table, MORE).changes == ()
    assert catalog.commits == ()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_writer_with_the_older_schema_publishes_after_the_table_moved_on(lake: Lake, version: int) -> None:
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "n", LongType(), required=False))
    table = lake.table(version=version, schema=schema)
    snapshot = frazil.begin_snapshot(table)
    rows = pa.table({"id": [1], "n": [2]})
    report = frazil.write_shard(snapshot, "a", [rows], io=table.io)
    frazil.merge_schema(table, pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.string())]))]))
    landed = frazil.publish_snapshot(table, snapshot, [report])
    table = lake.again(table)
    # The format's words: the id of the table's current schema when the snapshot was created.
    assert (table.snapshot_by_id(landed.snapshot_id).schema_id, snapshot.schema.schema_id) == (1, 0)
    assert read_with_pyiceberg(table).to_pylist() == [{"id": 1, "n": 2, "s": None}]
    assert read_with_duckdb(table).to_pylist() == [{"id": 1, "n": 2, "s": None}]


def test_a_lost_reply_is_recognised_and_the_changes_are_told(lake: Lake) -> None:
    table = lake.table()
    with FaultyCatalog(table.catalog) as catalog:
        catalog.lose_reply()
        merge = frazil.merge_schema(table, MORE)
    assert merge.changes == ("column 'more' (int) is added",)
    assert len(catalog.commits) == 1
    assert len(lake.again(table).schemas()) == 2


def test_a_merge_that_another_writer_overtakes_is_done_again_on_theirs(lake: Lake) -> None:
    table = lake.table()
    rival = other(lake, table)
    with FaultyCatalog(table.catalog) as catalog:
        catalog.overtake(
            lambda: frazil.merge_schema(rival, pa.schema([*rival.schema().as_arrow(), ("theirs", pa.int8())]))
        )
        merge = frazil.merge_schema(table, MORE)
    assert columns(lake.again(table)) == ["id", "text", "theirs", "more"]
    assert merge.schema == lake.again(table).schema()
    assert [field.field_id for field in merge.schema.fields] == [1, 2, 3, 4]


def test_a_merge_that_another_writer_has_just_made_changes_nothing(lake: Lake) -> None:
    table = lake.table()
    rival = other(lake, table)
    with FaultyCatalog(table.catalog) as catalog:
        catalog.overtake(lambda: frazil.merge_schema(rival, MORE))
        assert frazil.merge_schema(table, MORE).changes == ()
    assert columns(table) == ["id", "text", "more"]


def test_a_column_that_a_rival_made_of_another_type_is_a_misfit(lake: Lake) -> None:
    table = lake.table()
    rival = other(lake, table)
    with FaultyCatalog(table.catalog) as catalog, pytest.raises(SchemaMismatch, match="'more' is string in the table"):
        catalog.overtake(lambda: frazil.merge_schema(rival, MORE.set(2, pa.field("more", pa.string()))))
        frazil.merge_schema(table, MORE)


def test_what_does_not_fit_changes_nothing_and_names_the_table(lake: Lake) -> None:
    table = lake.table()
    source = pa.schema([("id", pa.string()), ("new", pa.int64())])
    with pytest.raises(SchemaMismatch, match=r"x\.csv cannot be merged into table db\.t: column 'id' is long"):
        frazil.merge_schema(table, source, "x.csv")
    assert columns(lake.again(table)) == ["id", "text"]


def test_a_catalog_that_never_answers_leaves_it_unknown_and_calling_again_mends_it(lake: Lake) -> None:
    table = lake.table(commit__retry__num_retries="2", commit__retry__max_wait_ms="1")
    with FaultyCatalog(table.catalog) as catalog:
        catalog.fail_before(times=9)
        with pytest.raises(OutcomeUnknown, match=r"merging a schema on table db\.t"):
            frazil.merge_schema(table, MORE)
    assert frazil.merge_schema(table, MORE).changes


def test_a_rival_at_every_try_is_a_conflict(lake: Lake) -> None:
    table = lake.table(commit__retry__num_retries="2", commit__retry__max_wait_ms="1")
    rival = other(lake, table)
    names = iter(range(99))

    def overtake() -> None:
        new = pa.field(f"n{next(names)}", pa.int8())
        frazil.merge_schema(rival, pa.schema([*rival.schema().as_arrow(), new]))

    with FaultyCatalog(table.catalog) as catalog, pytest.raises(CommitConflict, match="merging a schema"):
        catalog.overtake(overtake, times=9)
        frazil.merge_schema(table, MORE)


def test_a_table_that_was_dropped_and_made_anew_is_refused(lake: Lake) -> None:
    table = lake.table()
    lake.catalog.drop_table("db.t")
    lake.table()
    with pytest.raises(CommitRefused, match="dropped and created again"):
        frazil.merge_schema(table, MORE)


def test_the_name_mapping_keeps_step(lake: Lake) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "s", StructType(NestedField(3, "x", StringType())))
    )
    mapping = create_mapping_from_schema(schema).model_dump_json()
    table = lake.table(schema=schema, schema__name_mapping__default=mapping.replace('["x"]', '["x","old"]'))
    inner = pa.struct([("x", pa.string()), ("y", pa.list_(pa.int64()))])
    frazil.merge_schema(table, pa.schema([("id", pa.int64()), ("s", inner), ("t", pa.string())]))
    table = lake.again(table)
    kept = parse_mapping_from_json(table.properties["schema.name-mapping.default"])
    names = {name: field.field_id for name, field in kept._field_by_name.items()}
    fresh = create_mapping_from_schema(table.schema())._field_by_name
    assert names == {**{name: field.field_id for name, field in fresh.items()}, "s.old": 3}


def test_a_name_mapping_that_is_damaged_is_named(lake: Lake) -> None:
    table = lake.table(schema__name_mapping__default="[{]")
    with pytest.raises(BadInput, match=r"schema\.name-mapping\.default of table db\.t"):
        frazil.merge_schema(table, MORE)


def test_a_schema_that_the_table_had_before_is_taken_up_again(lake: Lake) -> None:
    table = lake.table()
    frazil.merge_schema(table, MORE)
    with table.update_schema() as update:
        update.delete_column("more")
    assert len(table.schemas()) == 2  # PyIceberg took up the first
    frazil.merge_schema(table, MORE)
    assert [field.field_id for field in lake.again(table).schema().fields] == [1, 2, 4]


NARROW = st.sampled_from([pa.int32(), pa.float32(), pa.decimal128(5, 2), pa.string(), pa.date32()])
WIDE = {pa.int32(): pa.int64(), pa.float32(): pa.float64(), pa.decimal128(5, 2): pa.decimal128(20, 2)}


def nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    structs = st.dictionaries(st.sampled_from("xyz"), kinds, min_size=1, max_size=3).map(pa.struct)
    return st.one_of(
        kinds, structs, kinds.map(pa.list_), structs.map(pa.list_), kinds.map(lambda k: pa.map_(pa.string(), k))
    )


SCHEMAS = st.dictionaries(st.sampled_from("abcd"), nested(NARROW), min_size=1, max_size=4).map(pa.schema)


@st.composite
def evolved(draw: st.DrawFn, schema: pa.Schema) -> pa.Schema:
    """A schema that the given one can be merged with: columns left out, widened, added, in another order."""
    kept = [field.with_type(draw(_widened(field.type))) for field in schema if draw(st.booleans())]
    new = draw(st.dictionaries(st.sampled_from("efgh"), nested(NARROW), min_size=1, max_size=2))
    return pa.schema(draw(st.permutations([*kept, *(pa.field(name, kind) for name, kind in new.items())])))


@st.composite
def _widened(draw: st.DrawFn, kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        fields = [field.with_type(draw(_widened(field.type))) for field in kind]
        return pa.struct([*fields, *([pa.field("w", draw(NARROW))] if draw(st.booleans()) else [])])
    if pa.types.is_list(kind):
        return pa.list_(draw(_widened(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, draw(_widened(kind.item_type)))
    return WIDE.get(kind, kind) if draw(st.booleans()) else kind


def some_rows(schema: pa.Schema, draw: st.DrawFn) -> pa.Table:
    return pa.Table.from_pylist([{field.name: draw(_value(field.type)) for field in schema} for _ in range(3)], schema)


def _value(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), _there(kind))


def _there(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: _value(field.type) for field in kind})
    if pa.types.is_list(kind):
        return st.lists(_value(kind.value_type), max_size=2)
    if pa.types.is_map(kind):
        return st.dictionaries(st.sampled_from("kl"), _value(kind.item_type), max_size=2).map(lambda d: list(d.items()))
    if pa.types.is_integer(kind):
        return st.integers(-(2**31), 2**31 - 1)
    if pa.types.is_floating(kind):
        return st.integers(-1000, 1000).map(float)
    if pa.types.is_decimal(kind):
        return st.decimals(-999, 999, places=2)
    return st.dates() if pa.types.is_date(kind) else st.text(max_size=3).filter(lambda text: "\0" not in text)


@settings(max_examples=25, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(st.data())
def test_merging_keeps_what_was_written_and_every_id_and_is_done_but_once(data: st.DataObject) -> None:
    first = data.draw(SCHEMAS, "first")
    second = data.draw(evolved(first), "second")
    with tempfile.TemporaryDirectory() as folder:
        table = embedded(Path(folder)).catalog.create_table("db.t", first)
        known = dict(table.schema()._lazy_id_to_name)
        write(table, some_rows(first, data.draw))
        before = seen(read_with_pyiceberg(table), first)
        assert seen(read_with_duckdb(table), first) == before
        frazil.merge_schema(table, second)
        assert frazil.merge_schema(table, second).changes == ()
        now = table.schema()._lazy_id_to_name
        assert known.items() <= now.items() and max(now) == table.metadata.last_column_id
        assert seen(read_with_pyiceberg(table), first) == seen(read_with_duckdb(table), first) == before
        write(table, some_rows(second, data.draw))
        both = table.schema().as_arrow()
        after = read_with_pyiceberg(table)
        assert after.num_rows == 6 and seen(after, both) == seen(read_with_duckdb(table), both)
        assert not before - seen(after, first)


def write(table: Table, rows: pa.Table) -> None:
    snapshot = frazil.begin_snapshot(table)
    frazil.publish_snapshot(table, snapshot, [frazil.write_shard(snapshot, "a", [rows], io=table.io)])


def seen(rows: pa.Table, schema: pa.Schema) -> Counter[str]:
    """The rows with the columns and fields of this schema alone.

    PyIceberg 0.12 reads a null list or map of structs as an empty one, merged or not; so the two are the same here.
    """
    whole = pa.struct(sorted(schema, key=lambda field: field.name))
    return Counter(repr(_seen(row, whole)) for row in rows.to_pylist())


def _seen(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_seen(each, kind.value_type) for each in value or []]
    if pa.types.is_map(kind):
        return [(key, _seen(each, kind.item_type)) for key, each in value or []]
    if pa.types.is_struct(kind) and value is not None:
        return {field.name: _seen(value[field.name], field.type) for field in kind}
    return value
