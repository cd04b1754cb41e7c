"""A shard is read in bounded memory, however large it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import pathlib, re, sys
from frazil.sources.open import open_source
(shard,) = open_source([sys.argv[1]], {}).shards(1)
rows = sum(batch.num_rows for batch in shard.batches({}))
# Not getrusage: a process that a large one starts has that one's peak in it.
peak = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())
print(rows, int(peak[1]) // 1024)
"""
LINES = {
    "a.csv": ("id,price,text\n", '%d,%d.25,"some, ""text"" of row %d"\n'),
    "a.jsonl": ("", '{"id": %d, "price": %d.25, "s": {"text": ["some text of row %d"]}}\n'),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_half_a_gigabyte_of_text_takes_far_less_than_that(tmp_path: Path, name: str) -> None:
    head, line = LINES[name]
    block = "".join(line % (number, number, number) for number in range(100_000))
    repeats = 500_000_000 // len(block)
    with (tmp_path / name).open("w") as file:
        file.write(head)
        for _ in range(repeats):
            file.write(block)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    (tmp_path / name).unlink()
    assert done.returncode == 0, done.stderr
    rows, mebibytes = map(int, done.stdout.split())
    assert rows == 100_000 * repeats
    assert mebibytes < 400
