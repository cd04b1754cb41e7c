"""`frazil register` lists files where they lie, for every reader, and never touches them."""

from __future__ import annotations

import signal
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import Frazil, parquet, said_once
from readers import read_with_duckdb, read_with_pyiceberg

NAME_MAPPING = "schema.name-mapping.default"


def files(frazil: Frazil, count: int = 3, *, folder: str = "in") -> Path:
    for number in range(count):
        parquet(frazil.home / folder / f"{number}.parquet", 10, first=10 * number)
    return frazil.home / folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.parquet")}


def rows_of(table: pa.Table) -> list[Any]:
    return sorted(table.to_pylist(), key=str)


def register(frazil: Frazil, *arguments: str | Path) -> Any:
    return frazil.here("register", *arguments, "--root", frazil.root, "--json")


def test_files_join_a_new_table_where_they_lie_and_every_reader_sees_their_rows(frazil: Frazil) -> None:
    folder = files(frazil)
    before = contents(folder)
    ran = register(frazil, folder, "db.t")
    assert (ran.code, ran.document["outcome"], ran.document["rows"], ran.document["files"]) == (0, "landed", 30, 3)
    table = frazil.table()
    expected = rows_of(pq.read_table(folder))
    assert rows_of(read_with_pyiceberg(table)) == expected
    assert rows_of(read_with_duckdb(table)) == expected
    assert contents(folder) == before
    assert {task.file.file_path for task in table.scan().plan_files()} == {f"file://{path}" for path in before}
    assert NAME_MAPPING in table.properties
    assert frazil.reserved() == []


def test_statistics_are_those_that_a_writer_of_our_own_keeps(frazil: Frazil) -> None:
    path = frazil.home / "a.parquet"
    rows = pa.table({"id": [1, 2, None], "text": ["x" * 40, "y" * 40, None], "part": [1.5, 2.5, float("nan")]})
    pq.write_table(rows, path)
    assert register(frazil, path, "db.registered").code == 0
    assert frazil.here("ingest", path, "db.written", "--root", frazil.root).code == 0
    registered, written = (
        next(iter(frazil.table(name).scan().plan_files())).file for name in ("db.registered", "db.written")
    )
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds", "record_count"):
        assert getattr(registered, name) == getattr(written, name), name
    assert registered.file_size_in_bytes == path.stat().st_size
    assert registered.split_offsets == [4]


def test_files_that_are_there_are_refused_with_their_number_or_skipped(frazil: Frazil) -> None:
    folder = files(frazil, 2)
    assert register(frazil, folder, "db.t").code == 0
    parquet(folder / "2.parquet", 10, first=20)
    refused = register(frazil, folder, "db.t")
    assert refused.code == 2
    assert f"{folder}/0.parquet and 1 more of these files are in table db.t already" in said_once(refused)
    skipped = register(frazil, folder, "db.t", "--skip-existing")
    assert (skipped.code, skipped.document["files"]) == (0, 1)
    assert sorted(frazil.table().scan().to_arrow()["id"].to_pylist()) == list(range(30))
    again = register(frazil, folder, "db.t", "--skip-existing")
    assert (again.code, again.document["outcome"]) == (0, "nothing to do")


def test_a_path_given_twice_counts_once(frazil: Frazil) -> None:
    folder = files(frazil, 2)
    ran = register(frazil, folder, folder / "0.parquet", f"file://{folder}/1.parquet", "db.t")
    assert (ran.code, ran.document["files"], frazil.rows()) == (0, 2, 20)


