"""DuckDB over an Iceberg table: a reader that shares no code with Frazil."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

import duckdb


class LakeReader:
    """Queries one table by its metadata file. The Iceberg extension comes from a wheel, so nothing is downloaded."""

    def __init__(self, metadata_location: str) -> None:
        self._scan = f"iceberg_scan('{metadata_location}')"
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        for name in ("avro", "iceberg"):
            wheel = importlib.resources.files(f"duckdb_extension_{name}")
            file = wheel / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
            self._connection.load_extension(str(file))
        self._connection.execute("SET TimeZone = 'UTC'")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, in which `{table}` stands for the table."""
        return self._connection.execute(query.format(table=self._scan)).fetchall()

    def files_read(self, query: str) -> int:
        """How many data files DuckDB opens for a query; the rest it pruned."""
        plan = json.loads(self.rows(f"EXPLAIN (ANALYZE, FORMAT json) {query}")[0][1])
        return sum(_files_read(plan))


def _files_read(node: dict[str, Any]) -> list[int]:
    here = [int(node["extra_info"]["Total Files Read"])] if "Total Files Read" in node.get("extra_info", {}) else []
    return here + [files for child in node.get("children", []) for files in _files_read(child)]
