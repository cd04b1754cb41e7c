"""Rows brought together by partition before they are written, so that each partition gets few, large files.

Spark lets a Python data source ask for no shuffle, so it is asked for here, in the DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import DateType, DecimalType, IcebergType, StringType, TimestamptzNanoType, TimestamptzType
from pyspark.sql import functions as F  # noqa: N812  Spark's own habit

from frazil.errors import BadInput
from frazil.settings import CatalogSettings
from frazil.snapshot.partition_by import partition_spec
from frazil.snapshot.schema import table_schema
from frazil.snapshot.warehouse import find_table, open_catalog, table_identifier
from frazil.spark.write_target import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MODES = ("none", "hash", "range")
_KEY = "__frazil_key_"
_DAY_MICROS = 86_400_000_000
_HOUR_MICROS = 3_600_000_000


def distribute(
    df: DataFrame,
    table: str,
    mode: str | None = None,
    *,
    root: str | None = None,
    catalog: str | None = None,
    partition_by: str | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """The same rows, shuffled for a write to `table`: give it the options that the write gets.

    `hash` puts all rows of a partition together (and splits what is too large for one task), `range` also keeps
    neighbouring ones together; within a task rows are sorted by partition and by the table's sort order. Without a mode
    the table's `write.distribution-mode` is taken, else `range` for a sorted table, `hash` for a partitioned one and `none`
    for any other. `partitions` is how many tasks write; Spark decides by their size if it is not given. With `none` it
    needs no shuffle: fewer tasks read more each.
    """
    found = find_table(open_catalog(CatalogSettings.choose(root, catalog)), table_identifier(table))
    if found is None:
        schema = table_schema(arrow_schema(df.schema), 2, "the DataFrame")
        spec = partition_spec(partition_by, schema) if partition_by else PartitionSpec()
        wanted = _Layout(schema, spec, SortOrder(), mode or ("hash" if partition_by else "none"))
    else:
        wanted = _Layout(found.schema(), found.spec(), found.sort_order(), mode or _usual_mode(found))
    return wanted.applied(df, partitions)


def _usual_mode(table: Any) -> str:
    if chosen := table.properties.get("write.distribution-mode"):
        return str(chosen)
    if not table.sort_order().is_unsorted:
        return "range"
    return "none" if table.spec().is_unpartitioned() else "hash"


class _Layout:
    """What a table wants its rows ordered by."""

    def __init__(self, schema: Schema, spec: PartitionSpec, order: SortOrder, mode: str) -> None:
        if mode not in _MODES:
            raise BadInput(f"distribution {mode!r} is not known; it must be one of {', '.join(_MODES)}")
        self._schema = schema
        self._mode = mode
        self._partition = [
            (field.transform, field.source_id)
            for field in spec.fields
            if not isinstance(field.transform, VoidTransform)
        ]
        self._order = [field for field in order.fields if not isinstance(field.transform, VoidTransform)]

    def applied(self, df: DataFrame, partitions: int | None) -> DataFrame:
        """The DataFrame in this layout."""
        if self._mode == "none":
            return df if partitions is None else df.coalesce(partitions)
        keys = dict(self._keys())
        keyed = df.withColumns({name: column for name, (column, _) in keys.items()})
        clustered = [F.col(name) for name in list(keys)[: len(self._partition)]]
        ordered = [direction(F.col(name)) for name, (_, direction) in keys.items()]
        shuffled = self._shuffled(keyed, clustered, ordered, partitions)
        return (shuffled.sortWithinPartitions(*ordered) if ordered else shuffled).drop(*keys)

    def _shuffled(
        self, df: DataFrame, clustered: list[Column], ordered: list[Column], partitions: int | None
    ) -> DataFrame:
        if self._mode == "range" and ordered:
            return df.repartitionByRange(*([] if partitions is None else [partitions]), *ordered)
        if partitions is not None:
            return df.repartition(partitions, *clustered)
        return df.hint("rebalance", *clustered)

    def _keys(self) -> Iterator[tuple[str, tuple[Column, Any]]]:
        """What rows are ordered by, with the direction of each: the partition's fields, then the sort order's."""
        for number, (transform, source_id) in enumerate(self._partition):
            yield f"{_KEY}{number}", (self._key(transform, source_id), lambda column: column.asc_nulls_first())
        for number, field in enumerate(self._order, len(self._partition)):
            yield f"{_KEY}{number}", (self._key(field.transform, field.source_id), _direction(field))

    def _key(self, transform: Transform[Any, Any], source_id: int) -> Column:
        name = self._schema.find_column_name(source_id) or ""
        column = F.col(".".join(f"`{part}`" for part in name.split(".")))
        return _transformed(column, transform, self._schema.find_type(source_id))


def _direction(field: SortField) -> Any:
    nulls = "first" if field.null_order is NullOrder.NULLS_FIRST else "last"
    way = "asc" if field.direction is SortDirection.ASC else "desc"
    return lambda column: getattr(column, f"{way}_nulls_{nulls}")()


def _transformed(column: Column, transform: Transform[Any, Any], kind: IcebergType) -> Column:
    """A Spark expression that is equal for two rows where the transform is."""
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform():
            return _bucket(column, transform, kind)
        case TruncateTransform():
            return _truncated(column, transform.width, kind)
        case HourTransform():
            return _units(column, _HOUR_MICROS) if _is_zoned(kind) else F.date_trunc("hour", column)
        case YearTransform():
            return F.year(_utc_date(column, kind))
        case MonthTransform():
            return F.year(_utc_date(column, kind)) * 12 + F.month(_utc_date(column, kind))
        case DayTransform():
            return _utc_date(column, kind)
    raise BadInput(f"rows cannot be distributed by {transform}; use distribution none")


def _is_zoned(kind: IcebergType) -> bool:
    return isinstance(kind, TimestamptzType | TimestamptzNanoType)


def _utc_date(column: Column, kind: IcebergType) -> Column:
    # A cast would take the session's time zone, where the table's days are those of UTC.
    if isinstance(kind, DateType) or not _is_zoned(kind):
        return column.cast("date")
    return F.date_from_unix_date(_units(column, _DAY_MICROS).cast("int"))


def _units(column: Column, micros: int) -> Column:
    since = F.unix_micros(column)
    return ((since - F.pmod(since, F.lit(micros))) / F.lit(micros)).cast("long")


def _truncated(column: Column, width: int, kind: IcebergType) -> Column:
    if isinstance(kind, StringType):
        return F.substring(column, 1, width)
    if isinstance(kind, DecimalType):
        return column - F.pmod(column, F.lit(Decimal(width).scaleb(-kind.scale)))
    if str(kind) in ("int", "long"):
        return column - F.pmod(column, F.lit(width))
    return F.substring(column, 1, width)


def _bucket(column: Column, transform: BucketTransform[Any], kind: IcebergType) -> Column:
    """The bucket itself, by the code that partitions the rows when they are written."""

    def numbers(values: pa.Array) -> pa.Array:
        return transform.pyarrow_transform(kind)(values)

    return F.arrow_udf(numbers, "int")(column)
