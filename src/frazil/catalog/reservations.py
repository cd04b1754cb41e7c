"""Reservations of snapshots, kept beside the catalog's tables and consumed in the transaction that publishes.

Three updates and a requirement that only this catalog knows go through the ordinary update-table endpoint:

    {"action": "reserve-snapshot", "snapshot-id": 1, "commit-uuid": "…", "expires-at-ms": 2, …}   (others are kept)
    {"action": "renew-snapshot-reservation", "snapshot-id": 1, "commit-uuid": "…", "expires-at-ms": 3}
    {"action": "cancel-snapshot-reservation", "snapshot-id": 1, "commit-uuid": "…", "forget": false}
    {"type": "assert-snapshot-reservation", "snapshot-id": 1, "commit-uuid": "…"}

A cancelled reservation leaves a mark, unless it is to be forgotten. Load-table tells of both in `config`.
A commit with the requirement consumes the reservation: it must add the snapshot of that id, and nobody else can again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from frazil.catalog.database_tables import reservations
from frazil.catalog.document import Document, as_object, read_long, read_optional_long, read_string
from frazil.catalog.errors import CommitFailed, IllegalArgument

HELD, CONSUMED, CANCELLED = "held", "consumed", "cancelled"
REQUIREMENT: Final = "assert-snapshot-reservation"
RESERVATION: Final = "frazil.reservation."
ENDED: Final = "frazil.ended."

_COLUMNS = reservations.c


class ReservationExpired(CommitFailed):
    """The reservation's time is over by the catalog's clock. Told from the rest, for it is of no use to try again."""

    retryable = False
    kind = "ReservationExpiredException"


def is_update(update_: Any) -> bool:
    """Whether an update is about a reservation."""
    return isinstance(update_, dict) and update_.get("action") in _UPDATES


def is_requirement(requirement: Any) -> bool:
    """Whether a requirement is about a reservation."""
    return isinstance(requirement, dict) and requirement.get("type") == REQUIREMENT


def work_for(
    metadata: Document, requirements: Sequence[Any], updates: Sequence[Any], added: set[int], now_ms: int
) -> tuple[Callable[[Connection], None], ...]:
    """What a commit has to do to the reservations of its table, in its own transaction. Checks the request's form at once."""
    if not requirements and not updates:
        return ()
    table = str(metadata.get("table-uuid"))
    taken = {snapshot["snapshot-id"] for snapshot in metadata.get("snapshots") or ()}
    work: list[Callable[[Connection], None]] = []
    for requirement in requirements:
        key = _key(as_object(requirement, "update requirement"), table)
        work.append(_consume(key, now_ms) if key[1] in added else _require(key, now_ms))
    for update_ in updates:
        work.append(_UPDATES[update_["action"]](as_object(update_, "metadata update"), table, taken, now_ms))
    return tuple(work)


_UNCONSUMED = select(
    _COLUMNS.snapshot_id,
    _COLUMNS.commit_uuid,
    _COLUMNS.state,
    _COLUMNS.expires_at_ms,
    _COLUMNS.changed_at_ms,
    _COLUMNS.content,
).where(_COLUMNS.table_uuid == bindparam("of_table"), _COLUMNS.state != CONSUMED)


def config_of(connection: Connection, table_uuid: str) -> dict[str, str]:
    """What load-table tells of a table's reservations, beside the metadata: those that are held, and those cancelled."""
    return dict(_told(row) for row in connection.execute(_UNCONSUMED, {"of_table": table_uuid}))


def _told(row: Any) -> tuple[str, str]:
    if row.state == CANCELLED:
        told = {"commit-uuid": row.commit_uuid, "ended-at-ms": row.changed_at_ms}
        return f"{ENDED}{row.snapshot_id}", orjson.dumps(told).decode()
    told = {**orjson.loads(row.content), "commit-uuid": row.commit_uuid, "expires-at-ms": row.expires_at_ms}
    return f"{RESERVATION}{row.snapshot_id}", orjson.dumps(told).decode()


def forget_before(connection: Connection, at_ms: int) -> int:
    """Remove what ended before. Returns how many; one that was never ended stays, for its files may have to be swept."""
    over = delete(reservations).where(_COLUMNS.state != HELD, _COLUMNS.changed_at_ms < at_ms)
    return connection.execute(over).rowcount


