"""Updates of what shapes a table's files: schemas, partition specs and sort orders.

Adding one that the table has already reuses its id. The id -1 means "the last one added in this commit"; one that was reused
counts as added, so that a client which did not see the other's commit gets what it asked for.
"""

from __future__ import annotations

from frazil.catalog.document import Document, read_int, read_ints, read_object
from frazil.catalog.errors import IllegalArgument, ValidationFailed
from frazil.catalog.partition_spec import (
    check_sequential_ids,
    check_sources,
    check_spec,
    parse_spec,
    same_spec,
    with_field_ids,
)
from frazil.catalog.schema import check_schema, same_schema
from frazil.catalog.sort_order import UNSORTED_ID, check_order, parse_order, same_order
from frazil.catalog.table_draft import TableDraft, find

LAST_ADDED = -1


def add_schema(draft: TableDraft, update: Document) -> None:
    """Add a schema under the next free id, or find it among those the table has."""
    schema = read_object(update, "schema")
    index = check_schema(schema, draft.format_version)
    last = max(draft.document.get("last-column-id", 0), index.highest_id)
    known = next((one for one in draft.document["schemas"] if same_schema(one, schema)), None)
    if known is not None:
        number = known["schema-id"]
    else:
        number = max((one["schema-id"] + 1 for one in draft.document["schemas"]), default=0)
        draft.own_list("schemas").append({**schema, "type": "struct", "schema-id": number})
    if last != draft.document.get("last-column-id"):
        draft.put("last-column-id", last)
    draft.last_added_schema = number


def set_current_schema(draft: TableDraft, update: Document) -> None:
    """Make a schema the current one."""
    number = read_int(update, "schema-id")
    if number == LAST_ADDED:
        if draft.last_added_schema is None:
            raise ValidationFailed("Cannot set last added schema: no schema has been added")
        number = draft.last_added_schema
    if number == draft.document["current-schema-id"]:
        return
    if find(draft.document["schemas"], "schema-id", number) is None:
        raise IllegalArgument(f"Cannot set current schema to unknown schema: {number}")
    draft.put("current-schema-id", number)
    draft.layout_changed = True


def remove_schemas(draft: TableDraft, update: Document) -> None:
    """Remove schemas that no longer serve."""
    numbers = set(read_ints(update, "schema-ids"))
    if draft.document["current-schema-id"] in numbers:
        raise IllegalArgument("Cannot remove the current schema")
    _remove(draft, "schemas", "schema-id", numbers)


def add_spec(draft: TableDraft, update: Document) -> None:
    """Add a partition spec under the next free id, or find it among those the table has."""
    spec = parse_spec(read_object(update, "spec"))
    specs = draft.document["partition-specs"]
    known = next((one for one in specs if same_spec(one, spec)), None)
    if known is not None:
        draft.last_added_spec = known["spec-id"]
        return
    check_spec(spec, draft.schema_index())
    last = draft.document["last-partition-id"]
    spec = with_field_ids(spec, specs, last)
    if draft.format_version == 1:
        check_sequential_ids(spec)
    number = max((one["spec-id"] + 1 for one in specs), default=0)
    draft.own_list("partition-specs").append({**spec, "spec-id": number})
    draft.put("last-partition-id", max([last, *(field["field-id"] for field in spec["fields"])]))
    draft.last_added_spec = number


def set_default_spec(draft: TableDraft, update: Document) -> None:
    """Make a partition spec the default one."""
    number = read_int(update, "spec-id")
    if number == LAST_ADDED:
        if draft.last_added_spec is None:
            raise ValidationFailed("Cannot set last added spec: no spec has been added")
        number = draft.last_added_spec
    if number == draft.document["default-spec-id"]:
        return
    if find(draft.document["partition-specs"], "spec-id", number) is None:
        raise IllegalArgument(f"Cannot set default partition spec to unknown spec: {number}")
    draft.put("default-spec-id", number)
    draft.layout_changed = True


def remove_specs(draft: TableDraft, update: Document) -> None:
    """Remove partition specs that no longer serve."""
    numbers = set(read_ints(update, "spec-ids"))
    if draft.document["default-spec-id"] in numbers:
        raise IllegalArgument("Cannot remove the default partition spec")
    _remove(draft, "partition-specs", "spec-id", numbers)


def add_sort_order(draft: TableDraft, update: Document) -> None:
    """Add a sort order under the next free id, or find it among those the table has."""
    order = parse_order(read_object(update, "sort-order"))
    orders = draft.document["sort-orders"]
    known = next((one for one in orders if same_order(one, order)), None)
    if known is not None:
        draft.last_added_order = known["order-id"]
        return
    check_order(order, draft.schema_index())
    number = max((one["order-id"] + 1 for one in orders), default=1) if order["fields"] else UNSORTED_ID
    draft.own_list("sort-orders").append({**order, "order-id": number})
    draft.last_added_order = number


def set_default_sort_order(draft: TableDraft, update: Document) -> None:
    """Make a sort order the default one."""
    number = read_int(update, "sort-order-id")
    if number == LAST_ADDED:
        if draft.last_added_order is None:
            raise ValidationFailed("Cannot set last added sort order: no sort order has been added")
        number = draft.last_added_order
    if number == draft.document["default-sort-order-id"]:
        return
    if find(draft.document["sort-orders"], "order-id", number) is None:
        raise IllegalArgument(f"Cannot set default sort order to unknown sort order: {number}")
    draft.put("default-sort-order-id", number)
    draft.layout_changed = True


def check_layout(draft: TableDraft) -> None:
    """Refuse a draft whose current schema, default spec and default order do not fit together."""
    document = draft.document
    if find(document["schemas"], "schema-id", document["current-schema-id"]) is None:
        raise ValidationFailed("Cannot make table metadata without a current schema")
    spec = find(document["partition-specs"], "spec-id", document["default-spec-id"])
    if spec is None:
        raise ValidationFailed("Cannot make table metadata without a default partition spec")
    order = find(document["sort-orders"], "order-id", document["default-sort-order-id"])
    if order is None:
        raise ValidationFailed("Cannot make table metadata without a default sort order")
    index = draft.schema_index()
    check_sources(spec, index)
    check_order(order, index)


def _remove(draft: TableDraft, name: str, key: str, numbers: set[int]) -> None:
    if any(one[key] in numbers for one in draft.document[name]):
        draft.put(name, [one for one in draft.document[name] if one[key] not in numbers])
