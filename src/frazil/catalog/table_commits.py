"""The routes that commit to tables: one at a time, or several in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from frazil.catalog import pointers, reservations, staged
from frazil.catalog.call import Call, no_content
from frazil.catalog.commit import Change, commit, discard, prepare, retried
from frazil.catalog.database_tables import TABLE
from frazil.catalog.document import Document, as_object, read_list, read_object, read_string
from frazil.catalog.errors import InvalidRequest
from frazil.catalog.idempotency import Recorded
from frazil.catalog.naming import checked_name, checked_namespace
from frazil.catalog.places import authorize_places
from frazil.catalog.pointers import Identifier
from frazil.catalog.requirements import check_requirements, requires_creation
from frazil.catalog.table_reply import commit_table_response, snapshots_asked
from frazil.catalog.tables import recording
from frazil.catalog.updates import apply_updates


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """One table's part of a commit, with what is about reservations set apart."""

    identifier: Identifier
    requirements: Sequence[Any]
    updates: Sequence[Any]
    reservation_requirements: Sequence[Any]
    reservation_updates: Sequence[Any]

    @classmethod
    def parse(cls, identifier: Identifier, document: Document) -> CommitRequest:
        """The lists of the request, none of them checked yet."""
        requirements, updates = read_list(document, "requirements"), read_list(document, "updates")
        return cls(
            identifier,
            [each for each in requirements if not reservations.is_requirement(each)],
            [each for each in updates if not reservations.is_update(each)],
            [each for each in requirements if reservations.is_requirement(each)],
            [each for each in updates if reservations.is_update(each)],
        )

    @property
    def added_snapshots(self) -> set[int]:
        """The ids of the snapshots that the updates add."""
        return {update["snapshot"]["snapshot-id"] for update in self.updates if update.get("action") == "add-snapshot"}


def update_table(call: Call) -> Response:
    """Commit to one table; or finalise its creation, where the request requires that it does not exist."""
    snapshots = snapshots_asked(call)  # before the commit, which a bad query must not follow
    request = CommitRequest.parse(call.identifier("table"), call.document)
    _authorize(call, request)
    change: Change = retried(call.backend, lambda: _commit_one(call, request))
    return commit_table_response(call, change.new, snapshots)


def _commit_one(call: Call, request: CommitRequest) -> Change:
    with call.backend.turns.turn(str(request.identifier)):
        change = _prepared(call, request)
        with staged.finalising(call.backend, [change]):
            commit(call.backend, [change], recording(call, change.new.location))
        return change


def commit_transaction(call: Call) -> Response:
    """Commit to several tables, all or none."""
    requests = [_named_request(call, each) for each in read_list(call.document, "table-changes")]
    names = [str(request.identifier) for request in requests]
    if len(set(names)) != len(names):
        raise InvalidRequest("Invalid transaction: a table is named twice; put its changes together")
    for request in requests:
        _authorize(call, request, "updateTable")
    retried(call.backend, lambda: _commit_all(call, requests))
    return no_content()


def _commit_all(call: Call, requests: Sequence[CommitRequest]) -> None:
    with ExitStack() as turns:
        for name in sorted(str(request.identifier) for request in requests):
            turns.enter_context(call.backend.turns.turn(name))
        changes: list[Change] = []
        try:
            changes.extend(_prepared(call, request) for request in requests)
        except Exception:
            discard(call.backend, changes)
            raise
        with staged.finalising(call.backend, changes):
            commit(call.backend, changes, lambda work: call.write(work, Recorded(204)))


def _named_request(call: Call, document: Any) -> CommitRequest:
    change = as_object(document, "table change")
    named = read_object(change, "identifier")
    namespace = checked_namespace(named.get("namespace"))
    return CommitRequest.parse(call.identify(namespace, checked_name(read_string(named, "name"), "table")), change)


def _authorize(call: Call, request: CommitRequest, operation: str | None = None) -> None:
    creates = requires_creation(request.requirements)
    call.authorize(request.identifier.namespace, request.identifier.name, "createTable" if creates else operation)


def _prepared(call: Call, request: CommitRequest) -> Change:
    """Check a commit against the table as it is now, and write the metadata that it would have."""
    backend = call.backend
    with backend.database.read() as connection:
        location = pointers.find(connection, request.identifier, TABLE)
    if location is None:
        if not requires_creation(request.requirements):
            raise pointers.missing(request.identifier, TABLE)
        if request.reservation_requirements or request.reservation_updates:
            raise InvalidRequest(
                f"Cannot reserve a snapshot of {request.identifier}, which does not exist; create it first"
            )
        with staged.counting_failures(backend):
            return staged.finalise(call, request.identifier, request.requirements, request.updates)
    old = backend.store.load(location)
    with staged.counting_failures(backend) if requires_creation(request.requirements) else nullcontext():
        check_requirements(old.metadata, request.requirements)
    now_ms = backend.clock_ms()
    metadata = apply_updates(old.metadata, request.updates, now_ms=now_ms, previous_location=location)
    authorize_places(call, request.identifier, metadata, old.metadata)
    also = reservations.work_for(
        old.metadata,
        request.reservation_requirements,
        request.reservation_updates,
        request.added_snapshots if request.reservation_requirements else set(),
        now_ms,
    )
    return prepare(backend, request.identifier, TABLE, old, metadata, also)
