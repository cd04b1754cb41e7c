"""Which rows a filter takes: read from text as SQL writes it, and asked of rows, files and partitions alike.

A comparison with null is true of no row, as in SQL. PyIceberg's `!=`, `not in` and `not like` hold for nulls, so each
of them gets `is not null` beside it here, once, before anything is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyiceberg.exceptions import ValidationError
from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    NotEqualTo,
    NotIn,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    UnboundPredicate,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.io.pyarrow import expression_to_pyarrow, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyparsing import ParseException

from frazil.errors import BadInput, SchemaMismatch, UnknownColumn

_TYPED = re.compile(r"('(?:[^']|'')*')|\b(date|timestamp(?:_ltz|_ntz)?)\s+'([^']*)'", re.IGNORECASE)
_HOLDS_FOR_NULL = (NotEqualTo, NotIn, NotStartsWith)


def parse_filter(text: str) -> BooleanExpression:
    """The filter that `text` writes: comparisons, in, between, is null, like 'begin%', joined by and, or, not."""
    try:
        return parse(_TYPED.sub(_plain_literal, text))
    except (ParseException, ValueError, TypeError) as error:
        raise BadInput(
            f"filter {text!r} cannot be read ({error}); write such as: day = DATE '2026-01-01' AND city IN ('a', 'b')"
        ) from error


def _plain_literal(match: re.Match[str]) -> str:
    """`DATE '…'` as PyIceberg reads it: a text alone, whose column says what it is."""
    text, kind, value = match.groups()
    if text is not None:
        return str(text)
    if kind.lower().startswith("timestamp"):
        day, _, clock = value.strip().replace("T", " ").partition(" ")
        value = f"{day}T{clock or '00:00:00'}"
    return f"'{value}'"


@dataclass(frozen=True)
class RowFilter:
    """A filter over the rows of one schema. Refuses a column that is not there, and a value that is not of its type."""

    text: str
    schema: Schema
    expression: BooleanExpression = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", as_in_sql(parse_filter(self.text)))
        try:
            bind(self.schema, self.expression, case_sensitive=True)
        except (ValidationError, ValueError, TypeError) as error:
            kind = UnknownColumn if "Could not find field" in str(error) else BadInput
            raise kind(
                f"filter {self.text!r} does not go with the table ({error}); its columns are "
                f"{', '.join(f'{field.name} ({field.field_type})' for field in self.schema.fields)}"
            ) from error

    @property
    def columns(self) -> list[str]:
        """The top-level columns that it looks at."""
        found: dict[str, None] = {}
        _references(self.expression, found)
        return [name.split(".")[0] for name in found]

    def takes(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """For each row whether the filter is true of it; where it is null, it is not."""
        names = list(dict.fromkeys(self.columns))
        rows = pa.table({name: self._column(batch, name) for name in names} or {"": pa.nulls(batch.num_rows)})
        bound = bind(self.schema, self.expression, case_sensitive=True)
        scanned = ds.Scanner.from_batches(  # the one way to evaluate an expression to a column
            rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)],
            schema=rows.schema,
            columns={"takes": pc.coalesce(expression_to_pyarrow(bound, self.schema), pc.scalar(False))},
        ).to_table()
        return scanned["takes"].combine_chunks()

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        target = schema_to_pyarrow(self.schema.find_field(name).field_type, include_field_ids=False)
        at = batch.schema.get_field_index(name)
        if at < 0:
            return pa.nulls(batch.num_rows, target)
        return batch.column(at).cast(target)


def check_rows_match(rows: RowFilter, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, if the filter takes all of its rows; else SchemaMismatch: an overwrite replaces rows by their like."""
    missed = batch.num_rows - (rows.takes(batch).true_count if batch.num_rows else 0)
    if missed:
        raise SchemaMismatch(
            f"{missed} of {batch.num_rows} rows are not among those that overwrite={rows.text!r} replaces; "
            "write only rows that its filter takes, or choose a wider filter"
        )
    return batch


def as_in_sql(expression: BooleanExpression) -> BooleanExpression:
    """The same filter with no `not` in it, and true of no row for which SQL's would be null."""
    return _null_is_false(rewrite_not(expression))


def _null_is_false(expression: BooleanExpression) -> BooleanExpression:
    if isinstance(expression, And | Or):
        return type(expression)(_null_is_false(expression.left), _null_is_false(expression.right))
    if isinstance(expression, _HOLDS_FOR_NULL):
        return And(NotNull(term=expression.term), expression)
    return expression


def _references(expression: Any, found: dict[str, None]) -> None:
    if isinstance(expression, And | Or):
        _references(expression.left, found)
        _references(expression.right, found)
    elif isinstance(expression, UnboundPredicate) and isinstance(expression.term, Reference):
        found[expression.term.name] = None
    elif not isinstance(expression, AlwaysTrue | AlwaysFalse):
        raise BadInput(f"{expression} is not a filter that can be used here; compare columns with values")
