"""The database: where the pointers to metadata files are, and who may move them.

Reads see the newest committed state. A write is a function that is given a connection inside a transaction: it takes
effect as a whole when it returns, and not at all when it raises. On SQLite several writes that wait at the same time share
one transaction, each behind a savepoint of its own, and so one flush to disk.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import QueuePool

from frazil.catalog.migrate import upgrade
from frazil.errors import BadInput, StorageFailed

Result = TypeVar("Result")
Work = Callable[[Connection], Result]

_BUSY_SECONDS = 60
_TRIES_AFTER_DEADLOCK = 5


class Database:
    """An open database with the newest schema. Thread-safe."""

    def __init__(self, url: str, connections: int = 10) -> None:
        self.is_sqlite = make_url(url).get_backend_name() == "sqlite"
        self._writer = _engine(url, connections)
        self._reader = (
            _sqlite_engine(url, connections, autocommit=True) if self.is_sqlite else _autocommit(self._writer)
        )
        try:
            upgrade(self._writer)
        except OperationalError as error:
            shown = make_url(url).render_as_string(hide_password=True)
            raise StorageFailed(f"the database {shown} cannot be opened: {error.orig}") from error
        self._queue = _WriteQueue(self._writer) if self.is_sqlite else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees, statement by statement, what is committed."""
        with self._reader.connect() as connection:
            yield connection

    def write(self, work: Work[Result]) -> Result:
        """Run `work` in one transaction; durable when this returns. What it raises undoes it and is raised here."""
        if self._queue is not None:
            return self._queue.run(work)
        for remaining in reversed(range(_TRIES_AFTER_DEADLOCK)):
            try:
                with self._writer.begin() as connection:
                    return work(connection)
            except OperationalError as error:
                if not remaining or getattr(error.orig, "sqlstate", None) not in {"40001", "40P01"}:
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close every connection."""
        self._writer.dispose()
        self._reader.dispose()


class _WriteQueue:
    """Writes that wait at the same time share one transaction, for each transaction waits for the disk.

    Whoever gets the lock first does the work of all who wait, and the others find theirs done.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: deque[tuple[Work[Any], Future[Any]]] = deque()
        self._writing = threading.Lock()

    def run(self, work: Work[Result]) -> Result:
        done: Future[Result] = Future()
        self._waiting.append((work, done))
        with self._writing:
            if not done.done():
                self._write_together([self._waiting.popleft() for _ in range(len(self._waiting))])
        return done.result()

    def _write_together(self, batch: list[tuple[Work[Any], Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self._engine.begin() as connection:
                if len(batch) == 1:
                    outcomes = [(batch[0][1], batch[0][0](connection), None)]
                else:
                    outcomes = [(done, *_attempt(connection, work)) for work, done in batch]
        except BaseException as error:  # noqa: BLE001  it is raised again in every thread that waits for this transaction
            outcomes = [(done, None, error) for _, done in batch]
        for done, result, failure in outcomes:
            if failure is None:
                done.set_result(result)
            else:
                done.set_exception(failure)


def _attempt(connection: Connection, work: Work[Any]) -> tuple[Any, BaseException | None]:
    """Run one of several writes; what it raises undoes it alone."""
    connection.exec_driver_sql("SAVEPOINT one")
    try:
        result = work(connection)
    except Exception as error:  # noqa: BLE001  it is raised again in the thread that waits for this write
        connection.exec_driver_sql("ROLLBACK TO one")
        connection.exec_driver_sql("RELEASE one")
        return None, error
    connection.exec_driver_sql("RELEASE one")
    return result, None


def _engine(url: str, connections: int) -> Engine:
    parsed = make_url(url)
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise BadInput(f"--db {url}: a catalog needs a database file; write sqlite:////folder/catalog.db")
        return _sqlite_engine(url, connections, autocommit=False)
    if backend in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
        return create_engine(
            parsed,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=_BUSY_SECONDS,
            pool_pre_ping=True,
            hide_parameters=True,
        )
    raise BadInput(f"--db {url}: the catalog keeps its pointers in SQLite or PostgreSQL, not in {backend}")


def _autocommit(engine: Engine) -> Engine:
    """The same connections, each statement a transaction of its own."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def _sqlite_engine(url: str, connections: int, *, autocommit: bool) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=connections if autocommit else 1,
        max_overflow=0,
        hide_parameters=True,  # a message in a log must not hold what was being stored: hashes, keys
        connect_args={"timeout": _BUSY_SECONDS, "isolation_level": None, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # a commit that was acknowledged survives a power cut

    if not autocommit:

        @event.listens_for(engine, "begin")
        def _take_the_lock(connection: Connection) -> None:
            # Not plain BEGIN: a transaction that reads first and finds the lock taken later must start again.
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
