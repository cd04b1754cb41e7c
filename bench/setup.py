"""Make what the benchmark stands on: the peers' virtual environments from their locks, and the data set.

    python -m bench.setup [SCALE...]

Standard library only. A step already done for the present lock is skipped: safe to call before every run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from typing import TYPE_CHECKING

from bench.places import CHECKOUT, PEERS, SPARK35, interpreter, lineitem

if TYPE_CHECKING:
    from pathlib import Path

PARTS = 16
LOCKS = {PEERS: "peers.txt", SPARK35: "spark35.txt"}


def ensure_environments() -> None:
    """Both virtual environments exist and hold what their locks say."""
    for environment, lock in LOCKS.items():
        ensure_environment(environment, CHECKOUT / "requirements" / lock)


def ensure_environment(environment: Path, lock: Path) -> None:
    stamp = environment / "lock.sha256"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"bench: installing {lock.name} into {environment.name}", file=sys.stderr)
    venv.create(environment, with_pip=True, clear=True)
    pip = [str(interpreter(environment)), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--require-hashes", "--requirement", str(lock)], check=True)
    stamp.write_text(wanted)


def ensure_lineitem(scale: float) -> Path:
    """TPC-H lineitem at this scale as 16 Parquet files: see `bench.plain_strings` for how they are encoded."""
    folder = lineitem(scale)
    if not folder.exists():
        print(f"bench: generating {folder.name}", file=sys.stderr)
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        generate(scale, unfinished)
        rewrite = [str(interpreter(PEERS)), "-m", "bench.plain_strings", str(unfinished / "lineitem"), str(unfinished)]
        subprocess.run(rewrite, check=True, cwd=CHECKOUT)
        shutil.rmtree(unfinished / "lineitem")
        unfinished.rename(folder)
    return folder


def generate(scale: float, folder: Path) -> None:
    folder.mkdir(parents=True)
    generator = interpreter(PEERS).with_name("tpchgen-cli")
    options = ["--tables", "lineitem", "--parts", str(PARTS), "--output-dir", str(folder), "--quiet"]
    subprocess.run([str(generator), "parquet", "--scale-factor", str(scale), *options], check=True)


if __name__ == "__main__":
    ensure_environments()
    for argument in sys.argv[1:]:
        ensure_lineitem(float(argument))
