"""Reading a table into a DataFrame: planned once on the driver, read by tasks straight to Arrow."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table import Table
from pyspark.sql.types import StructType

from frazil.errors import BadInput
from frazil.scan.choice import ChosenSnapshots, SnapshotChoice
from frazil.scan.splits import Split
from frazil.scan.table_scan import TableScan, open_scan, plan_scan
from frazil.snapshot.row_filter import RowFilter
from frazil.snapshot.warehouse import find_table, open_catalog, table_identifier
from frazil.spark.options import ReadOptions
from frazil.spark.read_types import check_wanted, spark_schema
from frazil.spark.table_reader import TableReader


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """What was chosen of a table when the DataFrame was made: every use of that reads the same rows.

    A value that Spark keeps and sends from process to process on the driver.
    """

    options: ReadOptions
    scan: TableScan
    chosen: ChosenSnapshots

    @classmethod
    def open(cls, options: ReadOptions) -> OpenedTable:
        """Find the table, and in it the snapshot, the columns and the filter that the options name."""
        choice = SnapshotChoice(
            snapshot_id=options.snapshot_id,
            as_of_ms=options.as_of_ms,
            branch=options.branch,
            tag=options.tag,
            start_snapshot_id=options.start_snapshot_id,
            end_snapshot_id=options.end_snapshot_id,
        )
        scan, chosen = open_scan(existing_table(options), choice)
        if options.columns:
            scan = scan.of_columns(options.columns)
        if options.filter is not None:
            scan = scan.where([RowFilter(options.filter, scan.schema).expression])
        return cls(options, scan, chosen)

    def schema(self) -> StructType:
        """What Spark is told."""
        return spark_schema(self.scan.columns, self.scan.table)

    def reader(self, schema: StructType) -> TableReader:
        """The reader of the columns of `schema`, which is `schema()` or a part of it that the user named."""
        scan = self.scan.of_columns(schema.fieldNames())
        check_wanted(schema, scan.columns, scan.table)
        return TableReader(scan, schema, self._plan)

    def _plan(self, scan: TableScan) -> list[Split]:
        return plan_scan(existing_table(self.options), self.chosen, scan, self.options.split_bytes)


def existing_table(options: ReadOptions) -> Table:
    """The table as it is now. BadInput if there is none."""
    table = find_table(open_catalog(options.catalog), table_identifier(options.table))
    if table is None:
        raise BadInput(f"there is no table {options.table} in {options.catalog}; look at its name, root and catalog")
    return table
