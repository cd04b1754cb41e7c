"""How Parquet files are written, as the table's properties say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.errors import BadInput

_MIB = 1024 * 1024
_BLOOM_COLUMN = "write.parquet.bloom-filter-enabled.column."
_BLOOM_RATE = "write.parquet.bloom-filter-fpp.column."
_BLOOM_VALUES = "write.parquet.bloom-filter-ndv.column."
_CODECS = {
    "zstd": "ZSTD",
    "snappy": "SNAPPY",
    "gzip": "GZIP",
    "brotli": "BROTLI",
    "lz4": "LZ4_RAW",
    "uncompressed": "NONE",
    "none": "NONE",
}
_LEVELLED = {"ZSTD", "GZIP", "BROTLI"}


@dataclass(frozen=True, slots=True)
class ParquetProperties:
    """The `write.parquet.*` properties, parsed once. BadInput names a property whose value cannot be used."""

    codec: str = "ZSTD"
    level: int | None = None
    target_file_bytes: int = 512 * _MIB
    row_group_bytes: int = 128 * _MIB
    row_group_rows: int = 1_048_576
    page_bytes: int = _MIB
    page_rows: int = 20_000
    dictionary_bytes: int = 2 * _MIB
    bloom_filters: tuple[tuple[str, float, int | None], ...] = ()

    @classmethod
    def of_table(cls, properties: Mapping[str, str]) -> ParquetProperties:
        """Parse the properties of a table; what they leave out has the format's default."""
        codec = _codec(properties.get("write.parquet.compression-codec", "zstd"))
        return cls(
            codec=codec,
            level=_level(properties, codec) if codec in _LEVELLED else None,
            target_file_bytes=_positive(properties, "write.target-file-size-bytes", cls().target_file_bytes),
            row_group_bytes=_positive(properties, "write.parquet.row-group-size-bytes", cls().row_group_bytes),
            row_group_rows=_positive(properties, "write.parquet.row-group-limit", cls().row_group_rows),
            page_bytes=_positive(properties, "write.parquet.page-size-bytes", cls().page_bytes),
            page_rows=_positive(properties, "write.parquet.page-row-limit", cls().page_rows),
            dictionary_bytes=_positive(properties, "write.parquet.dict-size-bytes", cls().dictionary_bytes),
            bloom_filters=_bloom_filters(properties),
        )

    def writer_arguments(self) -> dict[str, Any]:
        """Arguments of `pyarrow.parquet.ParquetWriter` that are the same for every file of a table."""
        arguments: dict[str, Any] = {
            "compression": self.codec,
            "compression_level": self.level,
            "data_page_size": self.page_bytes,
            "max_rows_per_page": self.page_rows,
            "dictionary_pagesize_limit": self.dictionary_bytes,
            "store_decimal_as_integer": True,  # what the format asks for up to 18 digits
            "store_schema": False,  # field ids are in the Parquet schema; Arrow's copy only costs room in every footer
        }
        if self.bloom_filters:
            arguments["bloom_filter_options"] = {
                column: {"fpp": rate} | ({"ndv": values} if values else {})
                for column, rate, values in self.bloom_filters
            }
        return arguments


def _codec(name: str) -> str:
    found = _CODECS.get(name.strip().lower())
    if found is None:
        raise BadInput(f"write.parquet.compression-codec={name}: not one of {', '.join(_CODECS)}")
    return found


def _level(properties: Mapping[str, str], codec: str) -> int | None:
    name = "write.parquet.compression-level"
    if properties.get(name) in (None, "", "null"):
        return None
    level = _number(name, properties[name])
    lowest, highest = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    if not lowest <= level <= highest:
        raise BadInput(f"{name}={level}: {codec} has the levels {lowest} to {highest}")
    return level


def _positive(properties: Mapping[str, str], name: str, default: int) -> int:
    number = _number(name, properties.get(name, default))
    if number <= 0:
        raise BadInput(f"{name}={number}: must be more than 0")
    return number


def _number(name: str, value: str | int) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise BadInput(f"{name}={value}: not a whole number") from error


def _bloom_filters(properties: Mapping[str, str]) -> tuple[tuple[str, float, int | None], ...]:
    return tuple(
        (column, _rate(properties, column), _distinct_values(properties, column))
        for name, value in sorted(properties.items())
        if name.startswith(_BLOOM_COLUMN) and str(value).lower() == "true"
        for column in (name.removeprefix(_BLOOM_COLUMN),)
    )


def _rate(properties: Mapping[str, str], column: str) -> float:
    name = _BLOOM_RATE + column
    try:
        rate = float(properties.get(name, "0.01"))
    except ValueError as error:
        raise BadInput(f"{name}={properties[name]}: not a number") from error
    if not 0 < rate < 1:
        raise BadInput(f"{name}={rate}: must lie between 0 and 1")
    return rate


def _distinct_values(properties: Mapping[str, str], column: str) -> int | None:
    name = _BLOOM_VALUES + column
    return _positive(properties, name, 1) if name in properties else None
