"""Which types the values of JSON records have, told from a sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from frazil.errors import SchemaMismatch
from frazil.sources.text_types import type_of_times

_LONGEST_TIME = 40
_LONG = 2**63
_HUGE = 10**38


@dataclass(slots=True)
class SeenValues:
    """All values of a sample that stand at one place, as far as their type goes. `example` is where the first is from."""

    families: dict[str, str] = field(default_factory=dict)
    largest: int = 0
    has_fraction: bool = False
    texts: set[str] = field(default_factory=set)
    all_texts_short: bool = True
    fields: dict[str, SeenValues] = field(default_factory=dict)
    items: SeenValues | None = None

    def add(self, value: Any, where: str) -> None:
        """One more value, of the record at `where`."""
        match value:
            case None:
                return
            case bool():
                self.families.setdefault("a boolean", where)
            case int():
                self.families.setdefault("a number", where)
                self.largest = max(self.largest, value if value >= 0 else -value - 1)
            case Decimal() | float():
                self.families.setdefault("a number", where)
                self.has_fraction = True
            case str():
                self.families.setdefault("a string", where)
                self._add_text(value)
            case list():
                self.families.setdefault("a list", where)
                self.items = self.items or SeenValues()
                for item in value:
                    self.items.add(item, where)
            case dict():
                self.families.setdefault("an object", where)
                for name, inner in value.items():
                    self.fields.setdefault(name, SeenValues()).add(inner, where)

    def type(self, name: str, known: pa.DataType | None = None) -> pa.DataType:
        """The type that holds them all; of a `known` one only what it does not say. SchemaMismatch if there is none."""
        if known is not None and not (pa.types.is_struct(known) or pa.types.is_list(known)):
            return known
        if known is None and len(self.families) > 1:
            both = " and ".join(f"{family} ({where})" for family, where in list(self.families.items())[:2])
            raise SchemaMismatch(f"column {name!r} is {both}; mend the source, or cast one of them there")
        if known is not None and pa.types.is_list(known):
            inner = self.items or SeenValues()
            return pa.list_(inner.type(f"{name}.element", known.value_type))
        if known is not None:
            return self._struct(name, known)
        match next(iter(self.families), None):
            case "a boolean":
                return pa.bool_()
            case "a number":
                return self._number(name)
            case "a list":
                return pa.list_((self.items or SeenValues()).type(f"{name}.element"))
            case "an object":
                return self._struct(name, None)
            case _:
                return self._text()

    def _struct(self, name: str, known: Any) -> pa.DataType:
        given = {} if known is None else {inner.name: inner.type for inner in known}
        names = dict.fromkeys([*given, *self.fields])
        if not names:
            raise SchemaMismatch(f"column {name!r} holds nothing but empty objects; give its type by --schema")
        return pa.struct(
            [(inner, self.fields.get(inner, SeenValues()).type(f"{name}.{inner}", given.get(inner))) for inner in names]
        )

    def _number(self, name: str) -> pa.DataType:
        if self.has_fraction:
            return pa.float64()
        if self.largest < _LONG:
            return pa.int64()
        if self.largest < _HUGE:
            return pa.decimal128(38, 0)
        raise SchemaMismatch(
            f"column {name!r} holds whole numbers of more than 38 digits ({self.families['a number']}); give its type by "
            "--schema, double for example"
        )

    def _add_text(self, text: str) -> None:
        if self.all_texts_short and len(text) > _LONGEST_TIME:
            self.all_texts_short = False
            self.texts.clear()
        if self.all_texts_short:
            self.texts.add(text)

    def _text(self) -> pa.DataType:
        if not self.all_texts_short or not self.texts:
            return pa.string()
        return type_of_times(pa.array(sorted(self.texts), pa.string()))
