"""From an Arrow schema to the Iceberg schema of a new table."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.io.pyarrow import _ConvertToIcebergWithoutIDs, visit_pyarrow
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.typedef import TableVersion

from frazil.errors import SchemaMismatch


def table_schema(arrow: pa.Schema, format_version: int, where: str) -> Schema:
    """The schema of a new table that holds `arrow`. `where` is the source's name for errors.

    Nanosecond timestamps become microseconds below format v3, which has no type for them; a value that would lose digits
    is refused when it is written.
    """
    names = [name.lower() for name in arrow.names]
    for name in arrow.names:
        if not name:
            raise SchemaMismatch(f"{where} has a column without a name; rename it at the source")
        if names.count(name.lower()) > 1:
            raise SchemaMismatch(f"{where} has more than one column called {name!r}; rename one at the source")
    version: TableVersion = format_version  # type: ignore[assignment]
    converter = _ConvertToIcebergWithoutIDs(downcast_ns_timestamp_to_us=format_version < 3, format_version=version)
    for field in arrow:
        _check(field, where, format_version)
    return assign_fresh_schema_ids(visit_pyarrow(arrow, converter))


def _check(field: pa.Field, where: str, format_version: int) -> None:
    """Convert each column by itself first, so that the error names the one that has no counterpart."""
    version: TableVersion = format_version  # type: ignore[assignment]
    converter = _ConvertToIcebergWithoutIDs(downcast_ns_timestamp_to_us=format_version < 3, format_version=version)
    try:
        visit_pyarrow(pa.schema([field]), converter)
    except (TypeError, ValueError, NotImplementedError, ValidationError) as error:
        raise SchemaMismatch(
            f"column {field.name!r} of {where} is of type {field.type}, which a format v{format_version} table cannot "
            f"hold ({error}); cast it at the source"
        ) from error
