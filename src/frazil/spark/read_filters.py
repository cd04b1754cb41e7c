"""Spark's filters as Iceberg's expressions: those that say exactly the same, and those that only rule out files."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from pyiceberg import expressions
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)
from pyspark.sql import datasource as spark

# Types whose values both compare alike. Spark holds NaN to be equal to itself and greater than everything, so on floats
# a filter only rules out files; types that Spark does not have are left to Spark altogether.
_ALIKE = (
    BooleanType,
    IntegerType,
    LongType,
    DecimalType,
    DateType,
    TimestampType,
    TimestamptzType,
    StringType,
    BinaryType,
)
_FLOATS = (FloatType, DoubleType)
# PyIceberg's classes take their arguments by position, but their types do not say so.
iceberg: Any = expressions
_Translated = Any
"""A BooleanExpression, or None where there is none that says the same."""
_EXACT = Context(prec=76)


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """What became of Spark's filters. Spark applies those in `left` itself, after the scan."""

    exact: tuple[BooleanExpression, ...]
    inexact: tuple[BooleanExpression, ...]
    left: tuple[spark.Filter, ...]


def push_filters(schema: Schema, filters: Iterable[spark.Filter]) -> PushedFilters:
    """Translate each filter as far as it goes."""
    exact, inexact, left = [], [], []
    for each in filters:
        field = _field_of(schema, each)
        expression = _translate(field, each) if field is not None else None
        if field is None or expression is None or not _binds(schema, expression):
            left.append(each)
        elif isinstance(field.field_type, _ALIKE) and "." not in _name(each):
            exact.append(expression)
        else:
            inexact.append(expression)
            left.append(each)
    return PushedFilters(tuple(exact), tuple(inexact), tuple(left))


def _inner(filter_: spark.Filter) -> Any:
    return _inner(filter_.child) if isinstance(filter_, spark.Not) else filter_


def _name(filter_: spark.Filter) -> str:
    return ".".join(_inner(filter_).attribute)


def _field_of(schema: Schema, filter_: spark.Filter) -> NestedField | None:
    """The column, or the field of a struct, that the filter is about; None where it is of another kind."""
    path = _inner(filter_).attribute
    fields, found = schema.fields, None
    for name in path:
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            return None
        fields = getattr(found.field_type, "fields", ())
    return found if found is not None and isinstance(found.field_type, (*_ALIKE, *_FLOATS)) else None


def _translate(field: NestedField, filter_: spark.Filter) -> _Translated:
    name = _name(filter_)
    if isinstance(filter_, spark.Not):
        return _negated(field, name, filter_.child)
    if isinstance(filter_, spark.IsNull):
        return iceberg.IsNull(name)
    if isinstance(filter_, spark.IsNotNull):
        return iceberg.NotNull(name)
    if isinstance(filter_, spark.EqualNullSafe) and filter_.value is None:
        return iceberg.IsNull(name)
    if isinstance(filter_, spark.In):
        values = [_literal(field, value) for value in filter_.value if value is not None]
        return None if any(map(_is_nan, values)) else iceberg.In(name, values)
    comparison = _COMPARISONS.get(type(filter_))
    if (
        comparison is None
        or filter_.value is None
        or (isinstance(filter_, spark.StringStartsWith) and not filter_.value)
    ):
        return None
    return _compared(field, name, type(filter_), _literal(field, filter_.value))


def _compared(field: NestedField, name: str, kind: type[spark.Filter], value: Any) -> _Translated:
    if _is_nan(value):
        return None
    expression = _COMPARISONS[kind](name, value)
    if isinstance(field.field_type, _FLOATS) and kind in (spark.GreaterThan, spark.GreaterThanOrEqual):
        return iceberg.Or(expression, iceberg.IsNaN(name))
    return expression


def _negated(field: NestedField, name: str, child: Any) -> _Translated:
    """Null is neither true nor false in Spark, and its negation neither: where there is nothing, nothing fulfils it."""
    if isinstance(field.field_type, _FLOATS):
        return None
    if isinstance(child, spark.IsNull):
        return iceberg.NotNull(name)
    if isinstance(child, spark.IsNotNull):
        return iceberg.IsNull(name)
    if isinstance(child, spark.EqualNullSafe):
        if child.value is None:
            return iceberg.NotNull(name)
        return iceberg.Or(iceberg.NotEqualTo(name, _literal(field, child.value)), iceberg.IsNull(name))
    if isinstance(child, spark.In):
        if any(value is None for value in child.value):
            return None
        return iceberg.And(iceberg.NotNull(name), iceberg.NotIn(name, [_literal(field, each) for each in child.value]))
    opposite = _OPPOSITES.get(type(child))
    if opposite is None or child.value is None or child.value == "":
        return None
    return iceberg.And(iceberg.NotNull(name), opposite(name, _literal(field, child.value)))


_COMPARISONS: dict[type[spark.Filter], Any] = {
    spark.EqualTo: iceberg.EqualTo,
    spark.EqualNullSafe: iceberg.EqualTo,
    spark.GreaterThan: iceberg.GreaterThan,
    spark.GreaterThanOrEqual: iceberg.GreaterThanOrEqual,
    spark.LessThan: iceberg.LessThan,
    spark.LessThanOrEqual: iceberg.LessThanOrEqual,
    spark.StringStartsWith: iceberg.StartsWith,
}
_OPPOSITES: dict[type[spark.Filter], Any] = {
    spark.EqualTo: iceberg.NotEqualTo,
    spark.GreaterThan: iceberg.LessThanOrEqual,
    spark.GreaterThanOrEqual: iceberg.LessThan,
    spark.LessThan: iceberg.GreaterThanOrEqual,
    spark.LessThanOrEqual: iceberg.GreaterThan,
    spark.StringStartsWith: iceberg.NotStartsWith,
}


def _literal(field: NestedField, value: Any) -> Any:
    """Spark hands a decimal over without its trailing zeros, and Iceberg compares equal scales alone."""
    if isinstance(field.field_type, DecimalType) and isinstance(value, (Decimal, int)):
        scaled = Decimal(value).quantize(Decimal(1).scaleb(-field.field_type.scale), context=_EXACT)
        return scaled if scaled == value else value
    if isinstance(field.field_type, BinaryType) and isinstance(value, bytearray):
        return bytes(value)
    return value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _binds(schema: Schema, expression: BooleanExpression) -> bool:
    """Whether PyIceberg takes the values for the columns' types; where it does not, the filter is Spark's."""
    try:
        bind(schema, expression, case_sensitive=True)
    except (TypeError, ValueError):
        return False
    return True
