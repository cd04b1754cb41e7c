"""A process that is killed at any step of the protocol leaves what can be taken up or swept: no row too many, no orphan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil import AlreadyConsumed, DistributedSnapshot, Report
from frazil.errors import ReservationGone
from frazil.snapshot.rejected_table import publish_rejected, take_back
from frazil.snapshot.reservation import ended, reservations
from frazil.steps import STEPS
from frazil.testing import crash_environment
from lakes import Lake, append, ids
from readers import count_with_duckdb

PROGRAM = """
import sys
from datetime import timedelta
from pathlib import Path
import pyarrow as pa
import frazil
from frazil.snapshot.warehouse import EmbeddedCatalog

root, state, what = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
table = EmbeddedCatalog(root / "lake").load_table("db.t")
rows = pa.table({"id": pa.array([10, 11], pa.int64()), "text": ["x", "y"]})
snapshot = frazil.begin_snapshot(table)
(state / "descriptor.json").write_text(snapshot.to_json())
for shard in ("a", "b"):
    report = frazil.write_shard(snapshot, shard, [rows])
    (state / f"{shard}.report").write_bytes(report.to_protobuf())
reports = [frazil.Report.from_protobuf(path.read_bytes()) for path in state.glob("*.report")]
if what == "publish":
    frazil.publish_snapshot(table, snapshot, reports, overwrite="overwrite" in sys.argv)
else:
    frazil.sweep(table, snapshot.commit_uuid, force=True)
"""

MERGE = """
import sys
from pathlib import Path
import pyarrow as pa
import frazil
from frazil.snapshot.warehouse import EmbeddedCatalog

table = EmbeddedCatalog(Path(sys.argv[1]) / "lake").load_table("db.t")
frazil.merge_schema(table, pa.schema([("id", pa.int64()), ("more", pa.string())]))
"""

REJECT = """
import sys
from pathlib import Path
import pyarrow as pa
import frazil
from frazil.snapshot.rejected_table import publish_rejected, take_back
from frazil.snapshot.warehouse import EmbeddedCatalog

