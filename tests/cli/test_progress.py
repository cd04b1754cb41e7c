"""How a run looks while it goes on."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess

import pytest

from commands import PROGRAM, Frazil, big_parquet, parquet
from frazil.cli.progress import TerminalProgress, human_bytes


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_000_000_000, "2.0 GB"), (3e12, "3.0 TB")]
)
def test_sizes_are_said_as_people_say_them(size: float, text: str) -> None:
    assert human_bytes(size) == text


def test_without_a_terminal_there_are_plain_whole_lines() -> None:
    stream = io.StringIO()
    with TerminalProgress(stream) as progress:
        progress.phase("reading footers")
        progress.planned("20240101-000000-123abcd", 1_234_567, 9_000_000, 12)
        progress.accepted(1000, 500)
    job = "20240101-000000-123abcd"
    assert stream.getvalue().splitlines() == [
        "frazil: reading footers",
        f"job {job}: 1,234,567 rows, 9.0 MB in 12 shards (if it is killed: frazil ingest --resume {job})",
    ]


def test_rows_that_are_not_known_beforehand_are_left_out() -> None:
    stream = io.StringIO()
    with TerminalProgress(stream) as progress:
        progress.planned("20240101-000000-123abcd", 0, 9_000_000, 12)
    assert stream.getvalue().startswith("job 20240101-000000-123abcd: 9.0 MB in 12 shards (")


def test_without_a_terminal_the_phases_are_on_stderr_and_the_summary_on_stdout(frazil: Frazil) -> None:
    ran = frazil.here("ingest", parquet(frazil.home / "a.parquet"), "db.t", "--root", frazil.root)
    phases = [line.removeprefix("frazil: ") for line in ran.err.splitlines() if line.startswith("frazil: ")]
    assert phases == ["looking at the sources", "starting Spark", "writing", "publishing"]
    assert "\x1b" not in ran.err + ran.out
    assert ran.out.startswith("db.t: 1,000 rows in 2 files")


@pytest.mark.slow
def test_on_a_terminal_a_bar_shows_rows_bytes_and_shards(frazil: Frazil) -> None:
    source = big_parquet(frazil.home / "a.parquet", 1_000_000)
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "ingest", source, "db.t", "--root", frazil.root, "--shard-size", "1000000"],
        env={**os.environ, "FRAZIL_STATE": str(frazil.state), "TERM": "xterm", "COLUMNS": "140"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=other_end,
    )
    os.close(other_end)
    shown = _everything(terminal)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, shown
    assert out.startswith(b"db.t: 1,000,000 rows")
    assert re.search(r"writing .*━", shown)
    assert "0/1,000,000 rows" in shown
    assert "0/2 shards" in shown
    assert re.search(r"MB/\d+\.\d MB", shown) or re.search(r"0 B/\d+\.\d MB", shown)


def _everything(terminal: int) -> str:
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(terminal)
    return b"".join(pieces).decode(errors="replace")
