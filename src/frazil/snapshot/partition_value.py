"""Partition values: their Avro encoding and what a manifest says of them in summary."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from operator import index
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros, datetime_to_nanos, time_to_micros
from pyiceberg.utils.decimal import bytes_required, decimal_required_bytes

from frazil.errors import BadInput
from frazil.snapshot.avro import NULL, PRESENT, encode_boolean, encode_bytes, encode_long, encode_string
from frazil.snapshot.manifest_file import FieldSummary

_KEPT_TUPLES = 4096

Normalise = Callable[[Any], Any]
"""From a user's value to the one form in which its type is compared and encoded. Raises if it is of another type."""


class _Codec(NamedTuple):
    normalise: Normalise
    avro: Callable[[Any], bytes]
    bound: Callable[[Any], bytes]


class PartitionEncoder:
    """Encodes partition tuples and keeps the summary of every field over all tuples it was given.

    Tuples repeat from file to file, so encoded ones are kept; the memory this takes is bounded.
    """

    def __init__(self, partition: StructType) -> None:
        self._fields = [_Field(field.name, field.field_type) for field in partition.fields]
        # 0.0 equals -0.0 and would be found under its name, though the bytes differ.
        self._keeps = not any(isinstance(field.field_type, FloatType | DoubleType) for field in partition.fields)
        self._kept: dict[tuple[Any, ...], bytes] = {}

    def encode(self, values: tuple[Any, ...]) -> bytes:
        """The Avro record of these values. BadInput if there are too many or too few, or one is of another type."""
        encoded = self._kept.get(values) if self._keeps else None
        return self._encode(values) if encoded is None else encoded

    def _encode(self, values: tuple[Any, ...]) -> bytes:
        if len(values) != len(self._fields):
            names = ", ".join(field.name for field in self._fields) or "none"
            raise BadInput(f"{len(values)} partition values for {len(self._fields)} partition fields ({names})")
        normal = [field.normalise(value) for field, value in zip(self._fields, values, strict=True)]
        encoded = b"".join([field.encode(value) for field, value in zip(self._fields, normal, strict=True)])
        for field, value in zip(self._fields, normal, strict=True):
            field.include(value)
        if self._keeps:
            self._keep(values, encoded)
        return encoded

    def _keep(self, values: tuple[Any, ...], encoded: bytes) -> None:
        if len(self._kept) >= _KEPT_TUPLES:
            self._kept.clear()
        self._kept[values] = encoded

    def summaries(self) -> tuple[FieldSummary, ...]:
        """One summary per field, over every tuple encoded so far."""
        return tuple(field.summary() for field in self._fields)


class _Field:
    def __init__(self, name: str, field_type: IcebergType) -> None:
        self.name = name
        self._type = field_type
        self._codec = _codec(field_type)
        self._always_null = isinstance(field_type, UnknownType)
        self._contains_null = self._contains_nan = False
        self._lowest: Any = None
        self._highest: Any = None

    def normalise(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            return self._codec.normalise(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(
                f"partition field {self.name!r}: {value!r} ({type(value).__name__}) is not a {self._type}: {error}"
            ) from error

    def encode(self, value: Any) -> bytes:
        if self._always_null:
            return b""
        return NULL if value is None else PRESENT + self._codec.avro(value)

    def include(self, value: Any) -> None:
        if value is None:
            self._contains_null = True
        elif isinstance(value, float) and math.isnan(value):
            self._contains_nan = True
        elif self._lowest is None:
            self._lowest = self._highest = value
        else:
            self._lowest = min(self._lowest, value)
            self._highest = max(self._highest, value)

    def summary(self) -> FieldSummary:
        lower, upper = (None if value is None else self._codec.bound(value) for value in (self._lowest, self._highest))
        return FieldSummary(self._contains_null, self._contains_nan, lower, upper)


def _codec(field_type: IcebergType) -> _Codec:
    if isinstance(field_type, DecimalType):
        return _decimal(field_type)
    if isinstance(field_type, FixedType):
        return _Codec(_fixed(len(field_type)), bytes, bytes)
    found = _CODECS.get(type(field_type))
    if found is None or not isinstance(field_type, PrimitiveType):
        raise BadInput(f"a table cannot be partitioned by values of type {field_type}")
    normalise, avro = found
    return _Codec(normalise, avro, lambda value: to_bytes(field_type, value))


def _decimal(field_type: DecimalType) -> _Codec:
    size = decimal_required_bytes(field_type.precision)

    def unscaled(value: Any) -> int:
        number: int = _unscaled(_instance(Decimal)(value), field_type.scale)
        if abs(number) >= 10**field_type.precision:
            raise ValueError(f"more than {field_type.precision} digits")
        return number

    return _Codec(
        unscaled,
        lambda number: number.to_bytes(size, "big", signed=True),
        lambda number: number.to_bytes(bytes_required(number), "big", signed=True),
    )


def _unscaled(value: Decimal, scale: int) -> int:
    # Not `scaleb` or `quantize`: those round to the precision of the thread's decimal context.
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("not a finite number")
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    shift = exponent + scale
    if shift >= 0:
        return int(number * 10**shift)
    whole, rest = divmod(number, int(10**-shift))
    if rest:
        raise ValueError(f"more than {scale} digits after the point")
    return whole


def _integer(bits: int) -> Normalise:
    def normalise(value: Any) -> int:
        number = index(value)
        if number >> (bits - 1) not in (0, -1):
            raise OverflowError(f"it does not fit into {bits} bits")
        return number

    return normalise


def _temporal(kind: type, bits: int, convert: Callable[[Any], int]) -> Normalise:
    integer = _integer(bits)

    def normalise(value: Any) -> int:
        # A datetime is a date to Python, and to count its days would drop its time without a word.
        is_kind = isinstance(value, kind) and not (kind is date and isinstance(value, datetime))
        number: int = integer(convert(value) if is_kind else value)
        return number

    return normalise


def _instance(kind: type) -> Normalise:
    def normalise(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"{kind.__name__} expected")
        return value

    return normalise


def _fixed(size: int) -> Normalise:
    def normalise(value: Any) -> bytes:
        octets: bytes = _instance(bytes)(value)
        if len(octets) != size:
            raise ValueError(f"{size} bytes expected, not {len(octets)}")
        return octets

    return normalise


def _boolean(value: Any) -> bool:
    if value not in (True, False):
        raise TypeError("bool expected")
    return bool(value)


def _uuid(value: Any) -> bytes:
    return value.bytes if isinstance(value, UUID) else _fixed(16)(value)


_CODECS: dict[type[IcebergType], tuple[Normalise, Callable[[Any], bytes]]] = {
    BooleanType: (_boolean, encode_boolean),
    IntegerType: (_integer(32), encode_long),
    LongType: (_integer(64), encode_long),
    FloatType: (float, Struct("<f").pack),
    DoubleType: (float, Struct("<d").pack),
    DateType: (_temporal(date, 32, date_to_days), encode_long),
    TimeType: (_temporal(time, 64, time_to_micros), encode_long),
    TimestampType: (_temporal(datetime, 64, datetime_to_micros), encode_long),
    TimestamptzType: (_temporal(datetime, 64, datetime_to_micros), encode_long),
    TimestampNanoType: (_temporal(datetime, 64, datetime_to_nanos), encode_long),
    TimestamptzNanoType: (_temporal(datetime, 64, datetime_to_nanos), encode_long),
    StringType: (_instance(str), encode_string),
    BinaryType: (_instance(bytes), encode_bytes),
    UUIDType: (_uuid, bytes),
    UnknownType: (lambda _: None, lambda _: b""),
}
