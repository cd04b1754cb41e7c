"""The partition of a file that was written elsewhere, from its statistics or from the folders that it lies in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pyarrow.parquet as pq
from pyiceberg.conversions import partition_to_py
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, micros_to_time

from frazil.errors import BadInput

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What a file's statistics prove about one column. `known`: nulls and bounds are told for every row group."""

    known: bool
    nulls: bool
    values: bool
    lowest: Any = None
    highest: Any = None


class PartitionInference:
    """Infers partition tuples for files of one schema. `places` says at which Parquet column a field id is found."""

    def __init__(self, spec: PartitionSpec, schema: Schema, places: Mapping[int, int]) -> None:
        self._fields = [_Inferred(field, schema, places.get(field.source_id)) for field in spec.fields]

    def partition(self, path: str, footer: pq.FileMetaData) -> tuple[Any, ...]:
        """The tuple of one file. BadInput, with the file and the column, where it cannot be told."""
        if not self._fields:
            return ()
        folders = hive_values(path)
        return tuple(field.value(path, folders, footer) for field in self._fields)


def hive_values(path: str) -> dict[str, str | None]:
    """What the folders of a path say, as `column=value`."""
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {unquote(name): None if value == _NULL else unquote(value) for name, _, value in pairs if name}


class _Inferred:
    """One partition field."""

    def __init__(self, field: PartitionField, schema: Schema, place: int | None) -> None:
        self._field = field
        self._place = place
        self._void = isinstance(field.transform, VoidTransform)
        self._identity = isinstance(field.transform, IdentityTransform)
        if self._void:
            return
        self._column = schema.find_column_name(field.source_id) or ""
        kind = schema.find_type(field.source_id)
        if not isinstance(kind, PrimitiveType):
            raise BadInput(f"partition field {field.name!r} is of type {kind}, which no table is partitioned by")
        self._type: PrimitiveType = kind
        self._transform: Callable[[Any], Any] = field.transform.transform(kind)

    def value(self, path: str, folders: Mapping[str, str | None], footer: pq.FileMetaData) -> Any:
        if self._void:
            return None
        said = self._identity and self._column in folders
        if self._place is None:
            if not said:
                raise BadInput(
                    f"{path} lacks column {self._column!r}, and its folders do not tell its partition "
                    f"{self._field.name!r}; lay it under {self._column}=VALUE, or ingest it"
                )
            return self._of_folder(path, folders[self._column])
        bounds = column_bounds(footer, self._place)
        if said:
            return self._checked(path, self._of_folder(path, folders[self._column]), bounds)
        return self._of_bounds(path, bounds)

    def _of_folder(self, path: str, text: str | None) -> Any:
        try:
            return None if text is None else _python_value(_parsed(text, self._type), self._type)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise BadInput(
                f"{path} lies under {self._column}={text}, which is not a {self._type} as column {self._column!r} is "
                f"({error})"
            ) from error

    def _checked(self, path: str, said: Any, bounds: ColumnBounds) -> Any:
        """The folder's word, unless the statistics prove it wrong."""
        if not bounds.known or isinstance(self._type, FloatType | DoubleType):
            return said
        if self._of_bounds(path, bounds) != said:
            raise BadInput(
                f"{path} lies under {self._column}={said}, but its statistics show another value in column "
                f"{self._column!r}; move it, or ingest it"
            )
        return said

    def _of_bounds(self, path: str, bounds: ColumnBounds) -> Any:
        if not bounds.known:
            raise self._untold(path, "has no statistics of it")
        if not bounds.values:
            return None
        if bounds.nulls:
            raise self._untold(path, "holds both nulls and values in it")
        if isinstance(self._type, FloatType | DoubleType):
            raise self._untold(path, "may hold NaN in it, which its statistics leave out")
        lowest, highest = (_internal(raw, self._type) for raw in (bounds.lowest, bounds.highest))
        first, last = self._transform(lowest), self._transform(highest)
        # Equal ends say nothing of the values between where the order is lost, as by hashing.
        if first != last or (not self._field.transform.preserves_order and lowest != highest):
            raise self._untold(
                path,
                f"holds more than one partition of it (from {_shown(lowest, self._type)} to {_shown(highest, self._type)})",
            )
        return _python_value(first, self._type) if self._identity else first

    def _untold(self, path: str, why: str) -> BadInput:
        remedy = f", lay it under {self._column}=VALUE" if self._identity else ""
        return BadInput(
            f"the partition of {path} by {self._field.transform}({self._column}) cannot be told: column "
            f"{self._column!r}: the file {why}; split it{remedy}, or ingest it"
        )


def column_bounds(footer: pq.FileMetaData, place: int) -> ColumnBounds:
    """The statistics of one Parquet column over all row groups."""
    nulls = values = False
    ends: list[tuple[Any, Any]] = []
    for number in range(footer.num_row_groups):
        chunk = footer.row_group(number).column(place)
        if not chunk.num_values:
            continue
        found = chunk.statistics
        if found is None or not found.has_null_count:
            return ColumnBounds(known=False, nulls=False, values=False)
        nulls = nulls or found.null_count > 0
        if found.null_count == chunk.num_values:
            continue
        values = True
        if not found.has_min_max:
            return ColumnBounds(known=False, nulls=False, values=False)
        ends.append((found.min_raw, found.max_raw))
    if not values:
        return ColumnBounds(known=True, nulls=nulls, values=False)
    signed = bool(footer.schema.column(place).logical_type.type == "DECIMAL")
    order = _as_number if signed else _as_it_is
    return ColumnBounds(
        known=True,
        nulls=nulls,
        values=True,
        lowest=min((low for low, _ in ends), key=order),
        highest=max((high for _, high in ends), key=order),
    )


def _as_it_is(raw: Any) -> Any:
    return raw


def _as_number(raw: Any) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)


def _internal(raw: Any, kind: PrimitiveType) -> Any:
    """A raw Parquet value as transforms take it."""
    if isinstance(kind, DecimalType):
        digits = str(abs(_as_number(raw)))
        return Decimal((int(_as_number(raw) < 0), tuple(map(int, digits)), -kind.scale))
    if isinstance(kind, StringType):
        return bytes(raw).decode()
    if isinstance(kind, UUIDType):
        return UUID(bytes=bytes(raw))
    return bytes(raw) if isinstance(kind, BinaryType | FixedType) else raw


def _python_value(value: Any, kind: PrimitiveType) -> Any:
    """As a data file's partition holds it."""
    return micros_to_time(value) if isinstance(kind, TimeType) and value is not None else value


def _shown(value: Any, kind: PrimitiveType) -> str:
    """For an error: dates and times as people write them."""
    return IdentityTransform().to_human_string(kind, value)


def _parsed(text: str, kind: PrimitiveType) -> Any:
    """The value that a folder's name spells."""
    if isinstance(kind, DateType):
        return date_to_days(date.fromisoformat(text))
    if isinstance(kind, TimestampType | TimestamptzType):
        moment = datetime.fromisoformat(text)
        if (moment.tzinfo is not None) != isinstance(kind, TimestamptzType):
            raise ValueError("it has a zone where the column has none, or none where it has one")
        return datetime_to_micros(moment)
    if isinstance(kind, TimestampNanoType | TimestamptzNanoType | TimeType | BinaryType | FixedType):
        raise ValueError("a folder's name cannot say it")
    if isinstance(kind, DecimalType):
        return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale))
    return partition_to_py(kind, text)
