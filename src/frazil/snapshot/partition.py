"""Rows to partitions: the transforms of a spec over an Arrow batch, and the batch cut up by their values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from frazil.errors import BadInput

_Codes = npt.NDArray[np.int64]

_TICKS_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_TABULATED_DAYS = 200_000
_DENSE_CODES = 65_536
_MAX_CODES = 2**62


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """Rows of one batch that belong to one partition. `partition` is as `DataFile.partition`."""

    partition: tuple[Any, ...]
    rows: pa.RecordBatch


class PartitionSplitter:
    """Cuts batches of a table's schema by a partition spec. BadInput for a spec whose source cannot be partitioned by."""

    def __init__(self, schema: Schema, spec: PartitionSpec) -> None:
        self._fields = [_PartitionColumn(schema, field) for field in spec.fields]

    def split(self, batch: pa.RecordBatch) -> Iterator[PartitionRows]:
        """The batch's rows by partition, the rows of each in the batch's order.

        All are slices of one copy of the batch, sorted by partition: one stable sort of small integers and one gather,
        whatever the number of partitions. They share its memory, and hold nothing of `batch`.
        """
        if not batch.num_rows:
            return
        keyed = [field.keys(batch) for field in self._fields]
        codes = _combined(keyed, batch.num_rows)
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), batch.num_rows]
        gathered = batch.take(pa.array(order))
        for start, end in pairwise(starts):
            partition = tuple(keys.value(int(order[start])) for keys in keyed)
            yield PartitionRows(partition, gathered.slice(start, end - start))


class _Keys:
    """One partition field over one batch: a code per row, from 0 up to `size`, equal where the values are equal."""

    def __init__(self, codes: npt.NDArray[Any], size: int, values: pa.Array | npt.NDArray[Any], nulls: Any) -> None:
        self.codes = codes
        self.size = size
        self._values = values
        self._nulls = nulls

    def value(self, row: int) -> Any:
        if isinstance(self._values, np.ndarray):
            return None if self._nulls is not None and self._nulls[row] else int(self._values[row])
        return _python_value(self._values[row])


class _PartitionColumn:
    def __init__(self, schema: Schema, field: PartitionField) -> None:
        self._transform = field.transform
        self._path: list[str] = []
        path = _path(schema.fields, field.source_id)
        if path is None and isinstance(field.transform, VoidTransform):
            return  # a v1 spec keeps the fields of columns that were dropped
        if path is None:
            raise BadInput(f"partition field {field.name!r}: no column outside lists and maps has id {field.source_id}")
        self._path = [step.name for step in path]
        self._type: IcebergType = path[-1].field_type
        if not self._transform.can_transform(self._type):
            raise BadInput(f"partition field {field.name!r}: {self._transform} does not go with type {self._type}")

    def keys(self, batch: pa.RecordBatch) -> _Keys:
        if isinstance(self._transform, VoidTransform):
            return _keys(pa.nulls(batch.num_rows))
        column = batch.column(self._path[0])
        if len(self._path) > 1:
            column = pc.struct_field(column, self._path[1:])
        if pa.types.is_decimal64(column.type):
            column = column.cast(pa.decimal128(column.type.precision, column.type.scale))  # what the transforms know
        return _keys(self._transformed(column))

    def _transformed(self, column: pa.Array) -> pa.Array:
        if isinstance(self._transform, IdentityTransform):
            return column
        if isinstance(self._transform, YearTransform | MonthTransform | DayTransform | HourTransform):
            return _calendar_ordinals(column, self._transform)
        if pa.types.is_dictionary(column.type):
            return self._transformed(column.dictionary).take(column.indices)
        if pa.types.is_large_binary(column.type):
            column = column.cast(pa.binary())  # the transform has no kernel for the large one
        return self._transform.pyarrow_transform(self._type)(column)


def _path(fields: tuple[NestedField, ...], field_id: int) -> list[NestedField] | None:
    for field in fields:
        if field.field_id == field_id and not isinstance(field.field_type, StructType | ListType | MapType):
            return [field]
        if isinstance(field.field_type, StructType):
            below = _path(field.field_type.fields, field_id)
            if below is not None:
                return [field, *below]
    return None


