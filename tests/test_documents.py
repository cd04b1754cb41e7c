"""What the documents show is executed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from commands import Frazil
from frazil.catalog.database import Database
from frazil.catalog.guard_settings import GuardSettings
from frazil.catalog.namespace_rows import create
from services.frazil_catalog import FrazilCatalog
from services.processes import free_ports, stop, wait_until

CHECKOUT = Path(__file__).parent.parent


def python_blocks(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (CHECKOUT / document).read_text(), re.DOTALL)


def test_the_readme_s_example_runs(tmp_path: Path) -> None:
    (example,) = python_blocks("README.md")
    program = (
        f"WAREHOUSE = {str(tmp_path)!r}\n{example}\nprint(landed.snapshot_id == table.metadata.current_snapshot_id)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_the_library_page_s_example_runs(tmp_path: Path) -> None:
    setup, finish = python_blocks("README.md")[0].split("reports = []")[0], "assert report.rows == 2"
    (example,) = python_blocks("docs/library.md")
    batches = "batches = [pa.table({'id': [1, 2], 'city': ['a', None]})]"
    program = "\n".join([f"WAREHOUSE = {str(tmp_path)!r}", setup, batches, example, finish])
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_example_of_a_format_runs(frazil: Frazil) -> None:
    page = (CHECKOUT / "docs" / "formats.md").read_text()
    examples = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 5
    frazil.home.mkdir(exist_ok=True)
    for example in examples:
        prepare, command = example.strip().split("\n")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(prepare, shell=True, cwd=frazil.home, env={**os.environ, "PATH": path}, check=True)
        program, *arguments = shlex.split(command)
        ran = frazil.here(*arguments, "--root", frazil.root)
        assert (program, ran.code) == ("frazil", 0), ran.err


def test_the_example_of_registering_runs(frazil: Frazil) -> None:
    (example,) = re.findall(r"```sh\n(.*?)```", (CHECKOUT / "docs" / "register.md").read_text(), re.DOTALL)
    prepare, command = example.strip().split("\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(prepare, shell=True, cwd=frazil.home, env={**os.environ, "PATH": path}, check=True)
    program, *arguments = shlex.split(command)
    ran = frazil.here(*arguments, "--root", frazil.root)
    assert (program, ran.code) == ("frazil", 0), ran.err
    assert frazil.rows("db.sales") == 2


def test_every_option_of_register_is_documented() -> None:
    help_text = subprocess.run(
        [str(Path(sys.executable).with_name("frazil")), "register", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    options = set(re.findall(r"(--[a-z-]+)", help_text)) - {"--help"}
    page = (CHECKOUT / "docs" / "register.md").read_text()
    assert {option for option in options if option not in page} == set()


def python_free(document: str) -> str:
    return re.sub(r"```python\n.*?```", "", (CHECKOUT / document).read_text(), flags=re.DOTALL)


def test_the_catalog_page_s_example_runs(frazil_catalog: FrazilCatalog, tmp_path: Path) -> None:
    (example,) = python_blocks("docs/catalog.md")
    program = f"URI = {frazil_catalog.uri!r}\n{example}\nprint(type(catalog.list_namespaces()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "<class 'list'>"), done.stderr


def test_the_schema_page_s_example_runs(tmp_path: Path) -> None:
    setup = python_blocks("README.md")[0].split("snapshot = ")[0]
    program = "\n".join([f"WAREHOUSE = {str(tmp_path)!r}", setup, *python_blocks("docs/schema.md")])
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "document",
    ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((CHECKOUT / "docs").glob("*.md")))],
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    page = CHECKOUT / document
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_the_security_page_s_commands_and_client_work(frazil: Frazil) -> None:
    commands = re.findall(
        r"^    frazil (catalog (?:role|grant|principal) .*)$", python_free("docs/catalog-security.md"), re.M
    )
    *before, last = [["catalog", "--root", str(frazil.root), *command.split()[1:]] for command in commands]
    for command in before:
        assert frazil.run(*command).code == 0, command
    made = frazil.run(*last, "--json").document
    database = Database(f"sqlite:///{frazil.root}/catalog.db")
    database.write(lambda connection: create(connection, "frazil", ("db",), {}))
    database.close()
    (port,) = free_ports(1)
    process = frazil.start("catalog", "--root", str(frazil.root), "--port", str(port), "--authentication")
    try:
        wait_until(lambda: "on http" in (frazil.home / "out").read_text(), process)
        (example,) = python_blocks("docs/catalog-security.md")
        known = f"CLIENT_ID, CLIENT_SECRET = {made['client_id']!r}, {made['client_secret']!r}\n"
        program = known + example.replace("8181", str(port))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        stop(process)


def test_every_option_of_the_guard_is_documented() -> None:
    pages = "".join((CHECKOUT / "docs" / name).read_text() for name in ("catalog-security.md", "catalog-operations.md"))
    options = {"--" + setting.name.replace("_", "-") for setting in fields(GuardSettings)}
    assert {option for option in options if option not in pages and option.replace("--", "--no-") not in pages} == set()


def test_every_option_of_ingest_is_documented() -> None:
    help_text = subprocess.run(
        [str(Path(sys.executable).with_name("frazil")), "ingest", "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = set(re.findall(r"(--[a-z-]+)", help_text)) - {"--help"}
    page = (CHECKOUT / "docs" / "ingest.md").read_text()
    assert {option for option in options if option not in page} == set()


def test_every_option_of_the_catalog_is_documented() -> None:
    help_text = subprocess.run(
        [str(Path(sys.executable).with_name("frazil")), "catalog", "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = set(re.findall(r"--(?:no-)?([a-z0-9-]+)", help_text)) - {"help"}
    pages = "".join(path.read_text() for path in (CHECKOUT / "docs").glob("catalog*.md"))
    assert {option for option in options if f"--{option}" not in pages and f"--no-{option}" not in pages} == set()


def test_the_example_of_the_catalog_s_documents_runs(tmp_path: Path) -> None:
    (example,) = python_blocks("docs/catalog-documents.md")
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