_Key = tuple[str, int, str]


def _key(document: Document, table: str) -> _Key:
    commit_uuid = read_string(document, "commit-uuid")
    if len(commit_uuid) > 36:
        raise IllegalArgument("Invalid commit-uuid: it is longer than 36 characters")
    return table, read_long(document, "snapshot-id"), commit_uuid


def _reserve(document: Document, table: str, taken: set[int], now_ms: int) -> Callable[[Connection], None]:
    key, expires = _key(document, table), read_long(document, "expires-at-ms")
    kept = {name: value for name, value in document.items() if name != "action"}

    def work(connection: Connection) -> None:
        if key[1] in taken:
            raise CommitFailed(f"Requirement failed: snapshot {key[1]} is in the table already")
        row = {"table_uuid": table, "snapshot_id": key[1], "commit_uuid": key[2], "state": HELD}
        row |= {"expires_at_ms": expires, "changed_at_ms": now_ms, "content": orjson.dumps(kept).decode()}
        try:
            connection.execute(insert(reservations).values(row))
        except IntegrityError as error:
            raise CommitFailed(f"Requirement failed: snapshot {key[1]} is reserved already") from error

    return work


def _renew(document: Document, table: str, _taken: set[int], now_ms: int) -> Callable[[Connection], None]:
    key, expires = _key(document, table), read_long(document, "expires-at-ms")

    def work(connection: Connection) -> None:
        # One that has expired may be renewed as long as nobody has cancelled or swept it.
        _change(connection, key, expires_at_ms=expires, changed_at_ms=now_ms)

    return work


def _cancel(document: Document, table: str, _taken: set[int], now_ms: int) -> Callable[[Connection], None]:
    key, forget = _key(document, table), document.get("forget") is True
    # By the clock of whoever sweeps, if it says: the grace period is counted from there.
    told = read_optional_long(document, "ended-at-ms")
    ended_at_ms = now_ms if told is None else told

    def work(connection: Connection) -> None:
        if forget:
            connection.execute(delete(reservations).where(_is(key), _COLUMNS.state != CONSUMED))
        else:
            _change(connection, key, state=CANCELLED, changed_at_ms=ended_at_ms)

    return work


def _consume(key: _Key, now_ms: int) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        _change(connection, key, now_ms, state=CONSUMED, changed_at_ms=now_ms)

    return work


def _require(key: _Key, now_ms: int) -> Callable[[Connection], None]:
    return lambda connection: _change(connection, key, now_ms, state=HELD)


def _change(connection: Connection, key: _Key, live_at_ms: int | None = None, **values: Any) -> None:
    """Change a reservation that is held, and, if a time is given, has not expired by then. Raises if it is not."""
    wanted = and_(_is(key), _COLUMNS.commit_uuid == key[2], _COLUMNS.state == HELD)
    if live_at_ms is not None:
        wanted = and_(wanted, _COLUMNS.expires_at_ms > live_at_ms)
    if connection.execute(update(reservations).where(wanted).values(**values)).rowcount != 1:
        raise _refusal(connection, key)


def _refusal(connection: Connection, key: _Key) -> CommitFailed:
    row = connection.execute(select(_COLUMNS.state, _COLUMNS.commit_uuid).where(_is(key))).first()
    if row is None:
        return CommitFailed(f"Requirement failed: snapshot {key[1]} is not reserved")
    if row.commit_uuid != key[2]:
        return CommitFailed(f"Requirement failed: snapshot {key[1]} is reserved by another commit ({row.commit_uuid})")
    if row.state == HELD:
        return ReservationExpired(f"Requirement failed: the reservation of snapshot {key[1]} is expired")
    return CommitFailed(f"Requirement failed: the reservation of snapshot {key[1]} is {row.state}")


def _is(key: _Key) -> ColumnElement[bool]:
    return and_(_COLUMNS.table_uuid == key[0], _COLUMNS.snapshot_id == key[1])


_UPDATES: Final = {
    "reserve-snapshot": _reserve,
    "renew-snapshot-reservation": _renew,
    "cancel-snapshot-reservation": _cancel,
}