def test_partitions_are_inferred_from_equal_statistics_and_transformed(frazil: Frazil) -> None:
    for number, day in enumerate(("2024-01-05", "2024-02-07")):
        rows = {
            "id": [number] * 4,
            "region": ["north", "south"][number : number + 1] * 4,
            "day": [date.fromisoformat(day)] * 4,
        }
        (frazil.home / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table(rows), frazil.home / "in" / f"{number}.parquet")
    ran = register(frazil, "in", "db.t", "--partition-by", "region, month(day), bucket(4, id)")
    assert ran.code == 0, ran.err
    table = frazil.table()
    partitions = {tuple(task.file.partition[at] for at in range(2)) for task in table.scan().plan_files()}
    assert partitions == {("north", 54 * 12), ("south", 54 * 12 + 1)}
    assert table.scan("region = 'south'").to_arrow()["id"].to_pylist() == [1] * 4
    assert rows_of(read_with_duckdb(table)) == rows_of(pq.read_table(frazil.home / "in"))


def test_a_partition_that_a_file_does_not_have_names_the_file_and_the_column(frazil: Frazil) -> None:
    folder = files(frazil, 1)
    ran = register(frazil, folder, "db.t", "--partition-by", "id")
    message = said_once(ran)
    assert ran.code == 2
    assert f"{folder}/0.parquet" in message
    assert "'id'" in message
    assert not frazil.catalog.table_exists("db.t")
    assert len(contents(folder)) == 1


def test_a_column_that_only_the_folders_have_is_read_from_them(frazil: Frazil) -> None:
    for region in ("north", "south"):
        parquet(frazil.home / "in" / f"region={region}" / "a.parquet", 5)
    ran = register(frazil, "in", "db.t", "--partition-by", "region")
    assert ran.code == 0, ran.err
    table = frazil.table()
    assert sorted(table.scan().to_arrow()["region"].to_pylist()) == ["north"] * 5 + ["south"] * 5
    assert table.scan("region = 'south'").to_arrow().num_rows == 5
    assert rows_of(read_with_duckdb(table)) == rows_of(read_with_pyiceberg(table))


