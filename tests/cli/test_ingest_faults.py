"""What goes wrong in `frazil ingest` is said in one sentence, with the right exit code, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil.spark.ingest as ingest_module
from commands import Frazil, Ran, parquet, said_once
from frazil.errors import OutcomeUnknown
from frazil.snapshot.publish_snapshot import publish_snapshot


def nothing_left(frazil: Frazil, *, table: bool = False) -> None:
    """No table but one that was there before, no file, no reservation."""
    if not frazil.root.exists():
        return
    assert frazil.catalog.table_exists("db.t") is table
    if table:
        assert (frazil.orphans(), frazil.reserved()) == (set(), [])
    else:
        assert frazil.stored() == set()


def damaged_page(path: Path) -> Path:
    """A Parquet file whose footer is whole, and whose second row group is not."""
    rows = pa.table({"id": pa.array(range(2000), pa.int64()), "text": [f"{n * n} text" for n in range(2000)]})
    pq.write_table(rows, path, row_group_size=1000, compression="zstd", use_dictionary=False)
    column = pq.read_metadata(path).row_group(1).column(1)
    data = bytearray(path.read_bytes())
    start = column.data_page_offset + column.total_compressed_size // 2
    data[start : start + 200] = bytes(200)
    path.write_bytes(data)
    return path


def truncated(path: Path) -> Path:
    data = parquet(path).read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return path


def not_parquet(path: Path) -> Path:
    path.write_text("id,text\n1,one\n")
    return path


def empty(path: Path) -> Path:
    path.touch()
    return path


def of_durations(path: Path) -> Path:
    pq.write_table(pa.table({"lasted": pa.array([1], pa.duration("us"))}), path)
    return path


BAD_INPUT: dict[str, tuple[Callable[[Path], Path], list[str], int, str]] = {
    "a missing file": (lambda path: path, [], 2, "x.parquet does not exist"),
    "a glob of nothing": (lambda path: path.with_name("x*.parquet"), [], 2, "names no file"),
    "an unknown kind of storage": (lambda _: Path("ftp://host/x.parquet"), [], 2, "kind of storage"),
    "a truncated file": (truncated, [], 1, "x.parquet is not a readable Parquet file"),
    "a file of another format": (not_parquet, [], 1, "x.parquet is not a readable Parquet file"),
    "an empty file": (empty, [], 1, "x.parquet is not a readable Parquet file"),
    "a damaged page": (damaged_page, [], 1, "x.parquet"),
    "an unknown partition column": (parquet, ["--partition-by", "day(when)"], 2, "'when'"),
    "an unfit partition column": (parquet, ["--partition-by", "day(text)"], 2, "text is of type string"),
    "an unknown transform": (parquet, ["--partition-by", "week(ts)"], 2, "not a partition transform"),
    "a branch of a table to be made": (parquet, ["--branch", "audit"], 2, "begins with branch main"),
    "a summary that is no pair": (parquet, ["--summary", "batch"], 2, "KEY=VALUE"),
    "a summary key that Iceberg owns": (parquet, ["--summary", "operation=delete"], 2, "operation"),
    "not a Spark master": (parquet, ["--master", "bogus"], 2, "'bogus' is not a Spark master"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_told_in_one_sentence_and_leaves_nothing(
    frazil: Frazil, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, options, code, words = BAD_INPUT[case]
    source = str(make(frazil.home / "x.parquet")).replace(":/h", "://h")
    if case == "not a Spark master":
        ran = frazil.run("ingest", source, "db.t", "--root", frazil.root, "--json", *options)
    else:
        ran = frazil.here("ingest", source, "db.t", "--root", frazil.root, "--json", *options)
    assert (ran.code, ran.document["outcome"]) == (code, "not landed"), ran.err
    assert words in said_once(ran)
    nothing_left(frazil)


@pytest.mark.parametrize("name", ["t", "db.", ".t", ""])
def test_a_bad_table_name_is_refused(frazil: Frazil, name: str) -> None:
    ran = frazil.here("ingest", parquet(frazil.home / "x.parquet"), name, "--root", frazil.root, "--json")
    assert ran.code == 2
    assert "namespace.table" in said_once(ran)
    assert frazil.stored() == set()


def test_a_type_that_no_table_can_hold_is_named_with_its_column(frazil: Frazil) -> None:
    ran = frazil.here("ingest", of_durations(frazil.home / "x.parquet"), "db.t", "--root", frazil.root, "--json")
    assert ran.code == 2, ran.err
    assert "'lasted'" in said_once(ran)
    assert "duration[us]" in ran.err
    nothing_left(frazil)


def test_a_schema_that_does_not_fit_is_named_by_column_and_types(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    for columns, words in (
        ({"id": ["one"]}, ["'id'", "int64", "string"]),
        ({"id": [1], "extra": [2.5]}, ["'extra'", "double"]),
    ):
        pq.write_table(pa.table(columns), frazil.home / "x.parquet")
        ran = frazil.here("ingest", "x.parquet", "db.t", "--root", frazil.root, "--json")
        assert ran.code == 2
        message = said_once(ran)
        assert all(word in message for word in [*words, "x.parquet", "db.t"]), message
    nothing_left(frazil, table=True)
    assert frazil.rows() == 1000


def test_a_required_column_without_a_value_is_refused_after_the_rows_before_it_are_taken_back(frazil: Frazil) -> None:
    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"id": [1]}, schema=required), frazil.home / "a.parquet")
    frazil.here("ingest", "a.parquet", "db.t", "--root", frazil.root)
    pq.write_table(pa.table({"id": [*range(5000), None]}), frazil.home / "x.parquet", row_group_size=1000)
    ran = frazil.here("ingest", "x.parquet", "db.t", "--root", frazil.root, "--json")
    assert ran.code == 2
    assert "'id' is required" in said_once(ran)
    nothing_left(frazil, table=True)


def test_sources_that_clash_are_named_with_column_types_and_files(frazil: Frazil) -> None:
    pq.write_table(pa.table({"id": [1]}), frazil.home / "1.parquet")
    pq.write_table(pa.table({"id": ["one"]}), frazil.home / "2.parquet")
    ran = frazil.here("ingest", "1.parquet", "2.parquet", "db.t", "--root", frazil.root, "--json")
    assert ran.code == 2
    message = said_once(ran)
    assert all(word in message for word in ("'id'", "int64", "string", "1.parquet", "2.parquet")), message
    nothing_left(frazil)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["only.parquet"], "at least one SOURCE and a TABLE"),
        (["a", "db.t", "--root", "r", "--catalog", "c"], "--root or --catalog, not both"),
        (["a", "db.t", "--root", "s3://bucket/lake"], "not a local folder"),
        (["a", "db.t", "--catalog", "nowhere"], "PYICEBERG_CATALOG__"),
        (["--resume", "20240101-000000-abcdef"], "there is no job '20240101-000000-abcdef'"),
        (["--resume", "../other"], "not a job's name"),
        (["--resume", "j", "a", "--mode", "overwrite", "--root", "r"], "leave out a, --mode, --root"),
    ],
)
def test_usage_errors_are_told_in_one_sentence(frazil: Frazil, arguments: list[str], words: str) -> None:
    ran = frazil.here("ingest", *arguments, "--json")
    assert ran.code == 2
    assert words in said_once(ran)
    assert not frazil.root.exists()


def test_an_unknown_option_is_a_usage_error(frazil: Frazil) -> None:
    assert frazil.here("ingest", "a", "db.t", "--modus", "append").code == 2
    assert frazil.here("ingest", "a", "db.t", "--mode", "upsert").code == 2


def test_a_lake_that_is_a_file_is_refused(frazil: Frazil) -> None:
    frazil.root.write_text("")
    ran = frazil.here("ingest", parquet(frazil.home / "x.parquet"), "db.t", "--root", frazil.root, "--json")
    assert ran.code == 1
    assert "cannot be written" in said_once(ran)
    assert frazil.root.read_text() == ""


def test_a_state_folder_that_cannot_be_written_is_refused_before_anything_is_made(frazil: Frazil) -> None:
    frazil.state.write_text("")
    ran = frazil.here("ingest", parquet(frazil.home / "x.parquet"), "db.t", "--root", frazil.root, "--json")
    assert ran.code == 1
    assert "FRAZIL_STATE" in said_once(ran)
    assert not frazil.root.exists()


def test_jobs_that_cannot_be_kept_leave_nothing_behind(frazil: Frazil) -> None:
    frazil.state.mkdir()
    (frazil.state / "jobs").write_text("")
    ran = frazil.here("ingest", parquet(frazil.home / "x.parquet"), "db.t", "--root", frazil.root, "--json")
    assert ran.code == 1
    assert "FRAZIL_STATE" in said_once(ran)
    nothing_left(frazil)


def as_someone_bound_by_permissions() -> list[str]:
    """What to put before a command: root is not stopped by file modes unless it gives that right up."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("running as root, and there is no setpriv to give up its rights with")
    return [setpriv, "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]


@pytest.mark.slow
def test_a_read_only_warehouse_is_told_in_one_sentence(frazil: Frazil) -> None:
    """Read-only as a whole, and read-only where a new table would put its files."""
    before = as_someone_bound_by_permissions()
    source = parquet(frazil.home / "x.parquet")
    frazil.here("ingest", source, "db.t", "--root", frazil.root)
    stored = frazil.stored()

    def run(home: str, table: str) -> Ran:
        return frazil.apart(home).run("ingest", source, table, "--root", frazil.root, "--json", before=before)

    try:
        _read_only(frazil.root, True)
        everything = run("1", "db.t")
        _read_only(frazil.root, False)
        _read_only(frazil.root / "warehouse", True)
        new = run("2", "db.new")
    finally:
        _read_only(frazil.root, False)
    for ran in (everything, new):
        assert (ran.code, ran.document["outcome"]) == (1, "not landed"), ran
        assert "Permission denied" in said_once(ran)
    assert frazil.stored() == stored
    assert (frazil.rows(), frazil.reserved(), frazil.catalog.table_exists("db.new")) == (1000, [], False)


@pytest.mark.slow
def test_a_read_only_warehouse_of_a_known_table_is_told_in_one_sentence(frazil: Frazil) -> None:
    before = as_someone_bound_by_permissions()
    source = parquet(frazil.home / "x.parquet")
    frazil.here("ingest", source, "db.t", "--root", frazil.root)
    stored = frazil.stored()
    try:
        _read_only(frazil.root / "warehouse", True)
        ran = frazil.run("ingest", source, "db.t", "--root", frazil.root, "--json", before=before)
    finally:
        _read_only(frazil.root, False)
    assert (ran.code, ran.document["outcome"]) == (1, "not landed"), ran
    assert "Permission denied" in said_once(ran)
    assert frazil.stored() == stored
    assert (frazil.rows(), frazil.reserved()) == (1000, [])


def _read_only(folder: Path, on: bool) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o555 if on else 0o755) if path.is_dir() else (0o444 if on else 0o644))


