"""A process ends at the step that the environment names, and only there."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import frazil
from frazil.steps import STEPS, step
from frazil.testing import crash_environment

PROGRAM = """
from frazil.steps import step
for number in range(4):
    step("write:file-opened")
    step("write:file-closed")
    print(number, flush=True)
"""


def run(environment: dict[str, str], program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )


def steps_in_code() -> list[str]:
    """The argument of every call of `step` in the package, as written."""
    files = Path(frazil.__file__).parent.rglob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    calls = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return [ast.literal_eval(call.args[0]) for call in calls if call.func.id == "step"]


def test_a_process_without_the_variable_passes_every_step() -> None:
    assert run({}).stdout.split() == ["0", "1", "2", "3"]


def test_a_process_is_killed_at_the_step_that_is_named() -> None:
    ended = run(crash_environment("write:file-closed"))
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "")


def test_a_process_is_killed_on_the_pass_that_is_named() -> None:
    ended = run(crash_environment("write:file-closed", nth=3))
    assert (ended.returncode, ended.stdout.split()) == (-signal.SIGKILL, ["0", "1"])


def test_with_a_mark_one_process_alone_is_killed(tmp_path: Path) -> None:
    environment = crash_environment("write:file-opened", mark=tmp_path / "crashed")
    assert run(environment).returncode == -signal.SIGKILL
    assert (tmp_path / "crashed").exists()
    assert run(environment).returncode == 0


def test_an_unknown_step_is_refused_where_a_test_asks_for_it() -> None:
    with pytest.raises(ValueError, match="no step is named 'publish:lunch'"):
        crash_environment("publish:lunch")
    assert "no step is named 'publish:lunch'" in run({"FRAZIL_CRASH_AT": "publish:lunch"}).stderr


def test_an_unknown_step_in_the_code_is_refused_while_a_test_is_at_work() -> None:
    ended = run(crash_environment("write:file-opened"), "from frazil.steps import step\nstep('lunch')")
    assert "no step is named 'lunch'" in ended.stderr


def test_a_step_costs_nothing_but_a_call_without_the_variable() -> None:
    step("not even looked up")


def test_the_steps_in_the_code_are_the_known_ones() -> None:
    assert set(steps_in_code()) == set(STEPS)
