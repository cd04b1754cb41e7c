"""Frazil's library: a descriptor, a writer, a report, a publish, for each append."""

from __future__ import annotations

from typing import TYPE_CHECKING

import frazil
from bench.contenders.appends import TABLE, run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog


def append(catalog: SqlCatalog, rows: pa.Table) -> None:
    table = catalog.load_table(TABLE)
    snapshot = frazil.begin_snapshot(table)
    with frazil.SnapshotWriter(snapshot, shard="0") as writer:
        writer.write(rows)
    frazil.publish_snapshot(table, snapshot, [writer.report])


if __name__ == "__main__":
    run(append)
