"""Frazil: the command a user types, as a process of its own; its JSON tells job time and session start apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from bench.contenders.protocol import Run, Task, answer

COMMAND = Path(sys.executable).with_name("frazil")


def main() -> None:
    task = Task.from_arguments()
    partition = ["--partition-by", "month(l_shipdate)"] if task.by_month else []
    os.sync()
    command = [str(COMMAND), "ingest", *task.sources, "bench.lineitem", "--root", task.warehouse, *partition, "--json"]
    ended = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if ended.returncode:
        sys.exit(ended.returncode)  # the command has said why, on standard error
    result = json.loads(ended.stdout)
    run = Run(result["job_seconds"], task.warehouse, session_seconds=result["session_seconds"])
    answer([run], {name: version(name) for name in ("frazil", "pyspark", "pyarrow")})


if __name__ == "__main__":
    main()
