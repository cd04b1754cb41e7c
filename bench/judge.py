"""What a load really left behind, read by the harness itself, outside the timed part.

A contender is believed only when the table's current snapshot (or the floor's folder) holds every row of the sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyiceberg.table import StaticTable

CHECKED = ("l_orderkey", "l_shipdate")


@dataclass(frozen=True, slots=True)
class Holdings:
    """Rows, two checksums, and the files that hold them."""

    rows: int
    orderkey_sum: int
    shipdate_sum: int
    files: int
    bytes: int
    months_mixed: int

    def lost(self, sources: Holdings) -> str | None:
        """Why this is not what the sources held, or None."""
        mine = (self.rows, self.orderkey_sum, self.shipdate_sum)
        theirs = (sources.rows, sources.orderkey_sum, sources.shipdate_sum)
        if mine == theirs:
            return None
        return f"holds (rows, sum of l_orderkey, sum of l_shipdate) {mine}, but the sources {theirs}"


def holdings(paths: list[str]) -> Holdings:
    """Read the checked columns of these Parquet files."""
    rows = orderkeys = shipdates = 0
    for batch in ds.dataset(paths, format="parquet").to_batches(columns=list(CHECKED)):
        rows += batch.num_rows
        orderkeys += pc.sum(batch["l_orderkey"]).as_py() or 0
        shipdates += pc.sum(batch["l_shipdate"].cast(pa.int32()).cast(pa.int64())).as_py() or 0
    size = sum(Path(path).stat().st_size for path in paths)
    return Holdings(rows, orderkeys, shipdates, len(paths), size, sum(map(mixes_months, paths)))


def mixes_months(path: str) -> bool:
    """Whether the file's rows were shipped in more than one month, by its statistics."""
    metadata = pq.read_metadata(path)
    column = metadata.schema.to_arrow_schema().get_field_index("l_shipdate")
    groups = [metadata.row_group(group).column(column).statistics for group in range(metadata.num_row_groups)]
    first, last = min(group.min for group in groups), max(group.max for group in groups)
    return (first.year, first.month) != (last.year, last.month)


def data_files(folder: Path) -> list[str]:
    """The live data files of the one table under this folder, or its Parquet files when there is no table."""
    metadata = sorted(folder.rglob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    if not metadata:
        return sorted(str(path) for path in folder.rglob("*.parquet"))
    table = StaticTable.from_metadata(str(metadata[-1]))
    return [unquote(urlparse(task.file.file_path).path) for task in table.scan().plan_files()]
