"""The table of a run is looked at before anything is written, and one that comes to nothing is taken back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import BadInput, OutcomeUnknown, SchemaMismatch, UnknownColumn
from frazil.settings import CatalogSettings, IngestSettings
from frazil.sources.parquet import ParquetSource
from frazil.spark.target import Target
from lakes import Lake, append


def target(lake: Lake, tmp_path: Path, table: str = "db.new", **options: object) -> Target:
    path = tmp_path / "a.parquet"
    if not path.exists():
        pq.write_table(pa.table({"id": [1], "text": ["a"]}), path)
    settings = IngestSettings((str(path),), table, CatalogSettings(root="unused"), **options)  # type: ignore[arg-type]
    return Target(lake.catalog, settings, ParquetSource(settings.sources, {}))


def test_nothing_is_made_until_the_table_is_asked_for(lake: Lake, tmp_path: Path) -> None:
    wanted = target(lake, tmp_path, partition_by="bucket(4, id)")
    assert wanted.is_partitioned
    assert not lake.catalog.table_exists("db.new")
    with wanted.table() as table:
        assert wanted.created
        assert [str(field.transform) for field in table.spec().fields] == ["bucket[4]"]
    assert lake.catalog.table_exists("db.new")


def test_a_table_that_this_run_made_goes_when_the_run_fails(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch), target(lake, tmp_path).table() as table:
        raise SchemaMismatch("no")
    assert not lake.catalog.table_exists("db.new")
    assert lake.files(table) == set()


def test_a_table_that_was_there_stays_when_the_run_fails(lake: Lake, tmp_path: Path) -> None:
    append(lake.table(), 1)
    with pytest.raises(SchemaMismatch), target(lake, tmp_path, "db.t").table():
        raise SchemaMismatch("no")
    assert lake.catalog.table_exists("db.t")


@pytest.mark.parametrize("used", ["rows", "reservation"])
def test_a_table_that_others_have_begun_to_use_stays(lake: Lake, tmp_path: Path, used: str) -> None:
    with pytest.raises(SchemaMismatch), target(lake, tmp_path).table() as table:
        if used == "rows":
            append(lake.again(table), 1)
        else:
            frazil.begin_snapshot(lake.again(table))
        raise SchemaMismatch("no")
    assert lake.catalog.table_exists("db.new")


def test_a_table_stays_while_its_outcome_is_unknown(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(OutcomeUnknown), target(lake, tmp_path).table():
        raise OutcomeUnknown("who knows")
    assert lake.catalog.table_exists("db.new")


@pytest.mark.parametrize(
    ("options", "error"),
    [({"branch": "audit"}, BadInput), ({"partition_by": "day(when)"}, UnknownColumn), ({"partition_by": ""}, None)],
)
def test_what_does_not_fit_a_new_table_is_refused_before_it_is_made(
    lake: Lake, tmp_path: Path, options: dict[str, str], error: type[Exception] | None
) -> None:
    if error is None:
        assert not target(lake, tmp_path, **options).is_partitioned
        return
    with pytest.raises(error):
        target(lake, tmp_path, **options)


def test_a_source_that_does_not_fit_an_existing_table_is_refused(lake: Lake, tmp_path: Path) -> None:
    lake.table()
    pq.write_table(pa.table({"id": ["one"]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaMismatch, match=r"the source does not fit table db\.t: .*a\.parquet: column 'id'"):
        target(lake, tmp_path, "db.t")