def _calendar_ordinals(column: pa.Array, transform: Any) -> pa.Array:
    """Years, months, days or hours since 1970, rounded towards the past, as the format counts them."""
    ticks, nulls = _integers(column)
    if isinstance(transform, HourTransform):
        ordinals = ticks // (_TICKS_PER_DAY[column.type.unit] // 24)
    else:
        days = ticks if pa.types.is_date32(column.type) else ticks // _TICKS_PER_DAY[column.type.unit]
        ordinals = days if isinstance(transform, DayTransform) else _of_days(days, _calendar_unit(transform))
    return pa.array(ordinals, pa.int64(), mask=nulls)


def _calendar_unit(transform: Any) -> str:
    return "datetime64[Y]" if isinstance(transform, YearTransform) else "datetime64[M]"


def _of_days(days: npt.NDArray[Any], unit: str) -> npt.NDArray[Any]:
    first, last = int(days.min()), int(days.max())
    if last - first > _TABULATED_DAYS:
        return days.astype("datetime64[D]").astype(unit).astype(np.int64)
    every_day = np.arange(first, last + 1).astype("datetime64[D]")
    table: npt.NDArray[np.int64] = every_day.astype(unit).astype(np.int64)
    return np.take(table, days - first)


def _integers(column: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """The physical integers of a column, and where it is null (with 0 in its place); no mask where nothing is."""
    width = np.dtype(f"i{column.type.bit_width // 8}")
    nulls = None
    if column.null_count:
        nulls = pc.is_null(column).to_numpy(zero_copy_only=False)
        plain = column.view(pa.int32() if width.itemsize == 4 else pa.int64())
        return pc.fill_null(plain, 0).to_numpy(zero_copy_only=False), nulls
    offset = column.offset * width.itemsize
    return np.frombuffer(column.buffers()[1], dtype=width, count=len(column), offset=offset), nulls


def _keys(values: pa.Array) -> _Keys:
    if pa.types.is_int32(values.type) or pa.types.is_int64(values.type):
        integers, nulls = _integers(values)
        low, high = int(integers.min()), int(integers.max())
        if high - low + 2 <= _DENSE_CODES:
            codes = integers - low
            if nulls is not None:
                codes = np.where(nulls, high - low + 1, codes)
            return _Keys(codes, high - low + 2, integers, nulls)
    return _encoded_keys(values)


def _encoded_keys(values: pa.Array) -> _Keys:
    if pa.types.is_null(values.type):
        return _Keys(np.zeros(len(values), np.int64), 1, values, None)
    plain = values.storage if isinstance(values, pa.ExtensionArray) else values
    encoded = plain if pa.types.is_dictionary(plain.type) else pc.dictionary_encode(plain, null_encoding="encode")
    indices = pc.fill_null(encoded.indices, len(encoded.dictionary))
    return _Keys(indices.to_numpy(zero_copy_only=False), len(encoded.dictionary) + 1, values, None)


def _combined(keyed: list[_Keys], rows: int) -> npt.NDArray[Any]:
    """One code per row over all fields, in as few bits as they need: 16-bit codes sort by radix."""
    codes: npt.NDArray[Any] = np.zeros(rows, np.int64)
    size = 1
    for keys in keyed:
        if size * keys.size > _MAX_CODES:
            codes, size = _dense(codes)
        codes = codes.astype(np.int64) * keys.size + keys.codes if size > 1 else keys.codes
        size *= keys.size
    if size > _DENSE_CODES:
        codes, size = _dense(codes)
    return codes.astype(np.uint16) if size <= _DENSE_CODES else codes


def _dense(codes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    encoded = pa.array(codes).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _python_value(scalar: Any) -> Any:
    if isinstance(scalar, pa.DictionaryScalar):
        scalar = scalar.value
    if isinstance(scalar, pa.TimestampScalar) and scalar.type.unit == "ns":
        return scalar.value  # Python's datetime has no nanoseconds
    value = scalar.as_py()
    # One NaN object for all: a tuple that holds it then equals itself and is found again in a dict.
    return math.nan if isinstance(value, float) and math.isnan(value) else value
