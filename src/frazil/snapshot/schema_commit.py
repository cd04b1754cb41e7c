"""A merged schema into the table, in a commit of its own: agreed once, by the driver, before any shard is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import parse_mapping_from_json, update_mapping
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
)

from frazil.errors import BadInput, SchemaMismatch
from frazil.snapshot.schema_merge import SchemaMerge, merge_schemas
from frazil.snapshot.table import CatalogTable
from frazil.snapshot.table_change import Asked, TableChange, change_table
from frazil.steps import step

_CHANGE = TableChange("merging a schema", begun=lambda: step("merge:begun"), committed=lambda: step("merge:committed"))
_NAME_MAPPING = "schema.name-mapping.default"
_LAST_ADDED = -1


def merge_schema(table: Table, source: pa.Schema, where: str = "the source") -> SchemaMerge:
    """Make the table's schema hold rows of the Arrow schema `source`, and say what was changed. No row is touched.

    Columns are added, types promoted and required columns made optional, nested ones too, as far as the table format
    allows; a schema that holds them already is left alone. When another writer changes the schema at the same time,
    the merge is done again on theirs. A commit whose reply was lost is recognised: its columns are there.

    SchemaMismatch, and no change, names all columns that cannot be merged; `where` is what the source is called in it.
    CommitRefused, CommitConflict and OutcomeUnknown say what they say of a publish. Calling again is always safe.
    """
    target = CatalogTable(table)
    tried: list[SchemaMerge] = []

    def attempt(metadata: TableMetadata) -> Asked | None:
        merge = planned_merge(target.name, metadata, source, where)
        tried.append(merge)
        return _asked(target.name, metadata, merge) if merge.changes else None

    changed = change_table(target, _CHANGE, attempt)
    # After a lost reply the last attempt finds nothing left to do: what was done is what the one before it asked for.
    done = next((merge for merge in reversed(tried) if merge.changes), tried[-1]) if changed else tried[-1]
    return replace(done, schema=target.metadata.schema())


def planned_merge(name: str, metadata: TableMetadata, source: pa.Schema, where: str) -> SchemaMerge:
    """What `merge_schema` would do to the table called `name` as it is now."""
    try:
        return merge_schemas(metadata, source, where)
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{where} cannot be merged into table {name}: {error}") from None


def _asked(name: str, metadata: TableMetadata, merge: SchemaMerge) -> Asked:
    """The update, under requirements that any other change of the schema breaks."""
    return Asked(
        updates=(*_schema_updates(metadata, merge.schema), *_name_mapping_updates(name, metadata, merge)),
        requirements=(
            AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
            AssertLastAssignedFieldId(last_assigned_field_id=metadata.last_column_id),
        ),
    )


def _schema_updates(metadata: TableMetadata, merged: Schema) -> list[Any]:
    """A schema that the table has had before is taken up again: catalogs refuse or confuse a second copy."""
    known = next((schema for schema in metadata.schemas if _equal(schema, merged)), None)
    if known is not None:
        return [SetCurrentSchemaUpdate(schema_id=known.schema_id)]
    new_id = max(schema.schema_id for schema in metadata.schemas) + 1
    added = Schema(*merged.fields, schema_id=new_id, identifier_field_ids=merged.identifier_field_ids)
    return [AddSchemaUpdate(schema_=added), SetCurrentSchemaUpdate(schema_id=_LAST_ADDED)]


def _equal(one: Schema, other: Schema) -> bool:
    return one == other and sorted(one.identifier_field_ids) == sorted(other.identifier_field_ids)


def _name_mapping_updates(name: str, metadata: TableMetadata, merge: SchemaMerge) -> list[Any]:
    """Files without field ids are read by the table's name mapping, so new columns join it where there is one."""
    text = metadata.properties.get(_NAME_MAPPING)
    if text is None or not merge.added:
        return []
    try:
        mapping = parse_mapping_from_json(text)
    except ValidationError as error:
        raise BadInput(
            f"the property {_NAME_MAPPING} of table {name} is not a name mapping ({error.error_count()} errors), so no "
            "column can be added to it; mend or remove it"
        ) from error
    extended = update_mapping(mapping, {}, {parent: list(fields) for parent, fields in merge.added.items()})
    return [SetPropertiesUpdate(updates={_NAME_MAPPING: extended.model_dump_json()})]
