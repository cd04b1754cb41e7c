"""A job's log: on disk before anyone is told, whole after a crash, and one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from frazil import BadInput
from frazil.errors import StorageFailed, UnknownJob
from frazil.jobs.log import JobStore, new_job_id
from frazil.jobs.states import Event, State
from jobs.test_job import PLAN, report


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "jobs")


def begun(store: JobStore, name: str = "j") -> Path:
    with store.create(name) as log:
        log.record(Event.PLANNED, PLAN)
        log.record(Event.SHARD_ACCEPTED, report("a"))
    return store.folder / f"{name}.jsonl"


def test_what_was_recorded_is_there_when_it_is_opened_again(store: JobStore) -> None:
    begun(store)
    with store.open("j") as log:
        assert log.job == store.read("j")
        assert log.job.accepted == {"a": report("a")}
        assert log.job.declared.snapshot == PLAN.snapshot.with_storage({})
        assert (log.job.declared.shards, log.job.declared.request) == (PLAN.shards, PLAN.request)
        log.record(Event.RESUMED)
    assert store.read("j").runs == 2


def test_the_shards_of_a_job_that_started_over_are_there_when_it_is_opened_again(store: JobStore) -> None:
    with store.create("j") as log:
        log.record(Event.PLANNED, PLAN)
        log.record(Event.STARTED_OVER, {"x": {"kind": "of its own"}})
    assert store.read("j").declared.shards == {"x": {"kind": "of its own"}}


def test_the_reservation_for_rejected_rows_is_kept_without_its_secrets(store: JobStore) -> None:
    beside = PLAN.snapshot.with_storage({"s3.secret-access-key": "hush"})
    with store.create("j") as log:
        log.record(Event.PLANNED, replace(PLAN, rejected=beside))
    assert store.read("j").declared.rejected == beside.with_storage({})
    assert "hush" not in (store.folder / "j.jsonl").read_text()


def test_an_event_is_on_disk_when_record_returns(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    whole = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(descriptor), whole(descriptor))[1])
    with store.create("j") as log:
        folder = len(synced)
        assert folder == 1  # the folder, so that the new file is found again
        log.record(Event.PLANNED, PLAN)
        assert len(synced) == folder + 1
        assert store.read("j").state is State.WRITING


def test_no_credential_reaches_the_log(store: JobStore) -> None:
    assert PLAN.snapshot.storage
    assert "hush" not in begun(store).read_text()


@pytest.mark.parametrize("torn", [1, 7, 100])
def test_a_torn_last_line_never_happened_and_the_next_one_is_whole(store: JobStore, torn: int) -> None:
    path = begun(store)
    path.write_bytes(path.read_bytes()[:-torn])
    assert store.read("j").accepted == {}
    with store.open("j") as log:
        log.record(Event.SHARD_ACCEPTED, report("b"))
    assert list(store.read("j").accepted) == ["b"]


def test_a_line_that_cannot_be_written_never_happened(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.create("j") as log:
        log.record(Event.PLANNED, PLAN)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _disk_full)
            with pytest.raises(StorageFailed, match="cannot be noted"):
                log.record(Event.SHARD_ACCEPTED, report("a"))
        assert log.job.accepted == {}
        log.record(Event.SHARD_ACCEPTED, report("b"))
    assert list(store.read("j").accepted) == ["b"]


def _disk_full(_: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("line", [b"\0\0\0\n", b"{}\n", b'{"event": "eaten", "detail": null}\n', b"[]\n"])
def test_a_damaged_line_is_said_to_be_one(store: JobStore, line: bytes) -> None:
    path = begun(store)
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(BadInput, match="damaged at byte"):
        store.read("j")


def test_one_process_at_a_time_works_on_a_job(store: JobStore) -> None:
    begun(store)
    with store.open("j"):
        with pytest.raises(BadInput, match="being run by another process"), store.open("j"):
            pass
        assert store.read("j").state is State.WRITING
    with store.open("j"):
        pass


def test_a_killed_process_leaves_its_job_free(store: JobStore) -> None:
    begun(store)
    program = (
        "import os, sys, signal\nfrom pathlib import Path\nfrom frazil.jobs.log import JobStore\n"
        "with JobStore(Path(sys.argv[1])).open('j') as log:\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(store.folder)], timeout=60)
    assert ended.returncode == -9
    with store.open("j") as log:
        assert list(log.job.accepted) == ["a"]


def test_a_job_that_is_not_kept_is_unknown_and_the_newest_is_named(store: JobStore) -> None:
    with pytest.raises(UnknownJob, match="no job is kept"):
        store.read("x")
    begun(store, "j1")
    begun(store, "j2")
    with pytest.raises(UnknownJob, match="j2"), store.open("x"):
        pass
    assert store.names() == ["j1", "j2"]


@pytest.mark.parametrize("name", ["", "../j", "a/b", ".j"])
def test_what_is_no_jobs_name_is_refused(store: JobStore, name: str) -> None:
    with pytest.raises(UnknownJob, match="not a job's name"):
        store.read(name)


def test_names_of_new_jobs_differ() -> None:
    assert len({new_job_id() for _ in range(100)}) == 100
