"""What the format keeps about every column of a data file, from a Parquet footer in memory."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.schema import Schema
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
    ListType,
    LongType,
    MapType,
    NestedField,
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

from frazil.errors import BadInput

_DEFAULT = "write.metadata.metrics.default"
_COLUMN = "write.metadata.metrics.column."
_INFERRED_COLUMNS = "write.metadata.metrics.max-inferred-column-defaults"
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """How much is kept about one column. `length` is where bounds are cut, None where they are kept whole."""

    counts: bool
    bounds: bool
    length: int | None = None

    @classmethod
    def parse(cls, text: str, name: str) -> MetricsMode:
        """Parse the value of the property `name`: none, counts, truncate(N) or full."""
        word = text.strip().lower()
        if word in ("none", "counts", "full"):
            return cls(counts=word != "none", bounds=word == "full")
        cut = _TRUNCATE.fullmatch(word)
        if cut is None or int(cut[1]) == 0:
            raise BadInput(f"{name}={text}: not one of none, counts, truncate(N), full")
        return cls(counts=True, bounds=True, length=int(cut[1]))


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """One Parquet column. `steps` are the field names down to it, empty for a repeated one."""

    field_id: int
    path: str
    field_type: PrimitiveType
    mode: MetricsMode
    steps: tuple[str, ...] = ()


@dataclass(slots=True)
class ColumnMetrics:
    """The maps of a data file that go by field id, and where its row groups begin."""

    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


def leaf_columns(schema: Schema, properties: Mapping[str, str]) -> tuple[LeafColumn, ...]:
    """The Parquet columns of a table's schema, in the order in which a file has them."""
    leaves = [leaf for child in schema.fields for leaf in _leaves(child, child.name, child.name, steps=(child.name,))]
    default, limit = _default_mode(properties)
    return tuple(
        LeafColumn(
            leaf.field_id,
            leaf.path,
            leaf.field_type,
            _mode(leaf, default if at < limit else _NONE, properties),
            leaf.steps,
        )
        for at, leaf in enumerate(leaves)
    )


def column_metrics(footer: pq.FileMetaData, leaves: tuple[LeafColumn, ...]) -> ColumnMetrics:
    """The metrics of a file whose columns are `leaves`."""
    metrics = ColumnMetrics()
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    if groups:
        metrics.split_offsets = tuple(sorted(_first_byte(group.column(0)) for group in groups))
    for at, leaf in enumerate(leaves):
        _add_column(metrics, leaf, [group.column(at) for group in groups])
    return metrics


_NONE = MetricsMode(counts=False, bounds=False)


@dataclass(frozen=True, slots=True)
class _Leaf:
    field_id: int
    path: str
    name: str
    field_type: PrimitiveType
    steps: tuple[str, ...]


def _leaves(child: NestedField, path: str, name: str, steps: tuple[str, ...]) -> Iterator[_Leaf]:
    kind: IcebergType = child.field_type
    if isinstance(kind, StructType):
        for inner in kind.fields:
            inner_steps = (*steps, inner.name) if steps else ()
            yield from _leaves(inner, f"{path}.{inner.name}", f"{name}.{inner.name}", inner_steps)
    elif isinstance(kind, ListType):
        yield from _leaves(kind.element_field, f"{path}.list.element", f"{name}.element", ())
    elif isinstance(kind, MapType):
        yield from _leaves(kind.key_field, f"{path}.key_value.key", f"{name}.key", ())
        yield from _leaves(kind.value_field, f"{path}.key_value.value", f"{name}.value", ())
    elif isinstance(kind, PrimitiveType) and not isinstance(kind, UnknownType):
        yield _Leaf(child.field_id, path, name, kind, steps)


def _default_mode(properties: Mapping[str, str]) -> tuple[MetricsMode, float]:
    """The mode of columns that have none of their own, and how many columns get it: a default that was set goes to all."""
    if _DEFAULT in properties:
        return MetricsMode.parse(properties[_DEFAULT], _DEFAULT), float("inf")
    return MetricsMode(counts=True, bounds=True, length=16), int(properties.get(_INFERRED_COLUMNS, 100))


def _mode(leaf: _Leaf, default: MetricsMode, properties: Mapping[str, str]) -> MetricsMode:
    own = _COLUMN + leaf.name
    mode = MetricsMode.parse(properties[own], own) if own in properties else default
    return mode if leaf.steps else MetricsMode(counts=mode.counts, bounds=False)


def _first_byte(column: Any) -> int:
    data, dictionary = column.data_page_offset, column.dictionary_page_offset
    return int(data if dictionary is None or not 0 < dictionary < data else dictionary)


