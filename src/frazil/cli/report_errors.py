"""The edge where an error becomes one sentence and an exit code."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from frazil.errors import FrazilError, Interrupted


class Output:
    """Where a command's result goes: for people, or as one JSON object alone on stdout."""

    def __init__(self, as_json: bool, stdout: IO[str]) -> None:
        self.as_json = as_json
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

    What child processes print (a JVM, Python workers) goes to the file `log`, which is kept only after a failure.
    """
    with _own_streams(log) as stdout:
        output = Output(as_json, stdout)
        try:
            yield output
        except FrazilError as error:
            if as_json:
                landed = {True: "landed", False: "not landed", None: "unknown"}[error.landed]
                output.document({"outcome": landed, "error": type(error).__name__, "message": str(error)})
            click.echo(f"frazil: {error}", err=True)
            raise SystemExit(error.exit_code) from None
        except BaseException:
            click.echo(f"frazil: what its processes printed is in {log}", err=True)
            raise
        log.unlink(missing_ok=True)


@contextmanager
def _own_streams(log: Path) -> Iterator[IO[str]]:
    """Keep the terminal for this process: its children inherit the log as their stdout and stderr."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("ab") as children, os.fdopen(os.dup(1), "w") as stdout, os.fdopen(os.dup(2), "w", 1) as stderr:
        os.dup2(children.fileno(), 1)
        os.dup2(children.fileno(), 2)
        sys.stdout = sys.stderr = stderr
        try:
            yield stdout
        finally:
            stdout.flush()
            os.dup2(stdout.fileno(), 1)
            os.dup2(stderr.fileno(), 2)
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


class StopSignals:
    """Turns Ctrl-C and SIGTERM into a call of whatever the work at hand wants to be told, or into Interrupted."""

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

    def __call__(self, number: int, _frame: object) -> None:
        """The signal handler."""
        if self._told is None:
            raise Interrupted(f"stopped by signal {number}; nothing was published")
        self._told()