def test_java_that_is_missing_is_told_with_the_fix(frazil: Frazil) -> None:
    source = parquet(frazil.home / "x.parquet")
    options = ["ingest", source, "db.t", "--root", frazil.root, "--json"]
    wrong = frazil.run(*options, environment={"JAVA_HOME": str(frazil.home)})
    assert wrong.code == 2
    assert "point it at a Java 17 or newer, or unset it" in said_once(wrong)
    none = frazil.run(*options, environment={"PATH": str(frazil.home), "JAVA_HOME": ""})
    assert none.code == 2
    assert "apt-get install openjdk-17-jre-headless" in said_once(none)
    nothing_left(frazil)


def test_java_that_does_not_start_is_told_with_where_its_own_words_are(frazil: Frazil) -> None:
    java = frazil.home / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'class file version 61.0' >&2\nexit 1\n")
    java.chmod(0o755)
    source = parquet(frazil.home / "x.parquet")
    environment = {"JAVA_HOME": str(java.parent.parent)}
    ran = frazil.run("ingest", source, "db.t", "--root", frazil.root, "--json", environment=environment)
    assert ran.code == 2
    assert "Spark does not start" in ran.document["message"]
    (log,) = (frazil.state / "logs").iterdir()
    assert str(log) in ran.document["notes"][0]
    assert "class file version 61.0" in log.read_text()
    nothing_left(frazil)


