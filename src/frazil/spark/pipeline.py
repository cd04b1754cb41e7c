"""Shards out to Spark tasks, reports back, each on the driver as soon as its task is done.

A task's result travels as an accumulator update, which Spark applies once per finished task, whatever was retried or run
twice. A task that meets an error of ours sends that back as a value, since trying again would not mend it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam

from frazil import errors
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.rejected_rows import RejectTo
from frazil.snapshot.report import Report
from frazil.snapshot.write_shard import SnapshotWriter, write_shard
from frazil.sources.register import RegisterShard
from frazil.sources.source import BadRow, Shard, located_batches
from frazil.spark.java_error import cause_of, gone_is_ended

if TYPE_CHECKING:
    from pyspark import SparkContext

_ATTEMPTS_PER_RUN = 1_000_000
_POLL_SECONDS = 0.1
_END_SECONDS = 30


@dataclass(frozen=True, slots=True)
class _Done:
    """A task's report. `retried`: the task was not the first to try."""

    report: Report
    retried: bool


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error that a task sends home."""

    kind: str
    message: str

    def to_error(self) -> errors.FrazilError:
        kind: type[errors.FrazilError] = getattr(errors, self.kind, errors.WriteFailed)
        return kind(self.message)


@dataclass(frozen=True, slots=True)
class _Work:
    """What all tasks of a run have in common."""

    snapshot: DistributedSnapshot
    storage: Mapping[str, str]
    run: int
    rejects: RejectTo | None

    def write(self, shard: Shard, attempt: int) -> Report:
        """Write one shard. Where no row is rejected its source need not keep count of where its rows are."""
        if isinstance(shard, RegisterShard):
            return shard.report(self.snapshot, attempt)
        if self.rejects is None:
            return write_shard(self.snapshot, shard.name, shard.batches(self.storage), attempt=attempt)
        with SnapshotWriter(self.snapshot, shard.name, attempt=attempt, rejects=self.rejects) as writer:

            def reject(bad: BadRow) -> None:
                writer.reject(bad.position, bad.reason, bad.raw)

            for located in located_batches(shard, self.storage, reject):
                writer.write(located.batch, located.position)
        return writer.report


class _Inbox(AccumulatorParam[list[Any]]):  # type: ignore[misc]
    """Hands what tasks add to a queue on the driver; on a worker it is an ordinary list."""

    def __init__(self, deliver: Callable[[Any], None] | None = None) -> None:
        self.deliver = deliver

    def __reduce__(self) -> tuple[type[_Inbox], tuple[()]]:
        return (_Inbox, ())

    def zero(self, value: list[Any]) -> list[Any]:  # noqa: ARG002  Spark's signature
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802  Spark's name
        if self.deliver is None:
            return value1 + value2
        for item in value2:
            self.deliver(item)
        return value1


class ShardTasks:
    """Runs shards on a Spark context until they are done, one fails, or `check`, called again and again, raises.

    `some_failed`: an attempt came to nothing, or may have run beside another, and may have left files.
    """

    def __init__(self, context: SparkContext, check: Callable[[], None] = lambda: None) -> None:
        self._context = context
        self._check = check
        self.some_failed = context.getConf().get("spark.speculation", "false") == "true"

    def reports(
        self,
        snapshot: DistributedSnapshot,
        shards: Sequence[Shard],
        storage: Mapping[str, str],
        run: int,
        rejects: RejectTo | None = None,
    ) -> Iterator[Report]:
        """One report per shard, in the order in which they finish. `storage` is for reading them.

        With `rejects` rows that do not fit go there.
        """
        inbox: queue.Queue[_Done | _Failure | BaseException | None] = queue.Queue()
        group = f"frazil-{snapshot.commit_uuid}-{run}"
        work = _Work(snapshot, storage, run, rejects)
        thread = threading.Thread(target=self._run, args=(inbox, group, shards, work), daemon=True)
        self._check()
        thread.start()
        waiting = {shard.name for shard in shards}
        try:
            while waiting:
                report = self._accept(self._next(inbox))
                if report.shard in waiting:
                    waiting.remove(report.shard)
                    yield report
        finally:
            self._end(thread, group)

    def _accept(self, item: _Done | _Failure | BaseException | None) -> Report:
        match item:
            case _Done(report, retried):
                self.some_failed = self.some_failed or retried
                return report
            case _Failure():
                raise item.to_error()
            case None:
                raise errors.WriteFailed("Spark finished without the report of every shard; nothing was published")
            case error:
                raise errors.WriteFailed(f"a Spark task failed: {cause_of(error)}; nothing was published") from error

    def _next(self, inbox: queue.Queue[Any]) -> Any:
        while True:
            self._check()
            try:
                return inbox.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue

    def _end(self, thread: threading.Thread, group: str) -> None:
        """Wait for the Spark job; one that is no longer wanted is cancelled, though it may be only about to start."""
        deadline = time.monotonic() + _END_SECONDS
        thread.join(_POLL_SECONDS)
        while thread.is_alive() and time.monotonic() < deadline:
            with gone_is_ended():
                self._context.cancelJobGroup(group)
            thread.join(_POLL_SECONDS)

    def _run(
        self,
        inbox: queue.Queue[Any],
        group: str,
        shards: Sequence[Shard],
        work: _Work,
    ) -> None:
        try:
            home = self._context.accumulator([], _Inbox(inbox.put))

            def write(shard: Shard) -> None:
                home.add([_attempt(work, shard)])

            self._context.setJobGroup(group, f"frazil ingest {work.snapshot.name}", interruptOnCancel=True)
            self._context.parallelize(shards, len(shards)).foreach(write)
            inbox.put(None)
        except Exception as error:  # noqa: BLE001  it is raised again on the main thread
            inbox.put(error)


def _attempt(work: _Work, shard: Shard) -> _Done | _Failure:
    context = TaskContext.get()
    number, retried = (context.taskAttemptId(), context.attemptNumber() > 0) if context else (0, False)
    try:
        return _Done(work.write(shard, work.run * _ATTEMPTS_PER_RUN + number), retried)
    except errors.FrazilError as error:
        if error.retryable:
            raise
        return _Failure(type(error).__name__, str(error))
