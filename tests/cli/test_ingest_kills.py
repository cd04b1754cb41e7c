"""Signals and kill -9: a run that is stopped leaves nothing, one that is killed is resumed or swept, exactly."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from commands import Frazil, Ran, big_parquet, parquet, together
from frazil.steps import STEPS
from frazil.testing import crash_environment
from services.processes import wait_until

ROWS = 3000
KILLED = -signal.SIGKILL


def source_of(frazil: Frazil) -> Path:
    """Six row groups, which become six shards with the options of `begin`."""
    return parquet(frazil.home / "source.parquet", ROWS, group=500)


def begin(frazil: Frazil, source: Path, **options: object) -> subprocess.Popen[bytes]:
    arguments = ["ingest", source, "db.t", "--root", frazil.root, "--master", "local[2]", "--shard-size", "5000"]
    return frazil.start(*arguments, **options)  # type: ignore[arg-type]


def crashed(frazil: Frazil, source: Path, step: str, nth: int) -> Ran:
    return frazil.ended(begin(frazil, source, environment=crash_environment(step, nth=nth)))


# The driver's steps at which the job is on disk, and whether Spark is needed to finish it.
RESUMABLE = {
    "job:declared": (1, True),
    "job:report-stored": (2, True),
    "job:finished": (1, False),
    "publish:before-list": (1, False),
    "publish:list-written": (1, False),
    "publish:committed": (1, False),
    "publish:noted": (1, False),
}
BEFORE_THE_JOB = ("reserve:begun", "reserve:committed")
WORKER_STEPS = [step for step in STEPS if step.startswith("write:")]


def test_every_step_of_a_run_is_killed_at_below() -> None:
    driven = {step for step in STEPS if step.startswith(("reserve:", "write:", "job:", "publish:"))}
    assert driven == {*RESUMABLE, *BEFORE_THE_JOB, *WORKER_STEPS}


@pytest.mark.slow
def test_a_driver_killed_at_any_step_of_its_job_is_resumed_to_the_exact_rows(frazil: Frazil) -> None:
    source = source_of(frazil)
    homes = {step: frazil.apart(step.replace(":", "-")) for step in RESUMABLE}

    def kill_and_resume(step: str) -> tuple[Ran, int, Ran, Ran]:
        home, (nth, _) = homes[step], RESUMABLE[step]
        killed = crashed(home, source, step, nth)
        visible = home.table().current_snapshot()
        assert (visible is not None) is (step in ("publish:committed", "publish:noted"))
        done = len((home.state / "jobs" / f"{home.job()}.jsonl").read_text().split('"shard-accepted"')) - 1
        resumed = home.run("ingest", "--resume", home.job(), "--json")
        return killed, done, resumed, home.run("ingest", "--resume", home.job(), "--json")

    for step, (killed, done, resumed, again) in zip(
        RESUMABLE, together([partial(kill_and_resume, step) for step in RESUMABLE]), strict=True
    ):
        home = homes[step]
        assert killed.code == KILLED, step
        assert resumed.code == 0, (step, resumed.err)
        assert resumed.document["shards_done_before"] == done, step
        assert (resumed.document["session_seconds"] > 0) is RESUMABLE[step][1], step
        assert done == {"job:declared": 0, "job:report-stored": 2}.get(step, resumed.document["shards"]), step
        table = home.table()
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(ROWS)), step
        assert len(table.metadata.snapshots) == 1, step
        assert (home.orphans(), home.reserved()) == (set(), []), step
        # A job that has landed is reported, and nothing is done again.
        assert (again.code, again.document["snapshot_id"]) == (0, resumed.document["snapshot_id"]), step
        assert home.table().metadata_location == table.metadata_location, step


@pytest.mark.slow
def test_a_driver_killed_before_its_job_is_on_disk_leaves_what_a_sweep_ends(frazil: Frazil) -> None:
    source = source_of(frazil)
    homes = {step: frazil.apart(step.replace(":", "-")) for step in BEFORE_THE_JOB}
    runs = together([partial(crashed, home, source, step, 1) for step, home in homes.items()])
    assert [ran.code for ran in runs] == [KILLED, KILLED]
    assert homes["reserve:begun"].reserved() == []
    home = homes["reserve:committed"]
    (commit,) = home.reserved()
    assert not (home.state / "jobs").exists()
    kept = home.here("sweep", "db.t", "--root", home.root, "--commit", commit, "--json")
    assert (kept.code, home.reserved()) == (2, [commit])
    assert "still reserved" in kept.document["message"]
    swept = home.here("sweep", "db.t", "--root", home.root, "--commit", commit, "--force", "--json")
    assert (swept.code, home.reserved(), home.orphans()) == (0, [], set())
    assert home.table().current_snapshot() is None


@pytest.mark.slow
def test_a_worker_that_dies_at_any_step_is_tried_again_and_leaves_no_file(frazil: Frazil) -> None:
    source = source_of(frazil)
    homes = {step: frazil.apart(step.replace(":", "-")) for step in WORKER_STEPS}

    def kill_once(step: str) -> Ran:
        mark = frazil.home / f"{step.replace(':', '-')}.mark"
        return homes[step].ended(begin(homes[step], source, environment=crash_environment(step, mark=mark)))

    for step, ran in zip(WORKER_STEPS, together([partial(kill_once, step) for step in WORKER_STEPS]), strict=True):
        home = homes[step]
        assert (frazil.home / f"{step.replace(':', '-')}.mark").exists(), step
        assert ran.code == 0, (step, ran.err)
        assert sorted(home.table().scan().to_arrow()["id"].to_pylist()) == list(range(ROWS)), step
        assert (home.orphans(), home.reserved()) == (set(), []), step


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_its_task_is_tried_again(frazil: Frazil) -> None:
    source = big_parquet(frazil.home / "a.parquet")
    process = frazil.start("ingest", source, "db.t", "--root", frazil.root, "--json")
    wait_until(frazil.data_is_being_written, process, 120)
    (victim, *_) = frazil.workers()
    os.kill(victim, signal.SIGKILL)
    ran = frazil.ended(process)
    assert (ran.code, ran.document["rows"]) == (0, 4_000_000), ran.err
    assert (frazil.rows(), frazil.orphans(), frazil.reserved()) == (4_000_000, set(), [])


@pytest.mark.slow
def test_a_java_process_that_dies_ends_the_run_in_one_sentence_and_leaves_nothing(frazil: Frazil) -> None:
    source = big_parquet(frazil.home / "a.parquet")
    process = frazil.start("ingest", source, "db.t", "--root", frazil.root, "--json")
    wait_until(frazil.data_is_being_written, process, 120)
    (java,) = frazil.processes("org.apache.spark.deploy.SparkSubmit")
    os.kill(java, signal.SIGKILL)
    ran = frazil.ended(process)
    assert (ran.code, ran.document["outcome"]) == (1, "not landed")
    assert "Traceback" not in ran.err
    assert frazil.stored() == set()
    assert not frazil.catalog.table_exists("db.t")


def hard_links(source: Path, folder: Path, count: int) -> Path:
    """A folder that takes a second to plan."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:05d}.parquet").hardlink_to(source)
    return folder


