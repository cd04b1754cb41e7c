"""The data source `frazil`. Spark makes one wherever it needs one; each of its parts has a module of its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceWriter
    from pyspark.sql.types import StructType

# Each method imports what it needs: Spark imports this module in every process that looks for data sources.


class FrazilDataSource(DataSource):  # type: ignore[misc]
    """`df.write.format("frazil")` and `spark.read.format("frazil")`. What the options may be is said in `options`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._options = dict(options)

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "frazil"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write, its snapshot reserved."""
        from frazil.spark.options import WriteOptions
        from frazil.spark.write import batch_writer

        return batch_writer(WriteOptions.parse(self._options, overwrite=overwrite), schema)
