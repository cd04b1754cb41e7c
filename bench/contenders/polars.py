"""Polars: a lazy scan into `LazyFrame.sink_iceberg`."""

from __future__ import annotations

import polars as pl

from bench.contenders.iceberg_table import create_table
from bench.contenders.protocol import Task, answer, timed


def main() -> None:
    task = Task.from_arguments()
    run = timed(lambda: pl.scan_parquet(task.sources).sink_iceberg(create_table(task), mode="append"), task.warehouse)
    answer([run], {"polars": pl.__version__})


if __name__ == "__main__":
    main()
