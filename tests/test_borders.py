"""The borders between the parts: who may import whom, at the top of a file or inside a function."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import frazil

PACKAGE = Path(frazil.__file__).parent

BELOW: dict[str, set[str]] = {
    "errors": set(),
    "steps": {"errors"},
    "settings": {"errors", "steps"},
    "snapshot": {"errors", "steps", "settings"},
    "catalog": {"errors", "steps", "settings"},
    "scan": {"errors", "steps", "settings", "snapshot"},
    "sources": {"errors", "steps", "settings", "snapshot"},
    "jobs": {"errors", "steps", "settings", "snapshot"},
    "testing": {"errors", "steps", "settings", "snapshot", "sources", "jobs"},
    "spark": {"errors", "steps", "settings", "snapshot", "scan", "sources", "jobs"},
    "cli": {"errors", "steps", "settings", "snapshot", "scan", "sources", "jobs", "spark", "catalog"},
}
"""What each part stands on. The package's own `__init__` re-exports and stands on nothing that is checked here."""

NOT_IN_THE_PROTOCOL = {"pyspark", "py4j", "grpc", "starlette", "fastapi", "uvicorn", "flask", "click", "rich"}

FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The dotted names of all modules that a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def parts_imported(path: Path) -> set[str]:
    """The parts of the package that a file imports; a public name taken from `frazil` itself counts as that name."""
    return {name.split(".")[1] for name in imported(path) if name.split(".")[0] == "frazil" and "." in name}


def test_every_part_has_its_place() -> None:
    assert {part_of(path) for path in FILES} <= BELOW.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_what_lies_below_its_part_and_nothing_else(path: Path) -> None:
    part = part_of(path)
    assert parts_imported(path) <= BELOW[part] | {part}


@pytest.mark.parametrize(
    "path", [path for path in FILES if part_of(path) in ("snapshot", "scan")], ids=lambda path: path.name
)
def test_the_protocol_knows_no_engine_and_no_server(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path)} & NOT_IN_THE_PROTOCOL


def test_nothing_that_is_shipped_to_work_needs_the_parts_for_tests() -> None:
    users = {path for path in FILES if "testing" in parts_imported(path)}
    assert {part_of(path) for path in users} <= {"testing"}


def test_an_import_inside_a_function_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("def f():\n    from frazil.spark import session\n    import frazil.cli.main\n")
    assert parts_imported(file) == {"spark", "cli"}
