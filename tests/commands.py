"""The command `frazil` with a lake and a state folder of its own: as a process, or in this one with one Spark for all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.cli.main import frazil as frazil_command
from frazil.snapshot.reservation import reservations
from frazil.snapshot.warehouse import EmbeddedCatalog
from lakes import referenced, stored_locally
from services.processes import wait_until

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

PROGRAM = str(Path(sys.executable).with_name("frazil"))


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` printed, which must be all of stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Frazil:
    """`frazil` in the folder `home`, with the lake `home/lake` and its jobs in `home/state`."""

    def __init__(self, home: Path, here: Callable[[Sequence[str]], Ran]) -> None:
        self.home = home
        self.root = home / "lake"
        self.state = home / "state"
        self._here = here

    def apart(self, name: str) -> Frazil:
        """The command with a home of its own below this one; `here` keeps its jobs with this one's."""
        return Frazil(self.home / name, self._here)

    def here(self, *arguments: str | Path) -> Ran:
        """Run the command in this process, on the Spark that all such runs share."""
        return self._here([str(each) for each in arguments])

    def start(
        self, *arguments: str | Path, environment: Mapping[str, str] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start the command as a process, `before` in front of it. It is its group's leader, as under a shell."""
        own = {"FRAZIL_STATE": str(self.state), "PATH": os.environ["PATH"], "HOME": str(self.home)}
        kept = {key: os.environ[key] for key in ("JAVA_HOME", "LANG", "TMPDIR") if key in os.environ}
        self.home.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [*before, PROGRAM, *map(str, arguments)],
            cwd=self.home,
            env={**kept, **own, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=(self.home / "out").open("wb"),
            stderr=(self.home / "err").open("wb"),
            process_group=0,
        )

    def ended(self, process: subprocess.Popen[bytes]) -> Ran:
        """Wait for a started command, and for everything that it started."""
        code = process.wait(300)
        wait_until(lambda: not self.processes(), Patient(), 60)
        return Ran(code, (self.home / "out").read_text(), (self.home / "err").read_text())

    def run(
        self, *arguments: str | Path, environment: Mapping[str, str] | None = None, before: Sequence[str] = ()
    ) -> Ran:
        """Run the command as a process."""
        return self.ended(self.start(*arguments, environment=environment, before=before))

    def said(self) -> str:
        """What the started command has said on stderr so far."""
        return (self.home / "err").read_text()

    def processes(self, word: str = "") -> list[int]:
        """Everything still running that was started with this state folder and has `word` in its command line."""
        mark = f"FRAZIL_STATE={self.state}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes() and word.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue  # it ended between two looks
        return found

    def workers(self) -> list[int]:
        """Spark's Python workers: the children of its daemon."""
        daemons = self.processes("frazil.spark.daemon")
        return [pid for pid in daemons if _parent(pid) in daemons]

    @property
    def catalog(self) -> EmbeddedCatalog:
        """A client of the lake's catalog."""
        return EmbeddedCatalog(self.root)

    def table(self, name: str = "db.t") -> Table:
        """A table of the lake as it is now."""
        return self.catalog.load_table(name)

    def rows(self, name: str = "db.t") -> int:
        """How many rows PyIceberg reads from a table."""
        return int(self.table(name).scan().to_arrow().num_rows)

    def stored(self) -> set[str]:
        """Every file in the warehouse."""
        return stored_locally(str(self.root / "warehouse"))

    def orphans(self, name: str = "db.t") -> set[str]:
        """The files in the warehouse that a table does not reference."""
        return self.stored() - referenced(self.table(name))

    def reserved(self, name: str = "db.t") -> list[str]:
        """The commits that a table holds reservations for."""
        return [each.commit_uuid for each in reservations(self.table(name).metadata)]

    def job(self) -> str:
        """The newest job."""
        return sorted(path.stem for path in (self.state / "jobs").glob("*.jsonl"))[-1]

    def data_is_being_written(self) -> bool:
        """Whether a data file has been opened."""
        return any(path.endswith(".parquet") for path in self.stored())


class Patient:
    """A process that does not end, for waits that are about something else."""

    args = "something else than a process"

    def poll(self) -> None:
        return None


def said_once(ran: Ran) -> str:
    """The one sentence about the failure, which scripts and people are told alike."""
    told = [line for line in ran.err.splitlines() if line.startswith("frazil: ")]
    message = ran.document["message"]
    assert told == [f"frazil: {message}"]
    assert "\n" not in message
    assert "Traceback" not in ran.err
    return str(message)


def together(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do these at the same time, two by two: most of a run is one core waiting for Spark to start."""
    with ThreadPoolExecutor(2) as pool:
        return [each.result() for each in [pool.submit(work) for work in works]]


def parquet(path: Path, rows: int = 1000, *, first: int = 0, group: int = 250, **columns: Any) -> Path:
    """A Parquet file with the ids from `first` on, a text, a time in January 2024 for each, and `columns`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = range(first, first + rows)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": pa.array([f"row {number % 97}" for number in numbers], pa.string()),
            "ts": pa.array([1_704_067_200_000_000 + number * 3_600_000_000 for number in numbers], pa.timestamp("us")),
            **columns,
        }
    )
    pq.write_table(table, path, row_group_size=group)
    return path


def big_parquet(path: Path, rows: int = 4_000_000) -> Path:
    """A file that takes seconds to write anew: texts that no dictionary holds, in two row groups."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = pa.array(range(rows), pa.int64())
    texts = pa.compute.binary_join_element_wise(numbers.cast(pa.string()), pa.scalar("of many"), " ")
    table = pa.table({"id": numbers, "text": texts, "again": texts, "more": texts})
    pq.write_table(table, path, row_group_size=rows // 2, use_dictionary=False)
    return path


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests that run in this process."""
    from frazil.spark.session import start_session, stop_session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("spark")))
        patch.delenv("FRAZIL_STATE", raising=False)  # its processes are no test's own
        session = start_session("local[2]", "tests", {})
    yield session
    stop_session(session)


@pytest.fixture
def frazil(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Frazil:
    """The command with a lake and a state folder under `tmp_path`."""

    def here(arguments: Sequence[str]) -> Ran:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("FRAZIL_STATE", str(tmp_path / "state"))
        for runner in ("ingest", "ingest_frame"):
            monkeypatch.setattr(f"frazil.spark.{runner}.start_session", lambda *_: request.getfixturevalue("spark"))
            monkeypatch.setattr(f"frazil.spark.{runner}.stop_session", lambda _: None)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        capfd.readouterr()
        try:
            frazil_command(list(arguments), standalone_mode=True)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return Frazil(tmp_path, here)
