"""Which type a column of texts has, told from a sample; and the narrowest type that holds two."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_REAL = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$|^(NaN|nan|-?[Ii]nf(inity)?)$"
_BOOLEAN = r"^(true|false|True|False|TRUE|FALSE)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_CLOCK = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_TIME = rf"^{_CLOCK}$"
_TIMESTAMP = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}$"
_ZONED = _TIMESTAMP[:-1] + r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_NANOSECONDS = r"\.[0-9]{7,9}(Z|[+-][0-9:]+)?$"
_HUGE = pa.decimal128(38, 0)
_DIGITS_OF_A_DECIMAL = r"^-?[0-9]{1,38}$"


def type_of_texts(texts: pa.Array) -> pa.DataType:
    """The type that all these texts can be read as without loss; null if there are none.

    Whole numbers with leading zeros are texts (postal codes), those beyond 64 bits decimals.
    """
    texts = pc.unique(texts.drop_null())
    if not len(texts):
        return pa.null()
    if _all(texts, _BOOLEAN):
        return pa.bool_()
    if _all(texts, _INTEGER):
        return _whole(texts)
    return pa.float64() if _all(texts, _REAL) else type_of_times(texts)


def type_of_times(texts: pa.Array) -> pa.DataType:
    """Date, time or timestamp if all these texts are one, else string."""
    unit = "ns" if pc.any(pc.match_substring_regex(texts, _NANOSECONDS)).as_py() else "us"
    candidates = (
        (_DATE, pa.date32()),
        (_TIMESTAMP, pa.timestamp(unit)),
        (_ZONED, pa.timestamp(unit, "UTC")),
    )
    for pattern, kind in candidates:
        if _all(texts, pattern) and _casts(texts, kind):
            return kind
    if _all(texts, _TIME) and unit == "us" and _casts(on_a_day(texts), pa.timestamp("us")):
        return pa.time64("us")
    return pa.string()


def on_a_day(times: pa.Array) -> pa.Array:
    """Times of day as timestamps of 1970-01-01, which Arrow can parse where it cannot parse a time."""
    return pc.binary_join_element_wise(pa.scalar("1970-01-01"), times, "T")


def common_type(kinds: list[pa.DataType]) -> pa.DataType:
    """The narrowest type that holds texts of all these types; in the end that is string."""
    return reduce(_both, kinds, pa.null())


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = pa.types
    if one.equals(other) or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    numbers = [
        kind for kind in (one, other) if types.is_integer(kind) or types.is_decimal(kind) or kind == pa.float64()
    ]
    if len(numbers) == 2:
        return pa.float64() if pa.float64() in numbers else _HUGE
    if types.is_timestamp(one) and types.is_timestamp(other) and one.tz == other.tz:
        return pa.timestamp("ns", one.tz)  # they differ in nothing but the unit
    if {one, other} <= {pa.date32(), pa.timestamp("us"), pa.timestamp("ns")}:
        return one if types.is_timestamp(one) else other
    return pa.string()


def _whole(texts: pa.Array) -> pa.DataType:
    if _casts(texts, pa.int64()):
        return pa.int64()
    return _HUGE if _all(texts, _DIGITS_OF_A_DECIMAL) else pa.string()


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _casts(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
