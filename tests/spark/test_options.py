"""Options are parsed once, whatever their case; what is not known or does not go together is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.errors import BadInput
from frazil.snapshot.overwrite_scope import MatchingRows, TouchedPartitions, WholeTable
from frazil.spark.options import ReadOptions, WriteOptions


def write(replace: bool = False, **options: str) -> WriteOptions:
    given = {"path": "db.t", "root": "/lake", **{key.replace("_", "-"): value for key, value in options.items()}}
    return WriteOptions.parse(given, overwrite=replace)


def read(**options: str) -> ReadOptions:
    return ReadOptions.parse({"path": "db.t", "root": "/lake", **{k.replace("_", "-"): v for k, v in options.items()}})


def test_options_have_the_names_of_the_command_in_any_case() -> None:
    parsed = WriteOptions.parse(
        {"PATH": "db.t", "Root": "/lake", "Partition-By": "day(ts)", "summary.by": "me"}, overwrite=False
    )
    assert (parsed.table, parsed.catalog.root, parsed.partition_by) == ("db.t", "/lake", "day(ts)")
    assert parsed.summary == {"by": "me"} and parsed.branch == "main" and parsed.scope is None


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        (None, WholeTable()),
        ("table", WholeTable()),
        ("partitions", TouchedPartitions()),
        ("a = 1", MatchingRows("a = 1")),
    ],
)
def test_an_overwrite_is_of_the_table_its_partitions_or_what_a_filter_takes(text: str | None, scope: Any) -> None:
    assert write(replace=True, **({} if text is None else {"overwrite": text})).scope == scope


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"parttion_by": "x"},
            r"no option 'parttion-by' is known where a table is written; the known ones are .*partition-by",
        ),
        ({"snapshot_id": "1"}, "no option 'snapshot-id' is known where a table is written"),
        ({"overwrite": "partitions"}, r'needs .mode\("overwrite"\)'),
        ({"catalog": "prod"}, "give --root or --catalog, not both"),
        ({"format_version": "4"}, "option format-version is '4', but it must be one of 2, 1, 3"),
        ({"conflict": "x"}, "option conflict"),
        ({"path": ""}, "name the table"),
    ],
)
def test_a_write_says_what_is_wrong_with_its_options(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        write(**options)


def test_a_read_names_one_state() -> None:
    assert read(snapshot_id="7").snapshot_id == 7
    assert read(as_of_timestamp="1700000000000").as_of_ms == 1_700_000_000_000
    assert read(as_of_timestamp="2026-01-01T00:00:00Z").as_of_ms == read(as_of_timestamp="2026-01-01").as_of_ms
    assert (read(tag="t").tag, read(branch="b").branch) == ("t", "b")
    assert (read(start_snapshot_id="1", end_snapshot_id="2").end_snapshot_id) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"snapshot_id": "seven"}, "option snapshot-id is 'seven', but it must be a snapshot's number"),
        ({"as_of_timestamp": "yesterday"}, "but it must be a time such as"),
        ({"snapshot_id": "1", "tag": "t"}, "snapshot-id and tag exclude each other"),
        ({"tag": "t", "start_snapshot_id": "1"}, "tag and start-snapshot-id exclude each other"),
        ({"end_snapshot_id": "1"}, "needs start-snapshot-id"),
        ({"partition_by": "x"}, "no option 'partition-by' is known where a table is read"),
    ],
)
def test_a_read_says_what_is_wrong_with_its_options(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read(**options)


def test_a_relative_root_is_the_drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert WriteOptions.parse({"path": "db.t", "root": "lake"}, overwrite=False).catalog.root == str(tmp_path / "lake")
