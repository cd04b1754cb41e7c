"""Shards out to Spark tasks, reports back, each on the driver as soon as its task is done.

A task's result travels as an accumulator update, which Spark applies once per finished task, whatever was retried or run
twice. A task that meets an error of ours sends that back as a value, since trying again would not mend it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam

from frazil import errors
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.report import Report
from frazil.snapshot.write_shard import write_shard
from frazil.sources.source import Shard

if TYPE_CHECKING:
    from pyspark import SparkContext

_ATTEMPTS_PER_RUN = 1_000_000
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error that a task sends home."""

    kind: str
    message: str

    def to_error(self) -> errors.FrazilError:
        kind: type[errors.FrazilError] = getattr(errors, self.kind, errors.WriteFailed)
        return kind(self.message)


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
    """Runs shards on a Spark context until they are done, one fails, or `stop` is called from a signal handler."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._stopped = threading.Event()
        self._finished = 0
        self._last_attempt = -1

    def stop(self) -> None:
        """Give up as soon as possible."""
        self._stopped.set()

    @property
    def some_failed(self) -> bool:
        """Whether an attempt came to nothing and may have left files: Spark numbers attempts from 0 without gaps."""
        return self._last_attempt + 1 > self._finished

    def reports(
        self, snapshot: DistributedSnapshot, shards: Sequence[Shard], storage: Mapping[str, str], run: int
    ) -> Iterator[Report]:
        """One report per shard, in the order in which they finish."""
        inbox: queue.Queue[Report | _Failure | BaseException | None] = queue.Queue()
        group = f"frazil-{snapshot.commit_uuid}-{run}"
        thread = threading.Thread(target=self._run, args=(inbox, group, snapshot, shards, storage, run), daemon=True)
        thread.start()
        waiting = {shard.name for shard in shards}
        try:
            while waiting:
                item = self._next(inbox)
                if isinstance(item, Report) and item.shard in waiting:
                    waiting.remove(item.shard)
                    self._finished += 1
                    self._last_attempt = max(self._last_attempt, item.attempt % _ATTEMPTS_PER_RUN)
                    yield item
                elif isinstance(item, _Failure):
                    raise item.to_error()
                elif isinstance(item, BaseException):
                    raise _describe(item) from item
        finally:
            if waiting:
                self._context.cancelJobGroup(group)
            thread.join(timeout=30)

    def _next(self, inbox: queue.Queue[Any]) -> Any:
        while not self._stopped.is_set():
            try:
                return inbox.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
        raise errors.Interrupted("the run was stopped; nothing was published")

    def _run(
        self,
        inbox: queue.Queue[Any],
        group: str,
        snapshot: DistributedSnapshot,
        shards: Sequence[Shard],
        storage: Mapping[str, str],
        run: int,
    ) -> None:
        home = self._context.accumulator([], _Inbox(inbox.put))

        def write(shard: Shard) -> None:
            home.add([_attempt(snapshot, shard, storage, run)])

        self._context.setJobGroup(group, f"frazil ingest {snapshot.name}", interruptOnCancel=True)
        try:
            self._context.parallelize(shards, len(shards)).foreach(write)
        except Exception as error:  # noqa: BLE001  it is raised again on the main thread
            inbox.put(error)


def _attempt(snapshot: DistributedSnapshot, shard: Shard, storage: Mapping[str, str], run: int) -> Report | _Failure:
    context = TaskContext.get()
    attempt = run * _ATTEMPTS_PER_RUN + (context.taskAttemptId() if context else 0)
    try:
        return write_shard(snapshot.with_storage(storage), shard.name, shard.batches(storage), attempt=attempt)
    except errors.FrazilError as error:
        if error.retryable:
            raise
        return _Failure(type(error).__name__, str(error))


def _describe(error: BaseException) -> errors.FrazilError:
    """What a failed Spark job is about, without its stack trace."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [
        line for line in lines if not line.startswith(("at ", "File ", "Traceback", "Driver stacktrace", "Caused by"))
    ]
    causes = [line for line in telling if "Error: " in line or "Exception: " in line]
    cause = (causes or telling or [type(error).__name__])[-1 if causes else 0]
    return errors.WriteFailed(
        f"a Spark task failed {cause if len(cause) < 400 else cause[:400] + '…'}; nothing was published"
    )
