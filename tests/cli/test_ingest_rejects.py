"""`--on-bad-row reject`: rows that do not fit end beside the table, counted and explained; the others land, once."""

from __future__ import annotations

import json
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import Frazil
from frazil.testing import crash_environment
from readers import read_with_duckdb, read_with_pyiceberg

TABLE = "db.t"
REJECTED = "db.t__rejected"
REJECT = ("--on-bad-row", "reject")


def begun(frazil: Frazil) -> None:
    """A table of small numbers."""
    table = pa.table({"id": pa.array([0], pa.int32()), "price": pa.array([Decimal("1.00")], pa.decimal128(5, 2))})
    pq.write_table(table, frazil.home / "first.parquet")
    assert frazil.here("ingest", "first.parquet", TABLE, "--root", frazil.root).code == 0


def source(frazil: Frazil, rows: int, bad: set[int]) -> Path:
    """A file with large numbers, of which those of the `bad` rows do not fit."""
    path = frazil.home / "more.parquet"
    ids = pa.array([2**40 + each if each in bad else each for each in range(1, rows + 1)], pa.int64())
    pq.write_table(pa.table({"id": ids, "price": pa.array(["2.50"] * rows)}), path, row_group_size=max(1, rows // 4))
    return path


def rejected(frazil: Frazil) -> list[dict[str, Any]]:
    rows = read_with_duckdb(frazil.table(REJECTED))
    assert rows.equals(read_with_pyiceberg(frazil.table(REJECTED)))
    return rows.to_pylist()


def test_rows_that_do_not_fit_are_in_the_table_beside_and_counted(frazil: Frazil) -> None:
    begun(frazil)
    more = source(frazil, 1000, {3, 900})
    assert frazil.here("ingest", more, TABLE, "--root", frazil.root).code == 2
    ran = frazil.here("ingest", more, TABLE, "--root", frazil.root, *REJECT, "--json")
    assert ran.code == 0, ran.err
    assert (ran.document["rows"], ran.document["rejected"], ran.document["rejected_table"]) == (998, 2, REJECTED)
    assert (frazil.rows(), read_with_duckdb(frazil.table()).num_rows) == (999, 999)
    assert frazil.table().current_snapshot().summary["frazil.rejected-rows"] == "2"
    found = sorted(rejected(frazil), key=lambda row: row["row"])
    assert [json.loads(row["row"]) for row in found] == [{"id": 2**40 + at, "price": "2.50"} for at in (3, 900)]
    assert {row["job"] for row in found} == {ran.document["job_id"]}
    assert {row["snapshot_id"] for row in found} == {ran.document["snapshot_id"]}
    assert all(str(more) in row["position"] and "row" in row["position"] for row in found)
    assert all("'id' is int32 in the table and int64" in row["reason"] for row in found)
    assert not frazil.orphans() - {path for path in frazil.stored() if "__rejected" in path}
    assert (frazil.reserved(), frazil.reserved(REJECTED)) == ([], [])


def test_malformed_lines_are_rejected_with_their_place_and_text(frazil: Frazil) -> None:
    begun(frazil)
    lines = ["id,price", "1,1.50", "two,2.50", "3,3.501", "4", "5,5.50"]
    (frazil.home / "more.csv").write_text("\n".join(lines) + "\n")
    ran = frazil.here("ingest", "more.csv", TABLE, "--root", frazil.root, *REJECT)
    assert ran.code == 0, ran.err
    assert "rejected  3 rows, with reasons in db.t__rejected" in " ".join(ran.out.split("\n"))
    assert sorted(read_with_duckdb(frazil.table())["id"].to_pylist()) == [0, 1, 5]
    found = rejected(frazil)
    assert all("more.csv" in row["position"] for row in found)
    assert {word for row in found for word in ("two", "3.501", "4") if word in row["row"]} == {"two", "3.501", "4"}


def test_where_every_row_fits_no_table_is_left_beside(frazil: Frazil) -> None:
    begun(frazil)
    ran = frazil.here("ingest", source(frazil, 10, set()), TABLE, "--root", frazil.root, *REJECT, "--json")
    assert (ran.code, ran.document["rows"], ran.document["rejected"]) == (0, 10, 0), ran.err
    assert not frazil.catalog.table_exists(REJECTED)
    assert "frazil.rejected-rows" not in frazil.table().current_snapshot().summary.additional_properties
    assert frazil.orphans() == set()


def test_where_no_row_fits_the_table_is_left_as_it_is(frazil: Frazil) -> None:
    begun(frazil)
    ran = frazil.here("ingest", source(frazil, 3, {1, 2, 3}), TABLE, "--root", frazil.root, *REJECT, "--json")
    assert (ran.code, ran.document["outcome"], ran.document["rejected"]) == (0, "all rejected", 3), ran.err
    assert (frazil.rows(), len(rejected(frazil)), frazil.reserved()) == (1, 3, [])


@pytest.mark.parametrize("limit", ["1", "0.1%"])
def test_more_rejected_rows_than_the_limit_fail_the_run_and_leave_nothing(frazil: Frazil, limit: str) -> None:
    begun(frazil)
    more = source(frazil, 1000, {3, 900})
    ran = frazil.here("ingest", more, TABLE, "--root", frazil.root, *REJECT, "--max-rejected", limit)
    assert ran.code == 1
    assert "do not fit" in ran.err
    assert frazil.rows() == 1 and frazil.orphans() == set() and frazil.reserved() == []
    assert not frazil.catalog.table_exists(REJECTED)
    ran = frazil.here("ingest", more, TABLE, "--root", frazil.root, *REJECT, "--max-rejected", "2")
    assert (ran.code, frazil.rows()) == (0, 999)


@pytest.mark.parametrize(
    "arguments", [("--max-rejected", "5"), (*REJECT, "--max-rejected", "some"), (*REJECT, "--max-rejected", "-1")]
)
def test_a_limit_that_makes_no_sense_is_refused(frazil: Frazil, arguments: tuple[str, ...]) -> None:
    ran = frazil.here("ingest", "x.parquet", TABLE, "--root", frazil.root, *arguments)
    assert ran.code == 2 and "--max-rejected" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("step", ["job:report-stored", "reject:committed", "publish:committed#2"])
def test_a_run_killed_between_the_two_commits_is_resumed_to_both_once(frazil: Frazil, step: str) -> None:
    begun(frazil)
    name, _, nth = step.partition("#")
    killed = frazil.run(
        *("ingest", source(frazil, 1000, {3, 900}), TABLE, "--root", frazil.root, "--master", "local[2]", *REJECT),
        environment=crash_environment(name, nth=int(nth or 1)),
    )
    assert killed.code == -signal.SIGKILL
    assert frazil.rows() == (999 if step == "publish:committed#2" else 1)
    for _ in range(2):
        resumed = frazil.run("ingest", "--resume", frazil.job(), "--json")
        assert (resumed.code, resumed.document["rows"], resumed.document["rejected"]) == (0, 998, 2), resumed.err
    assert frazil.rows() == 999 and len(rejected(frazil)) == 2
    assert (frazil.reserved(), frazil.reserved(REJECTED)) == ([], [])
    mine = {path for path in frazil.stored() if "__rejected" not in path}
    assert frazil.orphans() & mine == set() and frazil.orphans(REJECTED) - mine == set()