def test_a_folder_that_its_statistics_contradict_is_refused(frazil: Frazil) -> None:
    path = frazil.home / "in" / "region=north" / "a.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"region": ["south"]}), path)
    ran = register(frazil, "in", "db.t", "--partition-by", "region")
    assert ran.code == 2
    assert "lies under region=north, but its statistics show another value" in said_once(ran)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": pa.array([1], pa.int64()), "more": pa.array([1])}, "the table has no column 'more'"),
        ({"id": pa.array(["1"])}, "column 'id' is string in the file and long in the table"),
        (
            {"ts": pa.array([1], pa.timestamp("ns"))},
            "column 'ts' is timestamp[ns] in the file and timestamp in the table",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_its_column_and_nothing_is_deleted(
    frazil: Frazil, columns: dict[str, pa.Array], reason: str
) -> None:
    folder = files(frazil, 2)
    assert register(frazil, folder, "db.t").code == 0
    other = files(frazil, 2, folder="other")
    pq.write_table(pa.table(columns), other / "z.parquet")
    before = contents(frazil.home)
    ran = register(frazil, other, "db.t")
    assert ran.code == 2
    assert f"{other}/z.parquet" in said_once(ran)
    assert reason in said_once(ran)
    assert contents(frazil.home) == before
    assert (frazil.rows(), frazil.orphans() - set(before), frazil.reserved()) == (20, set(), [])


def test_narrower_columns_and_missing_ones_are_read_as_the_table_has_them(frazil: Frazil) -> None:
    assert register(frazil, files(frazil, 1), "db.t").code == 0
    pq.write_table(pa.table({"id": pa.array([77], pa.int32())}), frazil.home / "narrow.parquet")
    assert register(frazil, "narrow.parquet", "db.t").code == 0
    for read in (read_with_duckdb, read_with_pyiceberg):
        assert {"id": 77, "text": None, "ts": None} in read(frazil.table()).to_pylist()


def test_a_file_cut_short_is_named(frazil: Frazil) -> None:
    folder = files(frazil, 2)
    (folder / "1.parquet").write_bytes((folder / "1.parquet").read_bytes()[:-20])
    ran = register(frazil, folder, "db.t")
    assert ran.code == 1
    assert f"{folder}/1.parquet does not end as a Parquet file does" in said_once(ran)


def test_a_killed_run_is_taken_up_and_lists_every_file_once(frazil: Frazil) -> None:
    folder = files(frazil)
    before = contents(folder)
    killed = frazil.run(
        "register", folder, "db.t", "--root", frazil.root, environment={"FRAZIL_CRASH_AT": "job:report-stored"}
    )
    assert killed.code == -signal.SIGKILL
    assert contents(folder) == before
    ran = frazil.here("ingest", "--resume", frazil.job(), "--json")
    assert (ran.code, ran.document["files"]) == (0, 3)
    assert sorted(frazil.table().scan().to_arrow()["id"].to_pylist()) == list(range(30))
    assert contents(folder) == before


def test_a_sweep_of_a_dead_job_leaves_files_in_the_table_s_own_folder(frazil: Frazil) -> None:
    assert register(frazil, files(frazil, 1), "db.t").code == 0
    data = frazil.root / "warehouse" / "db" / "t" / "data"
    parquet(data / "mine.parquet", 10, first=100)
    killed = frazil.run(
        "register", data, "db.t", "--root", frazil.root, environment={"FRAZIL_CRASH_AT": "job:report-stored"}
    )
    assert killed.code == -signal.SIGKILL
    (commit,) = frazil.reserved()
    assert frazil.here("sweep", "db.t", "--root", frazil.root, "--commit", commit, "--force").code == 0
    assert (data / "mine.parquet").exists()
    assert frazil.reserved() == []


def test_another_writer_s_same_file_is_seen_before_the_commit(frazil: Frazil) -> None:
    folder = files(frazil, 2)
    killed = frazil.run(
        "register", folder, "db.t", "--root", frazil.root, environment={"FRAZIL_CRASH_AT": "job:report-stored"}
    )
    assert killed.code == -signal.SIGKILL
    job = frazil.job()
    assert register(frazil, folder / "1.parquet", "db.t").code == 0
    refused = frazil.here("ingest", "--resume", job, "--json")
    assert refused.code == 2
    assert f"{folder}/1.parquet is in table db.t already" in said_once(refused)
    assert (frazil.rows(), frazil.reserved()) == (10, [])
    assert len(contents(folder)) == 2


def test_what_another_writer_publishes_meanwhile_is_kept(frazil: Frazil) -> None:
    folder = files(frazil, 2)
    killed = frazil.run(
        "register", folder, "db.t", "--root", frazil.root, environment={"FRAZIL_CRASH_AT": "job:report-stored"}
    )
    assert killed.code == -signal.SIGKILL
    job = frazil.job()
    source = parquet(frazil.home / "more.parquet", 5, first=100)
    assert frazil.here("ingest", source, "db.t", "--root", frazil.root).code == 0
    assert frazil.here("ingest", "--resume", job).code == 0
    assert sorted(frazil.table().scan().to_arrow()["id"].to_pylist()) == [*range(20), *range(100, 105)]


def test_an_abort_upon_a_conflict_leaves_the_files(frazil: Frazil) -> None:
    folder = files(frazil, 2)
    killed = frazil.run(
        "register",
        folder,
        "db.t",
        "--root",
        frazil.root,
        "--conflict",
        "abort",
        environment={"FRAZIL_CRASH_AT": "job:report-stored"},
    )
    assert killed.code == -signal.SIGKILL
    job = frazil.job()
    source = parquet(frazil.home / "more.parquet", 5, first=100)
    assert frazil.here("ingest", source, "db.t", "--root", frazil.root).code == 0
    assert frazil.here("ingest", "--resume", job).code == 3
    assert (frazil.rows(), len(contents(folder))) == (5, 2)
    assert frazil.here("ingest", "--resume", job).code == 0
    assert frazil.rows() == 25
