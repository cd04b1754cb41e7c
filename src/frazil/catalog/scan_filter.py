"""A scan's filter: the document's predicates as JSON, and the expressions that PyIceberg evaluates.

A predicate that PyIceberg cannot evaluate (a function, two columns compared) prunes nothing: it stands as true, and the
client gets the whole filter as the residual. For that to be right under a `not`, negations are driven down to the
predicates first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)
from pyiceberg.expressions.literals import Literal, literal
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from frazil.catalog.document import Document, as_json, as_object, read, read_int, read_list, read_string
from frazil.catalog.errors import IllegalArgument, ValidationFailed

_UNARY: Final[dict[str, Any]] = {"is-null": IsNull, "not-null": NotNull, "is-nan": IsNaN, "not-nan": NotNaN}
_SETS: Final[dict[str, Any]] = {"in": In, "not-in": NotIn}
_COMPARISONS: Final[dict[str, Any]] = {
    "lt": LessThan,
    "lt-eq": LessThanOrEqual,
    "gt": GreaterThan,
    "gt-eq": GreaterThanOrEqual,
    "eq": EqualTo,
    "not-eq": NotEqualTo,
    "starts-with": StartsWith,
    "not-starts-with": NotStartsWith,
}
_COMPARABLE: Final = (
    BooleanType, IntegerType, LongType, FloatType, DoubleType, DecimalType, DateType, TimeType, TimestampType,
    TimestamptzType, StringType, UUIDType, BinaryType, FixedType,
)  # fmt: skip
"""The types whose values PyIceberg can compare."""

_MIRRORED: Final = {"lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq", "eq": "eq", "not-eq": "not-eq"}
_DEEPEST: Final = 200


class _BeyondPyIceberg(Exception):
    """A predicate that is well-formed, but that nobody here can evaluate."""


@dataclass(frozen=True, slots=True)
class ScanFilter:
    """What to keep. `expression` prunes files; `exact` says whether it means all that `document` means."""

    document: Any
    expression: BooleanExpression
    exact: bool
    leaves: dict[int, tuple[BooleanExpression, Any]] = field(default_factory=dict)
    """The predicates of the expression by identity, each with the JSON that it was parsed from."""

    def residual(self, remaining: BooleanExpression) -> Any:
        """What the client must still test on the rows of a file, as JSON, of the expression that its partition leaves."""
        document = self._document(remaining) if self.exact else None
        return self.document if document is None else document

    def _document(self, expression: BooleanExpression) -> Any | None:
        match expression:
            case AlwaysTrue():
                return True
            case AlwaysFalse():
                return False
            case And() | Or():
                left, right = self._document(expression.left), self._document(expression.right)
                kind = "and" if isinstance(expression, And) else "or"
                return None if left is None or right is None else {"type": kind, "left": left, "right": right}
        return self.leaves.get(id(expression), (None, None))[1]


def parse_filter(document: Any, schema: Schema, case_sensitive: bool) -> ScanFilter:
    """The filter of a scan request; None keeps every row. Raises `InvalidRequest` for one that is malformed."""
    if document is None:
        return ScanFilter(True, AlwaysTrue(), True)
    parser = _Parser(schema, case_sensitive)
    expression = parser.predicate(document, negated=False, depth=0)
    return ScanFilter(document, expression, parser.exact, parser.leaves)


class _Parser:
    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self.schema = schema
        self.case_sensitive = case_sensitive
        self.exact = True
        self.leaves: dict[int, tuple[BooleanExpression, Any]] = {}

    def predicate(self, document: Any, negated: bool, depth: int) -> BooleanExpression:
        if depth > _DEEPEST:
            raise IllegalArgument(f"Cannot parse expression, it is nested more than {_DEEPEST} deep")
        if isinstance(document, bool):
            return AlwaysTrue() if document != negated else AlwaysFalse()
        body = as_object(document, "expression")
        kind = read_string(body, "type").lower().replace("_", "-")
        match kind:
            case "true" | "false":
                return AlwaysTrue() if (kind == "true") != negated else AlwaysFalse()
            case "literal":
                return self.predicate(read(body, "value"), negated, depth + 1)
            case "not":
                return self.predicate(read(body, "child"), not negated, depth + 1)
            case "and" | "or":
                left = self.predicate(read(body, "left"), negated, depth + 1)
                right = self.predicate(read(body, "right"), negated, depth + 1)
                return And(left, right) if (kind == "and") != negated else Or(left, right)
        return self._leaf(kind, body, negated)

    def _leaf(self, kind: str, body: Document, negated: bool) -> BooleanExpression:
        try:
            leaf, plain = self._unbound(kind, body)
        except _BeyondPyIceberg:
            self.exact = False
            return AlwaysTrue()
        leaf = ~leaf if negated else leaf
        self.leaves[id(leaf)] = (leaf, {"type": "not", "child": plain} if negated else plain)
        return leaf

    def _unbound(self, kind: str, body: Document) -> tuple[BooleanExpression, Document]:
        """The predicate, and the form of it that every client reads."""
        if kind in _UNARY:
            column = self._field(_operand(body))
            return self._checked(_UNARY[kind](column.name)), {"type": kind, "term": column.name}
        if kind in _SETS:
            column = self._field(_operand(body))
            values = body.get("values")
            listed = read_list(values if isinstance(values, dict) else body, "values")
            plain = {"type": kind, "term": column.name, "values": [_bare(value) for value in listed]}
            return self._checked(_SETS[kind](column.name, {column.literal(value) for value in listed})), plain
        if kind in _COMPARISONS:
            return self._comparison(kind, body)
        raise IllegalArgument(f"Cannot parse expression: no operation {as_json(kind)}")

    def _comparison(self, kind: str, body: Document) -> tuple[BooleanExpression, Document]:
        left = body["left"] if "left" in body else read(body, "term")
        right = body["right"] if "right" in body else read(body, "value")
        if not _is_reference(left, bare="term" in body) and _is_reference(right, bare=False) and kind in _MIRRORED:
            left, right, kind = right, left, _MIRRORED[kind]
        elif _is_reference(right, bare=False):
            raise _BeyondPyIceberg
        column = self._field(left)
        if kind.endswith("starts-with") and not isinstance(
            column.field.field_type, StringType | BinaryType | FixedType
        ):
            raise ValidationFailed(
                f"Invalid filter: {kind} is for text, and {column.name} is {column.field.field_type}"
            )
        plain = {"type": kind, "term": column.name, "value": _bare(right)}
        return self._checked(_COMPARISONS[kind](column.name, column.literal(right))), plain

    def _field(self, term: Any) -> _Column:
        if isinstance(term, dict) and term.get("type") in ("transform", "apply"):
            raise _BeyondPyIceberg
        name: Any = term
        if isinstance(term, dict) and term.get("type") == "reference":
            name = read_int(term, "id") if "id" in term else term.get("name", term.get("term"))
        if not isinstance(name, str | int) or isinstance(term, int):
            raise IllegalArgument(f"Cannot parse reference (requires string or object): {as_json(term)}")
        try:
            found = self.schema.find_field(name, self.case_sensitive)
            full_name = self.schema.find_column_name(found.field_id)
        except ValueError:
            raise ValidationFailed(f"Cannot find field '{name}' in struct: {self.schema.as_struct()}") from None
        if full_name is None or not isinstance(found.field_type, _COMPARABLE):
            raise _BeyondPyIceberg
        return _Column(found, full_name)

    def _checked(self, predicate: Any) -> BooleanExpression:
        """The predicate, if its values are of the column's type."""
        try:
            predicate.bind(self.schema, True)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise ValidationFailed(f"Invalid value in filter: {error}") from None
        checked: BooleanExpression = predicate
        return checked