def says(frazil: Frazil, words: str) -> bool:
    return words in frazil.said()


MOMENTS: dict[str, Callable[[Frazil], bool]] = {
    "planning": lambda frazil: says(frazil, "looking at the sources"),
    "starting Spark": lambda frazil: says(frazil, "starting Spark") and bool(frazil.processes("SparkSubmit")),
    "writing": lambda frazil: frazil.data_is_being_written(),
}


@pytest.mark.slow
def test_ctrl_c_and_sigterm_leave_no_snapshot_no_file_no_table_and_no_process(frazil: Frazil) -> None:
    big = big_parquet(frazil.home / "a.parquet")
    many = hard_links(parquet(frazil.home / "b.parquet"), frazil.home / "many", 3000)
    cases = [(moment, number) for moment in MOMENTS for number in (signal.SIGINT, signal.SIGTERM)]
    homes = {case: frazil.apart(f"{case[0]}-{case[1].name}".replace(" ", "-")) for case in cases}

    def stop(case: tuple[str, signal.Signals]) -> Ran:
        home, (moment, number) = homes[case], case
        process = home.start("ingest", many if moment == "planning" else big, "db.t", "--root", home.root)
        wait_until(lambda: MOMENTS[moment](home), process, 120)
        os.kill(process.pid, number)
        return home.ended(process)

    for case, ran in zip(cases, together([partial(stop, case) for case in cases]), strict=True):
        home = homes[case]
        assert ran.code == 1, (case, ran)
        assert "frazil: the run was stopped; nothing was published" in ran.err, case
        assert "Traceback" not in ran.err, case
        assert home.stored() == set(), case
        assert not home.catalog.table_exists("db.t"), case


@pytest.mark.slow
def test_ctrl_c_on_a_known_table_gives_its_reservation_back_and_ends_the_job(frazil: Frazil) -> None:
    """As a terminal does it: the signal goes to the whole process group."""
    frazil.here("ingest", parquet(frazil.home / "x.parquet"), "db.t", "--root", frazil.root, "--summary", "a=b")
    before = len(frazil.table().metadata.snapshots)
    source = parquet(frazil.home / "y.parquet", 600_000, group=300_000)
    process = frazil.start("ingest", source, "db.t", "--root", frazil.root, "--json")
    known = frazil.stored()
    wait_until(lambda: any(path.endswith(".parquet") for path in frazil.stored() - known), process, 120)
    os.killpg(process.pid, signal.SIGINT)
    ran = frazil.ended(process)
    assert (ran.code, ran.document["error"]) == (1, "Interrupted"), ran
    assert (frazil.orphans(), frazil.reserved()) == (set(), [])
    assert (len(frazil.table().metadata.snapshots), frazil.rows()) == (before, 1000)
    again = frazil.here("ingest", "--resume", frazil.job(), "--json")
    assert again.code == 2
    assert "is over (cancelled" in again.document["message"]
