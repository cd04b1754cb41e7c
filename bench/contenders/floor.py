"""The floor: PyArrow reads Parquet and writes Parquet in two processes, and no table format is anywhere near.

Unpartitioned, each source file becomes one file. By month, each process keeps one plain `ParquetWriter` per month.
zstd at PyArrow's default level, which is also what PyIceberg writes. No reading threads: the two processes have both
cores already, and a floor that competes with itself would flatter everyone else.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.contenders.protocol import PROCESSES, Task, answer, timed


def copy_files(sources: list[str], folder: str) -> None:
    for source in sources:
        pq.write_table(
            pq.ParquetFile(source).read(use_threads=False), Path(folder) / Path(source).name, compression="zstd"
        )


def copy_by_month(sources: list[str], folder: str) -> None:
    writers: dict[int, pq.ParquetWriter] = {}
    for source in sources:
        table = pq.ParquetFile(source).read(use_threads=False)
        for month, batch in months_of(table):
            if month not in writers:
                path = Path(folder) / f"month={month}-{Path(sources[0]).stem}.parquet"
                writers[month] = pq.ParquetWriter(path, table.schema, compression="zstd")
            writers[month].write_batch(batch)
    for writer in writers.values():
        writer.close()


def months_of(table: pa.Table) -> list[tuple[int, pa.RecordBatch]]:
    """The rows of each month, as one batch."""
    shipped = table["l_shipdate"]
    month = pc.add(pc.multiply(pc.year(shipped), 12), pc.month(shipped))
    order = pc.sort_indices(month)
    ordered = table.take(order)
    counts = sorted((count["values"], count["counts"]) for count in pc.value_counts(month).to_pylist())
    batches, start = [], 0
    for value, rows in counts:
        batches.append((value, ordered.slice(start, rows).combine_chunks().to_batches()[0]))
        start += rows
    return batches


def main() -> None:
    task = Task.from_arguments()
    folder = Path(task.warehouse)
    copy = copy_by_month if task.by_month else copy_files
    with ProcessPoolExecutor(PROCESSES) as pool:
        list(pool.map(abs, range(PROCESSES)))  # both processes are up before the clock starts
        parts = [task.sources[part::PROCESSES] for part in range(PROCESSES)]
        run = timed(lambda: list(pool.map(copy, parts, [task.warehouse] * PROCESSES)), folder)
    answer([run], {"pyarrow": pa.__version__})


if __name__ == "__main__":
    main()
