"""PyIceberg: the files as one Arrow table into `Table.append`.

A table and not a reader: PyIceberg 0.12 refuses a reader for a partitioned table, and writes the
files of a table in parallel.
"""

from __future__ import annotations

from importlib.metadata import version

import pyarrow.dataset as ds

from bench.contenders.iceberg_table import create_table
from bench.contenders.protocol import Task, answer, timed


def main() -> None:
    task = Task.from_arguments()
    run = timed(lambda: create_table(task).append(ds.dataset(task.sources).to_table()), task.warehouse)
    answer([run], {name: version(name) for name in ("pyiceberg", "pyiceberg-core", "pyarrow")})


if __name__ == "__main__":
    main()
