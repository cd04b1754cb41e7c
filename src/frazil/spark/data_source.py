"""The data source `frazil`. Spark makes one wherever it needs one; each of its parts has a module of its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from frazil.spark.read import OpenedTable

# Each method imports what it needs: Spark imports this module in every process that looks for data sources.


class FrazilDataSource(DataSource):  # type: ignore[misc]
    """`df.write.format("frazil")` and `spark.read.format("frazil")`. What the options may be is said in `options`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._options = dict(options)
        self._opened: OpenedTable | None = None

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "frazil"

    def schema(self) -> StructType:
        """The columns of what is read. The snapshot is chosen here, once, for all that is done with the DataFrame."""
        self._opened = self._open()
        return self._opened.schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        return (self._opened or self._open()).reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        """A stream of what is appended."""
        from frazil.spark.stream_read import TableStreamReader

        return TableStreamReader(self._opened or self._open(), schema)

    def _open(self) -> OpenedTable:
        from frazil.spark.options import ReadOptions
        from frazil.spark.read import OpenedTable

        return OpenedTable.open(ReadOptions.parse(self._options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write, its snapshot reserved."""
        from frazil.spark.options import WriteOptions
        from frazil.spark.write import batch_writer

        return batch_writer(WriteOptions.parse(self._options, overwrite=overwrite), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  Spark's name
        """A stream's batch. Nothing is reserved until it goes to the tasks."""
        from frazil.spark.options import WriteOptions
        from frazil.spark.stream_write import StreamWriter

        options = WriteOptions.parse_stream(self._options, overwrite=overwrite)
        checkpoint = next((value for key, value in self._options.items() if key.lower() == "checkpointlocation"), None)
        return StreamWriter(options, schema, checkpoint)
