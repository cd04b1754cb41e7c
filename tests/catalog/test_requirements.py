"""Requirements: each holds or fails with Iceberg's own words, and nothing malformed passes."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.documents import UUID, Document, new_table, point, with_snapshots
from frazil.catalog.errors import CommitFailed, IllegalArgument, InvalidRequest
from frazil.catalog.requirements import check_requirements, check_view_requirements, requires_creation
from frazil.catalog.updates import apply_updates

TABLE = apply_updates(with_snapshots(new_table(), 3), [point(2, "audit", "tag")], now_ms=0)


def requirement(kind: str, **fields: Any) -> Document:
    return {"type": kind, **fields}


HOLD = [
    requirement("assert-table-uuid", uuid=UUID.upper()),
    requirement("assert-ref-snapshot-id", ref="main", **{"snapshot-id": 3}),
    requirement("assert-ref-snapshot-id", ref="audit", **{"snapshot-id": 2}),
    requirement("assert-ref-snapshot-id", ref="nowhere", **{"snapshot-id": None}),
    requirement("assert-last-assigned-field-id", **{"last-assigned-field-id": 3}),
    requirement("assert-current-schema-id", **{"current-schema-id": 0}),
    requirement("assert-last-assigned-partition-id", **{"last-assigned-partition-id": 999}),
    requirement("assert-default-spec-id", **{"default-spec-id": 0}),
    requirement("assert-default-sort-order-id", **{"default-sort-order-id": 0}),
]

FAIL = [
    (requirement("assert-create"), "Requirement failed: table already exists"),
    (
        requirement("assert-table-uuid", uuid="other"),
        f"Requirement failed: UUID does not match: expected {UUID} != other",
    ),
    (
        requirement("assert-ref-snapshot-id", ref="main", **{"snapshot-id": 2}),
        "Requirement failed: branch main has changed: expected id 2 != 3",
    ),
    (
        requirement("assert-ref-snapshot-id", ref="audit", **{"snapshot-id": 1}),
        "Requirement failed: tag audit has changed: expected id 1 != 2",
    ),
    (
        requirement("assert-ref-snapshot-id", ref="main", **{"snapshot-id": None}),
        "Requirement failed: branch main was created concurrently",
    ),
    (
        requirement("assert-ref-snapshot-id", ref="nowhere", **{"snapshot-id": 1}),
        "Requirement failed: branch or tag nowhere is missing, expected 1",
    ),
    (
        requirement("assert-last-assigned-field-id", **{"last-assigned-field-id": 2}),
        "Requirement failed: last assigned field id changed: expected id 2 != 3",
    ),
    (
        requirement("assert-current-schema-id", **{"current-schema-id": 1}),
        "Requirement failed: current schema changed: expected id 1 != 0",
    ),
    (
        requirement("assert-last-assigned-partition-id", **{"last-assigned-partition-id": 1000}),
        "Requirement failed: last assigned partition id changed: expected id 1000 != 999",
    ),
    (
        requirement("assert-default-spec-id", **{"default-spec-id": 4}),
        "Requirement failed: default partition spec changed: expected id 4 != 0",
    ),
    (
        requirement("assert-default-sort-order-id", **{"default-sort-order-id": 1}),
        "Requirement failed: default sort order changed: expected id 1 != 0",
    ),
]


def test_what_is_so_may_be_required() -> None:
    check_requirements(TABLE, HOLD)


@pytest.mark.parametrize(("failing", "message"), FAIL, ids=lambda one: one.get("type") if isinstance(one, dict) else "")
def test_what_is_not_so_fails_the_commit_in_icebergs_words(failing: Document, message: str) -> None:
    with pytest.raises(CommitFailed) as failure:
        check_requirements(TABLE, [*HOLD, failing])
    assert failure.value.message == message
    assert failure.value.to_document() == {"error": {"message": message, "type": "CommitFailedException", "code": 409}}


def test_a_table_from_before_refs_has_the_branch_that_its_current_snapshot_implies() -> None:
    old = {name: value for name, value in TABLE.items() if name != "refs"}
    check_requirements(old, [requirement("assert-ref-snapshot-id", ref="main", **{"snapshot-id": 3})])


def test_of_a_table_that_is_not_there_only_its_creation_can_be_required() -> None:
    check_requirements(None, [requirement("assert-create")])
    with pytest.raises(IllegalArgument, match=r"Invalid create requirements: \[assert-table-uuid\]"):
        check_requirements(None, [requirement("assert-create"), requirement("assert-table-uuid", uuid=UUID)])


@pytest.mark.parametrize(
    ("malformed", "message"),
    [
        ("assert-create", "Cannot parse update requirement from non-object"),
        ({}, "Cannot parse update requirement. Missing field: type"),
        (requirement("assert-weather"), 'Unrecognized update requirement: "assert-weather"'),
        (requirement("assert-view-uuid", uuid=UUID), "Cannot validate assert-view-uuid against a table"),
        (requirement("assert-table-uuid"), "Cannot parse missing string: uuid"),
        (
            requirement("assert-ref-snapshot-id", ref="main", **{"snapshot-id": "3"}),
            "Cannot parse to a long value: snapshot-id",
        ),
        (
            requirement("assert-default-spec-id", **{"default-spec-id": True}),
            "Cannot parse to an integer value: default-spec-id",
        ),
    ],
)
def test_a_malformed_requirement_is_refused(malformed: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_requirements(TABLE, [malformed])
    assert message in refusal.value.message
    assert refusal.value.status == 400


def test_a_view_can_be_required_to_be_the_one_that_was_read() -> None:
    check_view_requirements({"view-uuid": UUID}, [requirement("assert-view-uuid", uuid=UUID)])
    with pytest.raises(CommitFailed, match=r"view UUID does not match: expected .* != other"):
        check_view_requirements({"view-uuid": UUID}, [requirement("assert-view-uuid", uuid="other")])
    with pytest.raises(InvalidRequest, match="Cannot validate assert-table-uuid against a view"):
        check_view_requirements({"view-uuid": UUID}, [requirement("assert-table-uuid", uuid=UUID)])


def test_requiring_creation_is_seen() -> None:
    assert requires_creation([requirement("assert-create")])
    assert not requires_creation([requirement("assert-table-uuid", uuid=UUID), "assert-create"])
