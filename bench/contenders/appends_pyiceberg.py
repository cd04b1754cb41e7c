"""PyIceberg: load the table and append, which is what every small job does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.contenders.appends import TABLE, run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog


def append(catalog: SqlCatalog, rows: pa.Table) -> None:
    catalog.load_table(TABLE).append(rows)


if __name__ == "__main__":
    run(append)