state = Path(sys.argv[2])
catalog = EmbeddedCatalog(Path(sys.argv[1]) / "lake")
table = catalog.load_table("db.t")
rejected, _ = frazil.open_rejected(catalog, ("db", "t"))
snapshot, beside = frazil.begin_snapshot(table), frazil.begin_snapshot(rejected)
(state / "descriptor.json").write_text(snapshot.to_json())
(state / "beside.json").write_text(beside.to_json())
rows = pa.table({"id": ["10", "eleven"], "text": ["x", "y"]})
report = frazil.write_shard(snapshot, "a", [rows], rejects=frazil.RejectTo(beside, snapshot.snapshot_id))
(state / "a.report").write_bytes(report.to_protobuf())
publish_rejected(rejected, beside, [report], {})
take_back(rejected, beside)
"""

PASSED_BY_REJECTING = [name for name in STEPS if name.startswith("reject:")]
PASSED_BY_MERGING = [name for name in STEPS if name.startswith("merge:")]
PASSED_BY_PUBLISHING = [name for name in STEPS if name.split(":")[0] in ("reserve", "write")] + [
    "publish:before-list",
    "publish:list-written",
    "publish:committed",
]
PASSED_BY_SWEEPING = ["reserve:begun#2", "reserve:committed#2", "sweep:listed", "sweep:deleted", "sweep:deleted#3"]


def killed(step: str, tmp_path: Path, state: Path, *arguments: str, program: str = PROGRAM) -> None:
    """Run the program to the step, where it kills itself."""
    name, _, nth = step.partition("#")
    environment = crash_environment(name, nth=int(nth or 1), base=os.environ)
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(state), *arguments], env=environment, timeout=60
    )
    assert ended.returncode == -signal.SIGKILL


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "mode"),
    [
        *((step, "append") for step in PASSED_BY_PUBLISHING),
        *((step, "overwrite") for step in PASSED_BY_PUBLISHING if step.startswith("publish:")),
    ],
)
def test_a_job_killed_while_it_writes_or_publishes_is_taken_up_or_swept(
    lake: Lake, tmp_path: Path, state: Path, step: str, mode: str
) -> None:
    table = lake.table()
    append(table, 1)
    killed(step, tmp_path, state, "publish", mode)
    old = [] if mode == "overwrite" else [1]
    reports = [Report.from_protobuf(path.read_bytes()) for path in state.glob("*.report")]
    if len(reports) < 2:  # what a resume could build on is lost, so the job is dead
        frazil.sweep(table, force=True)
        assert ids(table) == [1]
    else:
        snapshot = DistributedSnapshot.from_json((state / "descriptor.json").read_text())
        try:
            frazil.publish_snapshot(table, snapshot, reports, overwrite=mode == "overwrite")
            assert step != "publish:committed"
        except AlreadyConsumed:
            assert step == "publish:committed"
        frazil.sweep(table, snapshot.commit_uuid, force=True)
        assert ids(table) == [*old, 10, 10, 11, 11]
    assert count_with_duckdb(table) == len(ids(table))
    assert lake.orphans(table) == set()
    assert not reservations(table.metadata) and not ended(table.metadata)


@pytest.mark.slow
@pytest.mark.parametrize("step", PASSED_BY_SWEEPING)
def test_a_sweep_that_is_killed_is_finished_by_the_next(lake: Lake, tmp_path: Path, state: Path, step: str) -> None:
    table = lake.table()
    append(table, 1)
    killed(step, tmp_path, state, "sweep")
    snapshot = DistributedSnapshot.from_json((state / "descriptor.json").read_text())
    frazil.sweep(lake.again(table), snapshot.commit_uuid, force=True)
    assert ids(table) == [1] and lake.orphans(table) == set()
    assert not reservations(table.metadata)
    with pytest.raises(ReservationGone):
        frazil.publish_snapshot(table, snapshot, [])


@pytest.mark.slow
@pytest.mark.parametrize("step", PASSED_BY_MERGING)
def test_a_merge_that_is_killed_is_done_whole_or_not_at_all_and_may_be_done_again(
    lake: Lake, tmp_path: Path, state: Path, step: str
) -> None:
    table = lake.table()
    append(table, 1)
    killed(step, tmp_path, state, program=MERGE)
    done = step == "merge:committed"
    table = lake.again(table)
    assert [field.name for field in table.schema().fields] == ["id", "text", *(["more"] if done else [])]
    merge = frazil.merge_schema(table, pa.schema([("id", pa.int64()), ("more", pa.string())]))
    assert merge.changes == (() if done else ("column 'more' (string) is added",))
    assert ids(table) == [1] and count_with_duckdb(table) == 1 and lake.orphans(table) == set()


@pytest.mark.slow
@pytest.mark.parametrize("step", PASSED_BY_REJECTING)
@pytest.mark.parametrize("goes_on", [True, False])
def test_rejected_rows_whose_job_is_killed_are_published_once_or_taken_back(
    lake: Lake, tmp_path: Path, state: Path, step: str, goes_on: bool
) -> None:
    table = lake.table()
    append(table, 1)
    killed(step, tmp_path, state, program=REJECT)
    snapshot = DistributedSnapshot.from_json((state / "descriptor.json").read_text())
    beside = DistributedSnapshot.from_json((state / "beside.json").read_text())
    reports = [Report.from_protobuf((state / "a.report").read_bytes())]
    rejected = lake.catalog.load_table("db.t__rejected")
    if goes_on and step != "reject:taken-back":
        assert publish_rejected(rejected, beside, reports, {})
        frazil.publish_snapshot(table, snapshot, reports)
    else:
        take_back(rejected, beside)
        frazil.sweep(table, snapshot.commit_uuid, force=True)
        frazil.sweep(rejected, beside.commit_uuid, force=True)
    landed = goes_on and step != "reject:taken-back"
    rejected = lake.again(rejected)
    assert ids(table) == ([1, 10] if landed else [1])
    assert rejected.scan().to_arrow()["row"].to_pylist() == (['{"id": "eleven", "text": "y"}'] if landed else [])
    assert lake.orphans(table) == set() and lake.orphans(rejected) == set()
    assert not reservations(table.metadata) and not reservations(rejected.metadata)


def test_every_step_of_the_protocol_is_tried() -> None:
    tried = {
        step.partition("#")[0]
        for step in [*PASSED_BY_MERGING, *PASSED_BY_REJECTING, *PASSED_BY_PUBLISHING, *PASSED_BY_SWEEPING]
    }
    assert {name for name in STEPS if not name.startswith(("job:", "catalog:"))} - tried == {
        "publish:noted"
    }  # the job's own step