def _add_column(metrics: ColumnMetrics, leaf: LeafColumn, chunks: list[Any]) -> None:
    if len(chunks) == 1:
        _add_only_chunk(metrics, leaf, chunks[0])
        return
    key = leaf.field_id
    metrics.column_sizes[key] = sum(chunk.total_compressed_size for chunk in chunks)
    if not leaf.mode.counts:
        return
    metrics.value_counts[key] = sum(chunk.num_values for chunk in chunks)
    kept = [(chunk.num_values, chunk.statistics) for chunk in chunks]
    if any(statistics is None or not statistics.has_null_count for _, statistics in kept):
        return
    metrics.null_value_counts[key] = sum(statistics.null_count for _, statistics in kept)
    if leaf.mode.bounds:
        _add_bounds(metrics, leaf, kept)


def _add_only_chunk(metrics: ColumnMetrics, leaf: LeafColumn, chunk: Any) -> None:
    """As for several. Small files have one row group, and thousands of them are registered at a time."""
    key = leaf.field_id
    metrics.column_sizes[key] = chunk.total_compressed_size
    if not leaf.mode.counts:
        return
    metrics.value_counts[key] = chunk.num_values
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return
    metrics.null_value_counts[key] = statistics.null_count
    if not leaf.mode.bounds or not statistics.has_min_max:
        return
    codec = _bound_codec(leaf.field_type)
    if codec is not None:
        _, encode = codec
        lower, upper = _cut(leaf, statistics.min_raw, statistics.max_raw)
        metrics.lower_bounds[key] = encode(lower)
        if upper is not None:
            metrics.upper_bounds[key] = encode(upper)


def _add_bounds(metrics: ColumnMetrics, leaf: LeafColumn, kept: list[tuple[int, Any]]) -> None:
    known = [statistics for _, statistics in kept if statistics.has_min_max]
    unknown = any(values > statistics.null_count for values, statistics in kept if not statistics.has_min_max)
    # Of floating-point values only NaN has no place in the bounds; any other column without them has values unaccounted for.
    if not known or (unknown and not isinstance(leaf.field_type, FloatType | DoubleType)):
        return
    codec = _bound_codec(leaf.field_type)
    if codec is None:
        return
    order, encode = codec
    lowest = min((statistics.min_raw for statistics in known), key=order)
    highest = max((statistics.max_raw for statistics in known), key=order)
    lower, upper = _cut(leaf, lowest, highest)
    metrics.lower_bounds[leaf.field_id] = encode(lower)
    if upper is not None:
        metrics.upper_bounds[leaf.field_id] = encode(upper)


def _cut(leaf: LeafColumn, lowest: Any, highest: Any) -> tuple[Any, Any]:
    length = leaf.mode.length
    kind = type(leaf.field_type)
    if length is None or (kind is not StringType and kind is not BinaryType):
        return lowest, highest
    if kind is BinaryType:
        return lowest[:length], _binary_upper_bound(highest, length)
    # What has so few bytes has no more characters.
    lower = lowest if len(lowest) <= length else lowest.decode()[:length].encode()
    return lower, highest if len(highest) <= length else _string_upper_bound(highest.decode(), length)


def _binary_upper_bound(octets: bytes, length: int) -> bytes | None:
    if len(octets) <= length:
        return octets
    head = octets[:length].rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


def _string_upper_bound(text: str, length: int) -> bytes | None:
    if len(text) <= length:
        return text.encode()
    head = text[:length].rstrip(chr(_LAST_CODE_POINT))
    if not head:
        return None
    following = ord(head[-1]) + 1
    return (head[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)).encode()


_Order = Callable[[Any], Any]
_Encode = Callable[[Any], bytes]


def _bound_codec(kind: PrimitiveType) -> tuple[_Order, _Encode] | None:
    """How raw Parquet values of a type are ordered and how they become a bound; None for a type that has no bounds."""
    return _CODECS.get(type(kind))


def _plain(raw: Any) -> Any:
    return raw


def _unscaled(raw: int | bytes) -> int:
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)


def _shortest(number: int) -> bytes:
    size = (number + (number < 0)).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


_CODECS: dict[type[PrimitiveType], tuple[_Order, _Encode]] = {
    BooleanType: (_plain, struct.Struct("<?").pack),
    FloatType: (_plain, struct.Struct("<f").pack),
    DoubleType: (_plain, struct.Struct("<d").pack),
    IntegerType: (_plain, struct.Struct("<i").pack),
    DateType: (_plain, struct.Struct("<i").pack),
    DecimalType: (_unscaled, lambda raw: _shortest(_unscaled(raw))),
    **dict.fromkeys((StringType, BinaryType, FixedType, UUIDType), (bytes, bytes)),
    **dict.fromkeys(
        (LongType, TimeType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType),
        (_plain, struct.Struct("<q").pack),
    ),
}
