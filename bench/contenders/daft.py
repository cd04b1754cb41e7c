"""Daft: `read_parquet` into `DataFrame.write_iceberg`."""

from __future__ import annotations

import daft

from bench.contenders.iceberg_table import create_table
from bench.contenders.protocol import Task, answer, timed


def main() -> None:
    task = Task.from_arguments()
    run = timed(lambda: daft.read_parquet(task.sources).write_iceberg(create_table(task)), task.warehouse)
    answer([run], {"daft": daft.__version__})


if __name__ == "__main__":
    main()
