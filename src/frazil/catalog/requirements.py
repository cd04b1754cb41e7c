"""Requirements of a commit: what must hold of a table or a view for its updates to be applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from frazil.catalog.document import (
    Document,
    as_json,
    as_object,
    join,
    read_int,
    read_optional_long,
    read_string,
)
from frazil.catalog.errors import CommitFailed, IllegalArgument, InvalidRequest


def check_requirements(metadata: Document | None, requirements: Iterable[Any]) -> None:
    """Return if every requirement holds of the table's metadata; None stands for a table that does not exist.

    Raises `CommitFailed` for the first that does not hold, `InvalidRequest` for one that is malformed or unknown. Of a table
    that does not exist only its creation can be required.
    """
    parsed = [_parse(requirement, _OF_A_TABLE, "a table") for requirement in requirements]
    if metadata is None:
        others = [requirement["type"] for requirement in parsed if requirement["type"].lower() != "assert-create"]
        if others:
            raise IllegalArgument(f"Invalid create requirements: [{join(others)}]")
        return
    for requirement in parsed:
        _OF_A_TABLE[requirement["type"].lower()](metadata, requirement)


def check_view_requirements(metadata: Document, requirements: Iterable[Any]) -> None:
    """Return if every requirement holds of the view's metadata."""
    for requirement in [_parse(requirement, _OF_A_VIEW, "a view") for requirement in requirements]:
        _OF_A_VIEW[requirement["type"].lower()](metadata, requirement)


def requires_creation(requirements: Iterable[Any]) -> bool:
    """True when one of the requirements is that the table does not exist."""
    return any(isinstance(one, dict) and one.get("type") == "assert-create" for one in requirements)


def _parse(requirement: Any, known: Mapping[str, Any], of: str) -> Document:
    document = as_object(requirement, "update requirement")
    if document.get("type") is None:
        raise IllegalArgument("Cannot parse update requirement. Missing field: type")
    kind = read_string(document, "type").lower()
    if kind in known:
        return document
    if kind in _OF_A_TABLE or kind in _OF_A_VIEW:
        raise InvalidRequest(f"Cannot validate {kind} against {of}")
    raise InvalidRequest(
        f"Unrecognized update requirement: {as_json(kind)}; of {of} one of {join(known)} can be required"
    )


def _assert_create(_metadata: Document, _requirement: Document) -> None:
    raise CommitFailed("Requirement failed: table already exists")


def _assert_table_uuid(metadata: Document, requirement: Document) -> None:
    uuid = read_string(requirement, "uuid")
    if uuid.lower() != str(metadata.get("table-uuid")).lower():
        raise CommitFailed(f"Requirement failed: UUID does not match: expected {metadata.get('table-uuid')} != {uuid}")


def _assert_view_uuid(metadata: Document, requirement: Document) -> None:
    uuid = read_string(requirement, "uuid")
    if uuid.lower() != str(metadata.get("view-uuid")).lower():
        raise CommitFailed(
            f"Requirement failed: view UUID does not match: expected {metadata.get('view-uuid')} != {uuid}"
        )


def _assert_ref_snapshot_id(metadata: Document, requirement: Document) -> None:
    name = read_string(requirement, "ref")
    expected = read_optional_long(requirement, "snapshot-id")
    ref = refs_of(metadata).get(name)
    if ref is None:
        if expected is not None:
            raise CommitFailed(f"Requirement failed: branch or tag {name} is missing, expected {expected}")
        return
    kind = ref["type"]
    if expected is None:
        raise CommitFailed(f"Requirement failed: {kind} {name} was created concurrently")
    if expected != ref["snapshot-id"]:
        raise CommitFailed(
            f"Requirement failed: {kind} {name} has changed: expected id {expected} != {ref['snapshot-id']}"
        )


def refs_of(metadata: Document) -> dict[str, Document]:
    """The table's refs; metadata from before refs has the one that its current snapshot implies."""
    refs: dict[str, Document] | None = metadata.get("refs")
    if refs is None:
        current = metadata.get("current-snapshot-id")
        return {} if current in (None, -1) else {"main": {"snapshot-id": current, "type": "branch"}}
    return refs


def _assert_equal(required: str, field: str, what: str, default: int) -> Callable[[Document, Document], None]:
    """A requirement that one number of the metadata is unchanged; `default` stands where a v1 table does not say."""

    def check(metadata: Document, requirement: Document) -> None:
        expected, actual = read_int(requirement, required), metadata.get(field, default)
        if expected != actual:
            raise CommitFailed(f"Requirement failed: {what} changed: expected id {expected} != {actual}")

    return check


_OF_A_TABLE: Final[dict[str, Callable[[Document, Document], None]]] = {
    "assert-create": _assert_create,
    "assert-table-uuid": _assert_table_uuid,
    "assert-ref-snapshot-id": _assert_ref_snapshot_id,
    "assert-last-assigned-field-id": _assert_equal(
        "last-assigned-field-id", "last-column-id", "last assigned field id", 0
    ),
    "assert-current-schema-id": _assert_equal("current-schema-id", "current-schema-id", "current schema", 0),
    "assert-last-assigned-partition-id": _assert_equal(
        "last-assigned-partition-id", "last-partition-id", "last assigned partition id", 999
    ),
    "assert-default-spec-id": _assert_equal("default-spec-id", "default-spec-id", "default partition spec", 0),
    "assert-default-sort-order-id": _assert_equal(
        "default-sort-order-id", "default-sort-order-id", "default sort order", 0
    ),
}

_OF_A_VIEW: Final[dict[str, Callable[[Document, Document], None]]] = {"assert-view-uuid": _assert_view_uuid}
