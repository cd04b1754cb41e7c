"""Write Parquet files again with plain strings: `python -m bench.plain_strings FOLDER TARGET`.

tpchgen-cli embeds an Arrow schema that says `string_view`. PyArrow cannot filter or take from that type, PyIceberg's
partitioned append fails on it, and Daft does not open such a file at all: three contenders would be measured on an
accident of the generator. Everything else stays as generated: the rows, their order, the row groups (7 MiB each),
Snappy, dictionaries with PyArrow's and the generator's common defaults, statistics, required columns, field ids.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def rewrite(source: Path, target: Path) -> None:
    """One file, row group by row group."""
    reader = pq.ParquetFile(source)
    schema = plain(reader.schema_arrow)
    with pq.ParquetWriter(target, schema, compression="snappy") as writer:
        for group in range(reader.num_row_groups):
            writer.write_table(reader.read_row_group(group).cast(schema))


def plain(schema: pa.Schema) -> pa.Schema:
    """The same schema, `string` where it says `string_view`."""
    return pa.schema(
        [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in schema]
    )


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.parquet")):
        rewrite(path, Path(sys.argv[2]) / path.name)
