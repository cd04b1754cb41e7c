"""PostgreSQL's types as Arrow's: what is selected for a column so that no value loses anything on the way.

| PostgreSQL | table | how it travels |
|---|---|---|
| numeric(p, s), p <= 18 | decimal(p, s) | as the whole number value * 10^s: no text is made or read |
| numeric(p, s), p <= 38 | decimal(p, s) | as text |
| numeric, wider ones | string, or what the option `numeric` says | as text |
| date, timestamp, timestamptz, time | the same, in microseconds | binary; infinity is refused or null |
| timetz, interval (ISO 8601), enum, inet, ranges, all else | string | as PostgreSQL writes it |
| json, jsonb; composite | string of JSON | as text; `to_json` |
| arrays | list of the element's type | one dimension; an element that travels as text does so here too |
| domains | their base type | |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from frazil.errors import BadInput

OPTIONS = frozenset({"numeric", "not-finite"})
MANY_DIMENSIONS = "frazil: dimensions "
_LONG_DIGITS, _MOST_DIGITS = 18, 38
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

# Types whose binary form the driver turns into this Arrow type, value for value.
_BINARY: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int2": pa.int32(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "bytea": pa.binary(),
    "uuid": pa.uuid(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_NOT_FINITE = frozenset({"date", "timestamp", "timestamptz", "numeric"})


@dataclass(frozen=True, slots=True)
class TypeOptions:
    """What the user chose where a type leaves a choice.

    `numeric`: the type of a numeric without precision (or of more than 38 digits): None is a string. `null_not_finite`:
    infinity and NaN become null where the table's type has no such value; otherwise they are an error.
    """

    numeric: tuple[int, int] | None = None
    null_not_finite: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TypeOptions:
        """From `--option numeric=string|decimal(P,S)` and `--option not-finite=error|null`."""
        numeric, not_finite = options.get("numeric", "string"), options.get("not-finite", "error")
        if not_finite not in ("error", "null"):
            raise BadInput(f"--option not-finite={not_finite} is not known; say error or null")
        if numeric == "string":
            return cls(None, not_finite == "null")
        found = _DECIMAL.fullmatch(numeric)
        precision, scale = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 0 < precision <= _MOST_DIGITS or scale > precision:
            raise BadInput(f"--option numeric={numeric} is not known; say string, or decimal(P,S) with up to 38 digits")
        return cls((precision, scale), not_finite == "null")


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A row of pg_type, with its domain's base type or its array's element type filled in."""

    name: str
    schema: str = "pg_catalog"
    kind: str = "b"
    element: PostgresType | None = None
    base: PostgresType | None = None
    modifier: int = -1

    def undomained(self, modifier: int) -> tuple[PostgresType, int]:
        """The type behind any domains, and its modifier."""
        if self.base is None:
            return self, modifier
        return self.base.undomained(self.modifier)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is selected: `expression` gives it in a form that the driver has an Arrow type for."""

    field: pa.Field
    expression: str

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.field.name)


def column(
    name: str, kind: PostgresType, modifier: int, options: TypeOptions, *, required: bool = False, comment: str = ""
) -> Column:
    """How to select a column, and the Arrow field it becomes."""
    arrow, expression = _selected(kind, modifier, quoted(name), options)
    may_turn_null = options.null_not_finite and _bare(kind, modifier).name in _NOT_FINITE
    metadata = {"doc": comment} if comment else None
    return Column(pa.field(name, arrow, nullable=not required or may_turn_null, metadata=metadata), expression)


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _bare(kind: PostgresType, modifier: int) -> PostgresType:
    return kind.undomained(modifier)[0]


def _selected(kind: PostgresType, modifier: int, value: str, options: TypeOptions) -> tuple[pa.DataType, str]:
    kind, modifier = kind.undomained(modifier)
    if kind.element is not None:
        return _array(kind.element, modifier, value, options)
    if kind.schema == "pg_catalog":
        if kind.name in _BINARY:
            return _BINARY[kind.name], value
        if kind.name == "numeric":
            return _numeric(modifier, value, options)
        if kind.name == "oid":
            return pa.int64(), f"{value}::pg_catalog.int8"
        if kind.name == "inet":  # its cast to text adds the netmask that its output leaves out
            return pa.string(), f"pg_catalog.textin(pg_catalog.inet_out({value}))"
    if kind.kind == "c":
        return pa.string(), f"pg_catalog.to_json({value})::pg_catalog.text"
    return pa.string(), f"{value}::pg_catalog.text"


def _array(element: PostgresType, modifier: int, value: str, options: TypeOptions) -> tuple[pa.DataType, str]:
    """A list. Arrays of more dimensions, which the declared type does not tell, fail in the server."""
    bare, _ = element.undomained(modifier)
    if bare.element is not None:  # an array of a domain over an array
        return pa.string(), f"pg_catalog.to_json({value})::pg_catalog.text"
    arrow, one = _selected(element, modifier, "x", options)
    if pa.types.is_decimal(arrow):
        one = _as_text("x", options)
    sql_type = _sql_array(arrow, bare)
    unnested = f"pg_catalog.unnest({value}) WITH ORDINALITY AS u(x, n) ORDER BY n"
    elements = f"{value}::{sql_type}" if one == "x" else f"ARRAY(SELECT {one} FROM {unnested})"
    if bare.kind == "c":  # unnest would take its fields apart
        parts = f"pg_catalog.json_array_elements(pg_catalog.to_json({value})) WITH ORDINALITY AS u(x, n) ORDER BY n"
        elements = f"ARRAY(SELECT nullif(x::pg_catalog.text, 'null') FROM {parts})"
    # A cast that must fail, and not before a row needs it: a constant would be folded while the query is planned.
    refusal = f"('{MANY_DIMENSIONS}' || pg_catalog.array_dims({value}))::pg_catalog.int4::pg_catalog.text"
    guarded = (
        f"CASE WHEN {value} IS NULL THEN NULL WHEN pg_catalog.array_ndims({value}) > 1 "
        f"THEN pg_catalog.string_to_array({refusal}, NULL)::{sql_type} ELSE {elements} END"
    )
    return pa.list_(pa.field("element", arrow)), guarded


def _sql_array(arrow: pa.DataType, bare: PostgresType) -> str:
    """The SQL type of the array that is selected."""
    if (pa.types.is_string(arrow) and bare.name not in ("text", "varchar", "bpchar")) or pa.types.is_decimal(arrow):
        return "pg_catalog.text[]"
    if bare.name == "oid":
        return "pg_catalog.int8[]"
    return f"pg_catalog.{quoted(bare.name)}[]"


def _numeric(modifier: int, value: str, options: TypeOptions) -> tuple[pa.DataType, str]:
    declared = numeric_type(modifier)
    chosen = declared if declared is not None and declared[0] <= _MOST_DIGITS else options.numeric
    if chosen is None:
        return pa.string(), f"{value}::pg_catalog.text"
    precision, scale = chosen
    arrow = pa.decimal128(precision, scale)
    if chosen != declared or precision > _LONG_DIGITS:
        return arrow, _as_text(value, options)
    finite = f"nullif({value}, 'NaN')" if options.null_not_finite else value
    whole = f"({finite} * 1{'0' * scale})" if scale else finite
    return arrow, f"{whole}::pg_catalog.int8"


def _as_text(value: str, options: TypeOptions) -> str:
    text = f"{value}::pg_catalog.text"
    if not options.null_not_finite:
        return text
    return f"CASE WHEN {text} NOT IN ('NaN', 'Infinity', '-Infinity') THEN {text} END"


def numeric_type(modifier: int) -> tuple[int, int] | None:
    """Precision and scale of the decimal that holds every numeric of this type modifier; None if none is declared."""
    if modifier < 4:
        return None
    packed = modifier - 4
    precision, scale = packed >> 16 & 0xFFFF, (packed & 0x7FF ^ 1024) - 1024
    if scale < 0:  # numeric(3, -2) holds 99,900
        return precision - scale, 0
    return max(precision, scale), scale  # numeric(2, 4) holds 0.0099