def another_writer_first(frazil: Frazil, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's rows land between the end of the writing and the first try to publish, once."""
    rows = pa.table({"id": pa.array([-1], pa.int64())})

    def publish(table: Any, *arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(ingest_module, "publish_snapshot", publish_snapshot)
        frazil.table().append(rows)
        return publish_snapshot(table, *arguments, **options)

    monkeypatch.setattr(ingest_module, "publish_snapshot", publish)


def test_an_append_rebases_onto_what_another_writer_published(frazil: Frazil, monkeypatch: pytest.MonkeyPatch) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    another_writer_first(frazil, monkeypatch)
    assert frazil.here("ingest", "a.parquet", "db.t", "--root", frazil.root).code == 0
    assert frazil.rows() == 2001


def test_a_conflict_ends_with_3_and_resume_publishes_what_was_written(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    another_writer_first(frazil, monkeypatch)
    ran = frazil.here("ingest", "a.parquet", "db.t", "--root", frazil.root, "--conflict", "abort", "--json")
    assert (ran.code, ran.document["outcome"], frazil.rows()) == (3, "not landed", 1001)
    assert f"frazil ingest --resume {frazil.job()}" in said_once(ran)
    resumed = frazil.here("ingest", "--resume", frazil.job(), "--json")
    assert (resumed.code, resumed.document["rows"], resumed.document["shards_done_before"]) == (0, 1000, 2)
    assert (frazil.rows(), frazil.orphans(), frazil.reserved()) == (2001, set(), [])


def test_an_overwrite_that_conflicts_ends_with_3_and_leaves_nothing(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    another_writer_first(frazil, monkeypatch)
    ran = frazil.here("ingest", "a.parquet", "db.t", "--root", frazil.root, "--mode", "overwrite", "--json")
    assert (ran.code, frazil.rows(), frazil.orphans(), frazil.reserved()) == (3, 1001, set(), [])
    again = frazil.here("ingest", "--resume", frazil.job(), "--json")
    assert again.code == 2
    assert "is over" in said_once(again)


@pytest.mark.parametrize("error", [OutcomeUnknown("the catalog hung up"), RuntimeError("out of the blue")])
def test_an_unknown_outcome_ends_with_4_deletes_nothing_and_can_be_resumed(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def publish(*_: Any, **__: Any) -> Any:
        monkeypatch.setattr(ingest_module, "publish_snapshot", publish_snapshot)
        raise error

    monkeypatch.setattr(ingest_module, "publish_snapshot", publish)
    ran = frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root, "--json")
    assert (ran.code, ran.document["outcome"]) == (4, "unknown")
    assert f"frazil ingest --resume {frazil.job()}" in said_once(ran)
    assert len([path for path in frazil.stored() if path.endswith(".parquet")]) == 2
    assert frazil.here("ingest", "--resume", frazil.job()).code == 0
    assert (frazil.rows(), frazil.orphans(), frazil.reserved()) == (1000, set(), [])


def test_a_failure_after_the_snapshot_landed_is_a_note_and_not_a_failure(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    another_writer_first(frazil, monkeypatch)
    frazil.here("ingest", "a.parquet", "db.t", "--root", frazil.root, "--conflict", "abort")

    def failing(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(ingest_module, "sweep", failing)
    ran = frazil.here("ingest", "--resume", frazil.job(), "--json")  # a resumed job sweeps when it has landed
    assert (ran.code, ran.document["outcome"]) == (0, "landed")
    assert "the disk is on fire" in ran.document["notes"][0]
    assert "frazil sweep db.t --commit" in ran.document["notes"][0]


def test_what_fails_while_cleaning_up_does_not_hide_why_the_run_failed(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(ingest_module, "sweep", failing)
    ran = frazil.here("ingest", damaged_page(frazil.home / "x.parquet"), "db.t", "--root", frazil.root, "--json")
    assert (ran.code, ran.document["error"]) == (1, "SourceUnreadable")
    assert "the disk is on fire" in ran.document["notes"][0]


def test_an_error_nobody_foresaw_is_one_line_with_its_story_in_the_log(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any) -> Any:
        raise LookupError("out of the blue")

    monkeypatch.setattr(ingest_module, "open_catalog", failing)
    ran = frazil.here("ingest", parquet(frazil.home / "x.parquet"), "db.t", "--root", frazil.root, "--json")
    assert ran.code == 1
    assert "LookupError: out of the blue" in said_once(ran)
    (log,) = (frazil.state / "logs").iterdir()
    assert "Traceback" in log.read_text()


@pytest.fixture
def declared(frazil: Frazil, monkeypatch: pytest.MonkeyPatch) -> Frazil:
    """A job that was on disk when its run broke off, with a table of its own and nothing written."""

    def broken_off(name: str) -> None:
        if name == "job:declared":
            raise OutcomeUnknown("as if killed")

    monkeypatch.setattr(ingest_module, "step", broken_off)
    frazil.here("ingest", parquet(frazil.home / "x.parquet"), "db.t", "--root", frazil.root)
    monkeypatch.undo()
    assert len(frazil.reserved()) == 1
    return frazil


def test_a_job_that_broke_off_is_resumed_with_what_may_be_given_anew(declared: Frazil) -> None:
    ran = declared.here("ingest", "--resume", declared.job(), "--master", "local[1]", "--spark-conf", "a=b", "--json")
    assert (ran.code, ran.document["rows"], ran.document["table_created"]) == (0, 1000, True)
    assert (declared.rows(), declared.orphans(), declared.reserved()) == (1000, set(), [])


def test_a_resume_whose_source_changed_is_refused_and_cleaned_up(declared: Frazil) -> None:
    parquet(declared.home / "x.parquet", 500)
    ran = declared.here("ingest", "--resume", declared.job(), "--json")
    assert ran.code == 1
    assert "x.parquet changed (or vanished) after this job was planned" in said_once(ran)
    nothing_left(declared)
    assert "is over (failed" in declared.here("ingest", "--resume", declared.job()).err


def test_a_resume_whose_reservation_was_swept_is_refused(declared: Frazil) -> None:
    (commit,) = declared.reserved()
    declared.here("sweep", "db.t", "--root", declared.root, "--commit", commit, "--force")
    ran = declared.here("ingest", "--resume", declared.job(), "--json")
    assert (ran.code, ran.document["error"]) == (1, "ReservationCancelled")
    assert "no longer reserved" in said_once(ran)


def test_a_resume_whose_table_is_gone_is_refused(declared: Frazil) -> None:
    declared.catalog.drop_table("db.t")
    ran = declared.here("ingest", "--resume", declared.job(), "--json")
    assert ran.code == 1
    assert "is not there any more" in said_once(ran)
