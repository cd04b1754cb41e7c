"""A filter as Arrow evaluates it, on the values of plain columns, of fields of structs, and of every type."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import bind, extract_field_ids, translate_column_names
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, IcebergType, NestedField, StructType, UUIDType

_PLACE = "place"


class ValueFilter:
    """Made once per file from a filter on the table's columns.

    Each field that the filter is about becomes a column of its own, named by its id: names that have dots in them, and
    types that Arrow cannot compare, are no matter then.
    """

    def __init__(self, schema: Schema, row_filter: BooleanExpression) -> None:
        bound = bind(schema, row_filter, case_sensitive=True)
        self.field_ids: set[int] = extract_field_ids(bound)
        self._paths = {_name(each): _path(schema.fields, each) for each in self.field_ids}
        flat = Schema(
            *(NestedField(each, _name(each), _comparable(schema.find_type(each))) for each in sorted(self.field_ids))
        )
        by_id = bind(flat, translate_column_names(bound, flat), case_sensitive=True)
        self._expression = expression_to_pyarrow(by_id)

    def places_of(self, rows: pa.RecordBatch) -> pa.Array:
        """The places of the rows of the batch for which the filter is true."""
        values = {name: _values(rows, path) for name, path in self._paths.items()}
        table = pa.table({**values, _PLACE: pa.array(np.arange(rows.num_rows))})
        return table.filter(self._expression)[_PLACE].combine_chunks()


def _name(field_id: int) -> str:
    return f"field-{field_id}"


def _path(fields: Iterable[NestedField], field_id: int) -> tuple[str, ...]:
    """The names that lead to a field, from its column down; empty where there is none below these."""
    for each in fields:
        if each.field_id == field_id:
            return (each.name,)
        below = _path(each.field_type.fields, field_id) if isinstance(each.field_type, StructType) else ()
        if below:
            return (each.name, *below)
    return ()


def _comparable(kind: IcebergType) -> IcebergType:
    return FixedType(16) if isinstance(kind, UUIDType) else kind


def _values(rows: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    """A field's values; null where a struct above it is null."""
    values = rows.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, name)
    return values.storage if isinstance(values, pa.ExtensionArray) else values
