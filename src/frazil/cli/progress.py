"""How a run looks on a terminal."""

from __future__ import annotations

from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def human_bytes(size: float) -> str:
    """`1.5 GB`, as people say it."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


class TerminalProgress:
    """A bar with rows, bytes and shards; plain lines where `stream` is not a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._console = Console(file=stream)
        self._bar = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task: TaskID = self._bar.add_task("", total=None, detail="")
        self._rows = self._bytes = self._done = 0
        self._total: dict[str, int] = {}

    def __enter__(self) -> TerminalProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def phase(self, text: str) -> None:
        """What is being done now."""
        self._bar.update(self._task, description=text)
        if not self._console.is_terminal:
            self._console.print(f"frazil: {text}", highlight=False, soft_wrap=True)

    def planned(self, job_id: str, rows: int, size: int, shards: int) -> None:
        """The work is known; the bar fills by bytes, as row counts differ in weight (and text does not tell its own)."""
        self._total = {"rows": rows, "bytes": size, "shards": shards}
        self._bar.update(self._task, total=max(size, 1), completed=0, detail=self._detail())
        self._console.print(
            f"job {job_id}: {f'{rows:,} rows, ' if rows else ''}{human_bytes(size)} in {shards} shards "
            f"(if it is killed: frazil ingest --resume {job_id})",
            highlight=False,
            soft_wrap=True,
        )

    def accepted(self, rows: int, size: int) -> None:
        """One more shard."""
        self._rows += rows
        self._bytes += size
        self._done += 1
        self._bar.update(self._task, completed=self._bytes, detail=self._detail())

    def _detail(self) -> str:
        total = self._total
        rows = f"{self._rows:,}/{total['rows']:,}" if total["rows"] else f"{self._rows:,}"
        return (
            f"{rows} rows  {human_bytes(self._bytes)}/{human_bytes(total['bytes'])}  "
            f"{self._done}/{total['shards']} shards"
        )


class SilentProgress:
    """For scripts: says nothing."""

    def __enter__(self) -> SilentProgress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def phase(self, text: str) -> None:
        """Nothing."""

    def planned(self, *_: Any) -> None:
        """Nothing."""

    def accepted(self, *_: Any) -> None:
        """Nothing."""
