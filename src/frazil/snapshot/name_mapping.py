"""Which column of a table a Parquet file without field ids means by a name."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import (
    MappedField,
    NameMapping,
    create_mapping_from_schema,
    parse_mapping_from_json,
)
from pyiceberg.table.update import SetPropertiesUpdate

from frazil.errors import CommitConflict, CommitRefused, OutcomeUnknown
from frazil.snapshot.outcome import NotLanded, Unknown
from frazil.snapshot.retry import RetryPolicy
from frazil.snapshot.table import CatalogTable, assert_table

NAME_MAPPING = "schema.name-mapping.default"


def name_mapping(properties: Mapping[str, str]) -> NameMapping | None:
    """The mapping that the table has."""
    text = properties.get(NAME_MAPPING)
    return parse_mapping_from_json(text) if text else None


def covering(mapping: NameMapping | None, schema: Schema) -> NameMapping:
    """The mapping with every column of the schema in it. Names that it has for them already stay."""
    created = create_mapping_from_schema(schema)
    return created if mapping is None else NameMapping(_joined(mapping.root, created.root))


def set_name_mapping(table: Table) -> bool:
    """Have the table's name mapping cover its schema, in a commit of its own. False if it did before."""
    target = CatalogTable(table)
    uuid = str(table.metadata.table_uuid)
    waits = RetryPolicy.from_properties(table.metadata.properties).waits(time.monotonic, secrets.SystemRandom().random)
    doing = "setting the name mapping"
    while True:
        with target.exclusive():
            metadata = target.look(uuid, doing)
            have = name_mapping(metadata.properties)
            wanted = covering(have, metadata.schema())
            if have == wanted:
                return False
            text = wanted.model_dump_json()
            answer = target.update([assert_table(metadata)], [SetPropertiesUpdate(updates={NAME_MAPPING: text})])
        match answer:
            case NotLanded(conflict=False):
                raise CommitRefused(f"table {target.name} refused a name mapping: {answer.reason}")
            case NotLanded() | Unknown():
                wait = next(waits, None)
            case _:
                return True
        if wait is None and isinstance(answer, Unknown):
            raise OutcomeUnknown(
                f"{doing} of table {target.name}: the catalog never gave a clear answer ({answer.reason})"
            )
        if wait is None:
            raise CommitConflict(f"{doing} of table {target.name}: other writers were first at every try; try again")
        time.sleep(wait)


def _joined(have: list[MappedField], wanted: list[MappedField]) -> list[MappedField]:
    known = {field.field_id: field for field in have}
    taken = {name for field in have for name in field.names}
    joined = [_joined_field(known.pop(field.field_id, None), field, taken) for field in wanted]
    return joined + [field for field in have if field.field_id in known]


def _joined_field(have: MappedField | None, wanted: MappedField, taken: set[str]) -> MappedField:
    # A mapped field without fields below it is false, hence the comparisons with None.
    names = [] if have is None else list(have.names)
    names += [name for name in wanted.names if name not in taken]
    return MappedField(
        field_id=wanted.field_id, names=names, fields=_joined([] if have is None else have.fields, wanted.fields)
    )
