"""`frazil ingest` lands what it is given, in the table it is told, on any catalog; and says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import Frazil, big_parquet, parquet
from readers import count_with_duckdb, files_scanned_by_duckdb, read_with_duckdb, read_with_pyiceberg

if TYPE_CHECKING:
    from services.seaweedfs import SeaweedFS


def test_a_file_becomes_a_table_with_its_rows_for_every_reader(frazil: Frazil) -> None:
    source = parquet(frazil.home / "a.parquet")
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--json")
    assert (ran.code, ran.document["outcome"], ran.document["rows"]) == (0, "landed", 1000)
    assert ran.document["table_created"] is True
    table = frazil.table()
    assert table.current_snapshot().snapshot_id == ran.document["snapshot_id"]
    assert sorted(read_with_duckdb(table).to_pylist(), key=str) == sorted(pq.read_table(source).to_pylist(), key=str)
    assert read_with_pyiceberg(table).equals(read_with_duckdb(table))
    assert (frazil.orphans(), frazil.reserved()) == (set(), [])


def test_files_folders_and_globs_may_be_mixed_and_no_file_counts_twice(frazil: Frazil) -> None:
    parquet(frazil.home / "one.parquet", 10)
    parquet(frazil.home / "folder" / "deep" / "two.parquet", 20, first=10)
    parquet(frazil.home / "folder" / "_hidden" / "no.parquet", 5)
    parquet(frazil.home / "many" / "p1.parquet", 30, first=30)
    parquet(frazil.home / "many" / "p2.parquet", 40, first=60)
    sources = ["one.parquet", "folder", "many/p?.parquet", "many/../one.parquet"]
    ran = frazil.here("ingest", *sources, "db.t", "--root", frazil.root, "--json")
    assert (ran.code, ran.document["rows"]) == (0, 100)
    assert sorted(frazil.table().scan().to_arrow()["id"].to_pylist()) == list(range(100))


def test_a_second_append_keeps_the_first_and_both_snapshots_stay_readable(frazil: Frazil) -> None:
    first = frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root, "--json").document
    second = frazil.here(
        "ingest", parquet(frazil.home / "b.parquet", 500, first=1000), "db.t", "--root", frazil.root, "--json"
    ).document
    assert second["table_created"] is False
    table = frazil.table()
    assert count_with_duckdb(table) == 1500
    assert count_with_duckdb(table, snapshot_id=first["snapshot_id"]) == 1000


def test_overwrite_replaces_every_row(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    source = parquet(frazil.home / "b.parquet", 3)
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--mode", "overwrite")
    assert ran.code == 0
    assert (frazil.rows(), count_with_duckdb(frazil.table())) == (3, 3)


def test_partition_by_gives_the_table_its_spec_and_prunes_files(frazil: Frazil) -> None:
    source = parquet(frazil.home / "a.parquet", 24 * 10)
    terms = "day(ts), bucket(4, id), truncate(5, text)"
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--partition-by", terms)
    assert ran.code == 0, ran.err
    table = frazil.table()
    assert [str(field.transform) for field in table.spec().fields] == ["day", "bucket[4]", "truncate[5]"]
    one_day = "ts >= TIMESTAMP '2024-01-03' AND ts < TIMESTAMP '2024-01-04'"
    assert count_with_duckdb(table, one_day) == 24
    every = files_scanned_by_duckdb(table)
    assert 0 < files_scanned_by_duckdb(table, one_day) <= every / 5


def test_an_existing_table_takes_columns_in_any_order_and_nulls_for_missing_ones(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet", 10), "db.t", "--root", frazil.root)
    pq.write_table(pa.table({"text": ["later"], "id": pa.array([10], pa.int32())}), frazil.home / "b.parquet")
    assert frazil.here("ingest", "b.parquet", "db.t", "--root", frazil.root).code == 0
    rows = {row["id"]: row for row in read_with_duckdb(frazil.table()).to_pylist()}
    assert len(rows) == 11
    assert rows[10] == {"id": 10, "text": "later", "ts": None}


def test_partition_by_must_agree_with_an_existing_table(frazil: Frazil) -> None:
    source = parquet(frazil.home / "a.parquet")
    frazil.here("ingest", source, "db.t", "--root", frazil.root, "--partition-by", "day(ts)")
    assert frazil.here("ingest", source, "db.t", "--root", frazil.root, "--partition-by", "days(ts)").code == 0
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--partition-by", "month(ts)")
    assert ran.code == 2
    assert "partitioned by day(ts), not by month(ts)" in ran.err
    assert frazil.rows() == 2000


def test_a_branch_gets_the_rows_and_main_does_not(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    source = parquet(frazil.home / "b.parquet", 7, first=1000)
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--branch", "audit", "--json")
    assert (ran.code, ran.document["branch"]) == (0, "audit")
    table = frazil.table()
    assert frazil.rows() == 1000
    assert table.scan().use_ref("audit").to_arrow().num_rows == 1007
    assert frazil.orphans() == set()


def test_one_big_file_is_cut_by_row_group(frazil: Frazil) -> None:
    source = parquet(frazil.home / "a.parquet", 1000, group=100)
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--shard-size", "2000", "--json")
    assert ran.code == 0
    assert 4 <= ran.document["shards"] <= 10
    assert frazil.rows() == 1000


def test_many_small_files_are_packed_into_one_shard_per_core(frazil: Frazil) -> None:
    for number in range(30):
        parquet(frazil.home / "many" / f"{number:02d}.parquet", 10, first=10 * number)
    ran = frazil.here("ingest", "many", "db.t", "--root", frazil.root, "--json")
    assert (ran.document["shards"], ran.document["files"], ran.document["rows"]) == (2, 2, 300)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_table_has_the_format_version_asked_for(frazil: Frazil, version: int) -> None:
    source = parquet(frazil.home / "a.parquet", 100)
    options = ["--root", frazil.root, "--format-version", version]
    assert frazil.here("ingest", source, "db.t", *options).code == 0
    assert frazil.here("ingest", source, "db.t", *options).code == 0
    table = frazil.table()
    assert (table.metadata.format_version, count_with_duckdb(table)) == (version, 200)


def test_files_whose_columns_differ_make_one_table_that_holds_them_all(frazil: Frazil) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "a": ["x"]}), frazil.home / "1.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int64()), "b": [1.5]}), frazil.home / "2.parquet")
    assert frazil.here("ingest", "1.parquet", "2.parquet", "db.t", "--root", frazil.root).code == 0
    rows = sorted(read_with_duckdb(frazil.table()).to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 1, "a": "x", "b": None}, {"id": 2, "a": None, "b": 1.5}]


def test_sources_without_a_row_publish_nothing_and_say_so(frazil: Frazil) -> None:
    source = parquet(frazil.home / "a.parquet", 0)
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--json")
    assert (ran.code, ran.document["outcome"], ran.document["snapshot_id"]) == (0, "nothing to do", None)
    assert frazil.table().current_snapshot() is None
    assert (frazil.orphans(), frazil.reserved()) == (set(), [])
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root)
    assert "no rows, so there was nothing to publish" in ran.out


def test_an_overwrite_without_a_row_empties_the_table(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet", 5), "db.t", "--root", frazil.root)
    source = parquet(frazil.home / "b.parquet", 0)
    assert frazil.here("ingest", source, "db.t", "--root", frazil.root, "--mode", "overwrite").code == 0
    assert frazil.rows() == 0


def test_the_summary_goes_into_the_snapshot(frazil: Frazil) -> None:
    source = parquet(frazil.home / "a.parquet")
    ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--summary", "batch=7", "--json")
    summary = frazil.table().current_snapshot().summary
    assert (summary["batch"], summary["frazil.job"]) == ("7", ran.document["job_id"])


def test_merge_schema_makes_room_for_what_the_source_has(frazil: Frazil) -> None:
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "s": [{"x": 1}]}), frazil.home / "a.parquet")
    frazil.here("ingest", "a.parquet", "db.t", "--root", frazil.root)
    pq.write_table(pa.table({"id": [2**40], "s": [{"x": 2, "y": "new"}], "n": [1.5]}), frazil.home / "b.parquet")
    refused = frazil.here("ingest", "b.parquet", "db.t", "--root", frazil.root)
    assert refused.code == 2
    for words in (
        "'id' is int32 in the table and int64",
        "no field 'y' (string)",
        "no column 'n' (double)",
        "--merge-schema",
    ):
        assert words in " ".join(refused.err.split())
    ran = frazil.here("ingest", "b.parquet", "db.t", "--root", frazil.root, "--merge-schema")
    assert ran.code == 0, ran.err
    table = frazil.table()
    expected = [{"id": 1, "n": None, "s": {"x": 1, "y": None}}, {"id": 2**40, "n": 1.5, "s": {"x": 2, "y": "new"}}]
    assert read_with_duckdb(table).to_pylist() == read_with_pyiceberg(table).to_pylist() == expected
    assert frazil.orphans() == set()


def seaweedfs_environment(seaweedfs: SeaweedFS, name: str) -> dict[str, str]:
    """What a PyIceberg user sets for this catalog."""
    prefix = f"PYICEBERG_CATALOG__{name.upper()}__"
    properties = seaweedfs.catalog_properties()
    return {prefix + key.replace(".", "__").replace("-", "_").upper(): value for key, value in properties.items()}


@pytest.mark.slow
def test_object_stores_hold_the_source_and_the_warehouse_under_a_catalog_from_the_environment(
    frazil: Frazil, seaweedfs: SeaweedFS, seaweedfs_catalog: Any, seaweedfs_namespace: str
) -> None:
    folder = f"{seaweedfs.bucket}/{seaweedfs_namespace}"
    parquet(frazil.home / "a.parquet")
    for name in ("x1.parquet", "x2.parquet", "y.parquet"):
        with seaweedfs.filesystem().open_output_stream(f"{folder}/{name}") as stream:
            stream.write((frazil.home / "a.parquet").read_bytes())
    table = f"{seaweedfs_namespace}.t"
    ran = frazil.run(
        "ingest",
        f"s3://{folder}/x?.parquet",
        table,
        *("--catalog", "weed", "--partition-by", "day(ts)", "--json"),
        environment=seaweedfs_environment(seaweedfs, "weed"),
    )
    assert ran.code == 0, ran.err
    landed = seaweedfs_catalog.load_table(table)
    assert landed.location().startswith("s3://")
    assert count_with_duckdb(landed) == ran.document["rows"] == 2000
    assert "frazil-secret" not in "".join(path.read_text() for path in (frazil.state / "jobs").iterdir())


@pytest.mark.slow
def test_executors_in_processes_of_their_own_find_the_same_python_and_package(frazil: Frazil) -> None:
    source = big_parquet(frazil.home / "a.parquet", 200_000)
    ran = frazil.run("ingest", source, "db.t", "--root", frazil.root, "--master", "local-cluster[2,1,1024]", "--json")
    assert ran.code == 0, ran.err
    assert (ran.document["rows"], ran.document["shards"], frazil.rows()) == (200_000, 2, 200_000)
    assert frazil.orphans() == set()


def test_no_other_files_are_left_in_the_working_folder(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    assert sorted(os.listdir(frazil.home)) == ["a.parquet", "lake", "state"]  # noqa: PTH208  names alone are wanted
    assert list(Path(frazil.state / "logs").iterdir()) == []
