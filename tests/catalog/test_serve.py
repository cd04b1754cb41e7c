"""Listening, serving and ending."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from frazil.catalog.serve import is_loopback, listen
from frazil.errors import StorageFailed
from services.frazil_catalog import FrazilCatalog, running_catalog


def run(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from frazil.cli.main import main; main()", "catalog", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def workers_of(server: FrazilCatalog) -> set[int]:
    return {child.pid for child in psutil.Process(server.process.pid).children()}


def test_it_tells_loudly_that_nobody_is_asked_who_they_are(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake") as server:
        assert "WARNING: no authentication" in (server.root / "server.log").read_text()


def test_it_does_not_listen_elsewhere_without_authentication(tmp_path: Path) -> None:
    done = run("--root", str(tmp_path), "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "--insecure-without-authentication" in done.stderr


@pytest.mark.parametrize(
    "options, sentence",
    [
        (("--db", "mysql://h/db"), "SQLite or PostgreSQL"),
        (("--db", "postgresql://127.0.0.1:1/db"), "cannot be opened"),
        (("--warehouse", "/plain/folder"), "is no location"),
        (("--storage", "x"), "write KEY=VALUE"),
        (("--root", "/proc/lake"), "choose another --root"),
    ],
)
def test_bad_input_is_told_in_a_sentence_before_anybody_listens(
    tmp_path: Path, options: tuple[str, str], sentence: str
) -> None:
    done = run("--root", str(tmp_path), "--port", "0", *options)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_not_shared(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake") as server, pytest.raises(StorageFailed, match="choose another --port"):
        listen("127.0.0.1", server.port)


def test_loopback_is_told_from_the_rest() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_a_worker_that_dies_is_replaced_and_all_end_with_the_server(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake", "--workers", "3") as server:
        before = workers_of(server)
        assert len(before) == 3
        time.sleep(2.5)  # one that dies sooner after its start is taken for one that cannot live
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while (len(now := workers_of(server)) < 3 or victim in now) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert victim not in now and len(now) == 3
        assert server.is_up()
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert not any(psutil.pid_exists(each) for each in now)


def test_a_server_that_is_told_to_end_ends_well(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake") as server:
        server.process.terminate()
        assert server.process.wait(30) == 0


def test_the_workers_of_a_server_that_was_killed_end_too(tmp_path: Path) -> None:
    with running_catalog(tmp_path / "lake", "--workers", "2") as server:
        workers = workers_of(server)
        server.process.kill()
        server.process.wait(10)
        deadline = time.monotonic() + 20
        while any(psutil.pid_exists(each) for each in workers) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(psutil.pid_exists(each) for each in workers)
