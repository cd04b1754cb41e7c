"""DataFrames written to a lake, and how such a write fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.snapshot.reservation import ended, reservations
from frazil.snapshot.warehouse import EmbeddedCatalog
from lakes import referenced, stored_locally
from readers import read_with_duckdb, read_with_pyiceberg

if TYPE_CHECKING:
    from pyarrow import Table as Rows
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame


class FrameLake:
    """A lake in a folder that DataFrames are written to by its `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, df: DataFrame, name: str = "db.t", mode: str = "append", **options: Any) -> None:
        """Write a DataFrame. Options are named with `_` for `-`."""
        named = {key.replace("_", "-"): value for key, value in options.items()}
        df.write.format("frazil").options(root=str(self.root), **named).mode(mode).save(name)

    def table(self, name: str = "db.t") -> Table:
        """A table as it is now."""
        return EmbeddedCatalog(self.root).load_table(name)

    def rows(self, name: str = "db.t") -> Rows:
        """What DuckDB and PyIceberg agree is in a table."""
        table = self.table(name)
        found = read_with_duckdb(table)
        assert repr(found.to_pylist()) == repr(read_with_pyiceberg(table).to_pylist())  # NaN equals nothing
        return found

    def ids(self, name: str = "db.t") -> list[int]:
        """The ids in a table."""
        return sorted(self.rows(name)["id"].to_pylist())

    def leftovers(self, name: str = "db.t") -> set[str]:
        """Files in the warehouse that the table does not reference, and reservations, or marks of such, that it holds."""
        table = self.table(name)
        held = {each.commit_uuid for each in [*reservations(table.metadata), *ended(table.metadata)]}
        return (stored_locally(str(self.root / "warehouse")) - referenced(table)) | held

    def stored(self) -> set[str]:
        """Every file in the warehouse."""
        return stored_locally(str(self.root / "warehouse"))
