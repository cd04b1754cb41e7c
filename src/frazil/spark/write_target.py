"""The table that a DataFrame is written to: found, or made from the DataFrame's schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyspark.sql.pandas.types import to_arrow_schema

from frazil.errors import BadInput
from frazil.snapshot.alignment import check_fits
from frazil.snapshot.partition_by import partition_spec
from frazil.snapshot.schema import table_schema
from frazil.snapshot.schema_commit import merge_schema
from frazil.snapshot.warehouse import create_table, find_table, open_catalog, table_identifier
from frazil.spark.options import WriteOptions
from frazil.spark.target import taken_back

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ROWS = "the DataFrame"


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """A table that the rows fit. `created`: this write made it."""

    catalog: Catalog
    table: Table
    created: bool


def find_target(options: WriteOptions) -> Table | None:
    """The table as it is now, if it is there."""
    return find_table(open_catalog(options.catalog), table_identifier(options.table))


def prepare_target(options: WriteOptions, rows: StructType) -> WriteTarget:
    """The table for these rows, made with its namespace where missing. What does not fit is refused before that.

    With `merge_schema` the table's schema is changed first so that the rows fit, in a commit of its own, which stays.
    """
    arrow = arrow_schema(rows)
    catalog = open_catalog(options.catalog)
    identifier = table_identifier(options.table)
    table = find_table(catalog, identifier)
    if table is None:
        schema = _new_schema(options, arrow)
        properties = {"format-version": str(options.format_version)}
        table, created = create_table(catalog, identifier, schema, options.partition_by, properties)
    else:
        created = False
        _check_partitioned_by(options.partition_by, table)
    if options.merge_schema and not created:
        merge_schema(table, to_arrow_schema(rows, timezone="UTC"), _ROWS)
    with taken_back(catalog, table, created):
        narrow = options.on_bad_row == "reject"
        check_fits(arrow, table.schema(), f"{_ROWS} does not fit table {options.table}", narrow=narrow)
    return WriteTarget(catalog, table, created)


def arrow_schema(rows: StructType) -> pa.Schema:
    """The Arrow schema in which Spark hands over rows of this type.

    All of it may be null: what Spark says of that comes from how a query was written, not from what a table should take.
    """
    return pa.schema([_nullable(field) for field in to_arrow_schema(rows, timezone="UTC")])


def _nullable(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _nullable_within(field.type), nullable=True)


def _nullable_within(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_nullable(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_field))
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(_nullable_within(kind.key_type))
        return pa.map_(key, _nullable(kind.item_field))
    return kind


def _new_schema(options: WriteOptions, arrow: pa.Schema) -> Schema:
    if options.branch != "main":
        raise BadInput(
            f"table {options.table} does not exist, and a new table begins with branch main; leave branch out"
        )
    schema = table_schema(arrow, options.format_version, _ROWS)
    if options.partition_by:
        partition_spec(options.partition_by, schema)
    return schema


def _check_partitioned_by(text: str | None, table: Table) -> None:
    """`partition-by` describes a table to be made; of one that exists it may only say what is there."""
    if text is None:
        return
    schema, have = table.schema(), table.spec()
    if _terms(partition_spec(text, schema)) != _terms(have):
        shown = ", ".join(f"{f.transform}({schema.find_column_name(f.source_id)})" for f in have.fields)
        raise BadInput(
            f"table {'.'.join(table.name())} exists and is partitioned by {shown or 'nothing'}, not by {text}; leave "
            "partition-by out, or choose another table"
        )


def _terms(spec: PartitionSpec) -> list[tuple[int, str]]:
    return [(field.source_id, str(field.transform)) for field in spec.fields]
