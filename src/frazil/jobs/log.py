"""The durable store of a job: a file of JSON lines, one event each, on disk before anyone is told.

A job is what its events make of it, so a crash loses at most a line that nobody relied on. While a process works on a
job it holds a lock on the file; the lock dies with the process.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from frazil.errors import BadInput, StorageFailed, UnknownJob
from frazil.jobs.job import Job, Plan
from frazil.jobs.states import Event
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.report import Report


def new_job_id() -> str:
    """A name that sorts by time and that nobody else picks."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    began = time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))
    return f"{began}-{nanoseconds // 1_000_000:03d}{secrets.token_hex(2)}"


class JobLog:
    """An open, locked job. `record` returns once the event is on disk."""

    def __init__(self, file: FileIO, job: Job) -> None:
        self._file = file
        self.job = job

    def record(self, event: Event, detail: Any = None) -> Job:
        """Apply an event and make it durable. StorageFailed if it cannot be written: then it never happened."""
        after = self.job.apply(event, detail)
        line = json.dumps({"event": event.value, "at-ms": time.time_ns() // 1_000_000, **_encode(event, detail)})
        self._append(line.encode() + b"\n")
        self.job = after
        return after

    def _append(self, line: bytes) -> None:
        length = self._file.tell()
        try:
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            # A line that is half there would spoil the next one.
            self._file.truncate(length)
            self._file.seek(length)
            raise StorageFailed(f"job {self.job.id} cannot be noted in {self._file.name}: {error}") from error


class JobStore:
    """A folder of job logs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def create(self, job_id: str) -> Iterator[JobLog]:
        """Begin a job's log."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            opened = self._path(job_id).open("xb", buffering=0)
        except OSError as error:
            raise StorageFailed(
                f"jobs cannot be kept in {self.folder}: {error.strerror}; set FRAZIL_STATE to a folder that can be written"
            ) from error
        with opened as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _make_durable(self.folder)
            yield JobLog(file, Job(job_id))

    @contextmanager
    def open(self, job_id: str) -> Iterator[JobLog]:
        """Take up a job; an unknown one, and one that another process is working on, are errors."""
        path = self._path(job_id)
        if not path.is_file():
            raise UnknownJob(f"there is no job {job_id!r} in {self.folder}; {self._known()}")
        with path.open("r+b", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(f"job {job_id} is being run by another process; wait for it, or stop it first") from None
            job, length = _replay(job_id, file.read())
            file.truncate(length)
            file.seek(length)
            yield JobLog(file, job)

    def read(self, job_id: str) -> Job:
        """A job as its log has it, without taking it up."""
        path = self._path(job_id)
        if not path.is_file():
            raise UnknownJob(f"there is no job {job_id!r} in {self.folder}; {self._known()}")
        return _replay(job_id, path.read_bytes())[0]

    def names(self) -> list[str]:
        """Every job kept here, oldest first."""
        return sorted(path.stem for path in self.folder.glob("*.jsonl"))

    def _known(self) -> str:
        names = self.names()
        return f"the newest kept here is {names[-1]}" if names else "no job is kept here yet"

    def _path(self, job_id: str) -> Path:
        if not job_id or "/" in job_id or job_id.startswith("."):
            raise UnknownJob(f"{job_id!r} is not a job's name; a run prints its own at the start")
        return self.folder / f"{job_id}.jsonl"


def _make_durable(folder: Path) -> None:
    """A new file outlives a loss of power only when its folder is on disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replay(job_id: str, data: bytes) -> tuple[Job, int]:
    """The job that these lines make, and how many bytes of them are whole: a torn last line never happened."""
    job, length = Job(job_id), 0
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        try:
            document = json.loads(line)
            event = Event(document["event"])
            job = job.apply(event, _decode(event, document))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"the log of job {job_id} is damaged at byte {length} ({error}); start the job anew"
            ) from error
        length += len(line)
    return job, length


def _encode(event: Event, detail: Any) -> dict[str, Any]:
    if event is Event.PLANNED:
        return {
            "snapshot": json.loads(_without_secrets(detail.snapshot).to_json()),
            "shards": {name: dict(shard) for name, shard in detail.shards.items()},
            "request": dict(detail.request),
            "rejected": json.loads(_without_secrets(detail.rejected).to_json()) if detail.rejected else None,
        }
    if event is Event.STARTED_OVER:
        return {"shards": {name: dict(shard) for name, shard in detail.items()}}
    if event is Event.SHARD_ACCEPTED:
        return {"report": json.loads(detail.to_json())}
    return {"detail": detail}


def _decode(event: Event, document: dict[str, Any]) -> Any:
    if event is Event.PLANNED:
        rejected = document.get("rejected")
        return Plan(
            snapshot=DistributedSnapshot.from_json(json.dumps(document["snapshot"])),
            shards=document["shards"],
            request=document["request"],
            rejected=DistributedSnapshot.from_json(json.dumps(rejected)) if rejected else None,
        )
    if event is Event.STARTED_OVER:
        return document["shards"]
    if event is Event.SHARD_ACCEPTED:
        return Report.from_json(json.dumps(document["report"]))
    return document["detail"]


def _without_secrets(snapshot: DistributedSnapshot) -> DistributedSnapshot:
    return snapshot.with_storage({})
