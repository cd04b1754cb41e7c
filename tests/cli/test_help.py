"""`frazil` answers for help before it pays for anything heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys
from frazil.cli.main import frazil
try:
    frazil(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print([name for name in ("pyarrow", "pyiceberg", "pyspark", "numpy", "rich") if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["ingest", "--help"], ["jobs", "--help"], ["sweep", "-h"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, timeout=60)
    assert ran.stderr.strip() == "[]"
    assert ran.stdout


def test_the_help_of_ingest_names_every_exit_code() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "ingest", "--help"], capture_output=True, text=True, timeout=60
    )
    for words in ("0 landed", "1 failed", "2 usage", "3 conflict", "4 it is not known"):
        assert words in ran.stdout
