"""The edge where an error becomes one sentence and an exit code."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import click

from frazil.errors import FrazilError, Interrupted, NotLanded, StorageFailed

_ELSEWHERE = "set FRAZIL_STATE to a folder that can"


class Output:
    """Where a command's result goes: for people, or as one JSON object alone on stdout."""

    def __init__(self, as_json: bool, stdout: IO[str], terminal: IO[str]) -> None:
        self.as_json = as_json
        self.terminal = terminal
        self._stdout = stdout

    def document(self, value: dict[str, Any]) -> None:
        """Print the one JSON object."""
        print(json.dumps(value), file=self._stdout, flush=True)

    def text(self, value: str) -> None:
        """Print for people."""
        print(value, file=self._stdout, flush=True)


@contextmanager
def command_output(as_json: bool, log: Path) -> Iterator[Output]:
    """Run a command's body: stdout is kept for its result, and an error of ours becomes a sentence and an exit code.

    What libraries and child processes print (a JVM, Python workers) goes to the file `log`, which is kept only after a
    failure and if there is something in it.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        children = log.open("ab", buffering=0)
    except OSError as error:
        _tell(
            Output(as_json, sys.stdout, sys.stderr),
            StorageFailed(f"{log.parent} cannot be written: {error.strerror}; {_ELSEWHERE}"),
        )
    with children, _own_streams(children) as (stdout, terminal):
        output = Output(as_json, stdout, terminal)
        try:
            yield output
        except FrazilError as error:
            if type(error.__cause__).__module__.startswith(("pyspark", "py4j")):
                error.add_note(f"what Spark printed is in {log}")
            _tell(output, error)
        except KeyboardInterrupt:
            _tell(output, Interrupted("the run was stopped; nothing was published"))
        except Exception as error:  # noqa: BLE001  the last edge: a library's error that nobody has translated
            children.write(traceback.format_exc().encode())
            _tell(output, NotLanded(f"{_first_line(error)}; the whole story is in {log}"))
        finally:
            if log.stat().st_size == 0:
                log.unlink()
    log.unlink(missing_ok=True)


def _tell(output: Output, error: FrazilError) -> NoReturn:
    """One sentence on stderr, the same for scripts on stdout, and the exit code."""
    notes = getattr(error, "__notes__", [])
    if output.as_json:
        landed = {True: "landed", False: "not landed", None: "unknown"}[error.landed]
        told = {"outcome": landed, "error": type(error).__name__, "message": str(error), "notes": notes}
        output.document(told)
    for text in (str(error), *notes):
        click.echo(f"frazil: {text}", file=output.terminal)
    raise SystemExit(error.exit_code)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().split("\n")[0]


@contextmanager
def _own_streams(children: IO[bytes]) -> Iterator[tuple[IO[str], IO[str]]]:
    """Keep stdout and stderr for whoever holds what this gives; everybody else, child processes too, gets the log."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = sys.stdout, sys.stderr
    with (
        os.fdopen(os.dup(1), "w") as stdout,
        os.fdopen(os.dup(2), "w", 1) as terminal,
        os.fdopen(os.dup(children.fileno()), "w", 1) as others,
    ):
        os.dup2(children.fileno(), 1)
        os.dup2(children.fileno(), 2)
        sys.stdout = sys.stderr = others
        try:
            yield stdout, terminal
        finally:
            stdout.flush()
            os.dup2(stdout.fileno(), 1)
            os.dup2(terminal.fileno(), 2)
            sys.stdout, sys.stderr = before


class StopSignals:
    """Turns Ctrl-C and SIGTERM into a call of whatever the work at hand wants to be told, or into KeyboardInterrupt."""

    def __init__(self) -> None:
        self._told: Callable[[], None] | None = None

    @classmethod
    def install(cls) -> StopSignals:
        """Take over Ctrl-C and SIGTERM."""
        signals = cls()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signals)
        return signals

    def tell(self, stop: Callable[[], None]) -> None:
        """From now on, a signal calls `stop`."""
        self._told = stop

    def __call__(self, _number: int, _frame: object) -> None:
        """The signal handler."""
        if self._told is None:
            raise KeyboardInterrupt  # not an Exception, which libraries take for their own
        self._told()