@dataclass(frozen=True, slots=True)
class _Column:
    field: NestedField
    name: str

    def literal(self, document: Any) -> Literal[Any]:
        """A value of the filter, of the column's type."""
        value = _bare(document)
        try:
            return self._typed(value)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise ValidationFailed(
                f"Invalid value for column {self.name} of type {self.field.field_type}: {as_json(value)}"
            ) from error

    def _typed(self, value: Any) -> Literal[Any]:
        kind = self.field.field_type
        if isinstance(kind, BinaryType | FixedType) and isinstance(value, str):
            return literal(bytes.fromhex(value)).to(kind)
        if value is None or isinstance(value, list | dict) or isinstance(value, bool) != isinstance(kind, BooleanType):
            raise ValueError("not a value of the column's type")
        return literal(value).to(kind)


def _bare(document: Any) -> Any:
    """A literal's value, whether it stands by itself or in an object."""
    if not isinstance(document, dict):
        return document
    if document.get("type") != "literal":
        raise _BeyondPyIceberg
    return document.get("value")


def _operand(body: Document) -> Any:
    return body["child"] if "child" in body else read(body, "term")


def _is_reference(document: Any, bare: bool) -> bool:
    """Whether this names a column; `bare`: a plain string does, as in the older form of the document."""
    if isinstance(document, dict):
        return document.get("type") in ("reference", "transform", "apply")
    return bare and isinstance(document, str)
