"""Reservations on a catalog that keeps them itself, as Frazil's own does.

The protocol speaks of reservations as table properties, which every catalog has. Where the catalog's configuration offers
better, this module stands at the door and translates: the properties come from the reply to load-table, which tells of
the reservations beside the metadata, and their changes go out as updates and as the requirement that the catalog checks in the
very transaction that publishes. A second coordinator then fails inside the catalog, not on a look that may be old.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import Field, SerializeAsAny
from pyiceberg.catalog.rest import Endpoints, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import BadRequestError, CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableResponse, Table, TableIdentifier
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, RemovePropertiesUpdate, SetPropertiesUpdate
from pyiceberg.typedef import IcebergBaseModel
from requests import HTTPError, Response

OFFER = "frazil.native-reservations"
RESERVATION = "frazil.reservation."
ENDED = "frazil.ended."
_FIELDS = ("commit-uuid", "ref", "parent-snapshot-id", "sequence-hint", "expires-at-ms")
_UNKNOWN = CommitStateUnknownException
_EXPIRED = "ReservationExpiredException"


class ReserveSnapshotUpdate(IcebergBaseModel):
    """Keep a snapshot id for one commit."""

    action: Literal["reserve-snapshot"] = "reserve-snapshot"
    snapshot_id: int = Field(alias="snapshot-id")
    commit_uuid: str = Field(alias="commit-uuid")
    ref: str
    parent_snapshot_id: int | None = Field(alias="parent-snapshot-id")
    sequence_hint: int = Field(alias="sequence-hint")
    expires_at_ms: int = Field(alias="expires-at-ms")


class RenewSnapshotReservationUpdate(IcebergBaseModel):
    """Keep it longer."""

    action: Literal["renew-snapshot-reservation"] = "renew-snapshot-reservation"
    snapshot_id: int = Field(alias="snapshot-id")
    commit_uuid: str = Field(alias="commit-uuid")
    expires_at_ms: int = Field(alias="expires-at-ms")


class CancelSnapshotReservationUpdate(IcebergBaseModel):
    """Give it back; `forget`: and leave no mark that it ever was."""

    action: Literal["cancel-snapshot-reservation"] = "cancel-snapshot-reservation"
    snapshot_id: int = Field(alias="snapshot-id")
    commit_uuid: str = Field(alias="commit-uuid")
    ended_at_ms: int | None = Field(alias="ended-at-ms", default=None)
    forget: bool = False


class AssertSnapshotReservation(IcebergBaseModel):
    """The reservation is held; a commit that adds its snapshot consumes it."""

    type: Literal["assert-snapshot-reservation"] = "assert-snapshot-reservation"
    snapshot_id: int = Field(alias="snapshot-id")
    commit_uuid: str = Field(alias="commit-uuid")


class _CommitRequest(IcebergBaseModel):
    """As PyIceberg's, which takes no requirement and no update but those that it knows."""

    identifier: TableIdentifier
    requirements: tuple[SerializeAsAny[IcebergBaseModel], ...]
    updates: tuple[SerializeAsAny[IcebergBaseModel], ...]


def is_offered(table: Table) -> bool:
    """Whether the table's catalog keeps reservations itself."""
    catalog = table.catalog
    return isinstance(catalog, RestCatalog) and catalog.properties.get(OFFER) == "true"


def with_reservations(table: Table) -> TableMetadata:
    """The metadata of a table that was just loaded, with its reservations as properties."""
    told = {key: _in_order(key, value) for key, value in table.config.items() if _is_ours(key)}
    return _with_properties(table.metadata, told)


def commit(table: Table, requirements: Sequence[Any], updates: Sequence[Any]) -> CommitTableResponse:
    """As the catalog's `commit_table`, with what is about reservations said in the catalog's own words."""
    held = {key: value for key, value in table.metadata.properties.items() if _is_ours(key)}
    asserted, kept = translated(updates, held)
    response = send(table, (*requirements, *asserted), kept)
    return response.model_copy(update={"metadata": _with_properties(response.metadata, _after(held, updates))})


def translated(
    updates: Sequence[Any], held: Mapping[str, str]
) -> tuple[list[AssertSnapshotReservation], list[IcebergBaseModel]]:
    """The requirements and the updates that say the same to the catalog; `held` are the properties as they were told.

    A reservation's property is removed for one of three reasons: its snapshot is published, which is a requirement; a
    mark takes its place, and cancels it; or it is to be forgotten.
    """
    added = {update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)}
    asserted: list[AssertSnapshotReservation] = []
    kept: list[IcebergBaseModel] = []
    ended: set[int] = set()
    for update in updates:
        if isinstance(update, SetPropertiesUpdate):
            kept += _set(update.updates, held)
            ended |= {_snapshot_id(key) for key in update.updates if key.startswith(ENDED)}
        elif isinstance(update, RemovePropertiesUpdate):
            for named in _named(update.removals, held):
                if named["snapshot-id"] in added:
                    asserted.append(AssertSnapshotReservation.model_validate(named))
                elif named["snapshot-id"] not in ended:
                    kept.append(CancelSnapshotReservationUpdate.model_validate({**named, "forget": True}))
            if ordinary := [key for key in update.removals if not _is_ours(key)]:
                kept.append(RemovePropertiesUpdate(removals=ordinary))
        else:
            kept.append(update)
    return asserted, kept


def _set(updates: Mapping[str, str], held: Mapping[str, str]) -> Iterator[IcebergBaseModel]:
    for key, value in updates.items():
        named = {"snapshot-id": _snapshot_id(key), **json.loads(value)} if _is_ours(key) else {}
        if key.startswith(ENDED):
            yield CancelSnapshotReservationUpdate.model_validate(named)
        elif key.startswith(RESERVATION):
            yield (RenewSnapshotReservationUpdate if key in held else ReserveSnapshotUpdate).model_validate(named)
    if ordinary := {key: value for key, value in updates.items() if not _is_ours(key)}:
        yield SetPropertiesUpdate(updates=ordinary)


def _named(removals: Sequence[str], held: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each reservation once, by its snapshot and its commit."""
    commits: dict[int, str] = {}
    for key in removals:
        if _is_ours(key):
            told = json.loads(held.get(key, "{}")).get("commit-uuid", "")
            commits[_snapshot_id(key)] = told or commits.get(_snapshot_id(key), "")
    return [{"snapshot-id": snapshot_id, "commit-uuid": commit} for snapshot_id, commit in commits.items()]


def _is_ours(key: str) -> bool:
    return key.startswith((RESERVATION, ENDED))


def _after(held: Mapping[str, str], updates: Sequence[Any]) -> dict[str, str]:
    after = dict(held)
    for update in updates:
        if isinstance(update, SetPropertiesUpdate):
            after |= {key: value for key, value in update.updates.items() if _is_ours(key)}
        elif isinstance(update, RemovePropertiesUpdate):
            after = {key: value for key, value in after.items() if key not in update.removals}
    return after


def _snapshot_id(key: str) -> int:
    return int(key.removeprefix(RESERVATION).removeprefix(ENDED))


def _in_order(key: str, value: str) -> str:
    """The value as the protocol would have written it, so that the two compare equal."""
    document = json.loads(value)
    fields = _FIELDS if key.startswith(RESERVATION) else ("commit-uuid", "ended-at-ms")
    return json.dumps({field: document.get(field) for field in fields})


def _with_properties(metadata: TableMetadata, properties: Mapping[str, str]) -> TableMetadata:
    if not properties:
        return metadata
    return metadata.model_copy(update={"properties": {**metadata.properties, **properties}})


def send(table: Table, requirements: Sequence[Any], updates: Sequence[Any]) -> CommitTableResponse:
    """One update-table request. PyIceberg has no door for words of our own, so this goes through its session."""
    catalog, identifier = cast("RestCatalog", table.catalog), table.name()
    named = TableIdentifier(namespace=identifier[:-1], name=identifier[-1])
    request = _CommitRequest(identifier=named, requirements=tuple(requirements), updates=tuple(updates))
    url = catalog.url(Endpoints.update_table, prefixed=True, **catalog._split_identifier_for_path(named))
    response = catalog._session.post(url, data=request.model_dump_json().encode())
    try:
        response.raise_for_status()
    except HTTPError as error:
        if _has_expired(response):
            raise BadRequestError(f"{response.text}; renew it, or begin a new snapshot") from error
        conflict = {409: CommitFailedException, 500: _UNKNOWN, 502: _UNKNOWN, 504: _UNKNOWN}
        _handle_non_200_response(error, conflict)
    return CommitTableResponse.model_validate_json(response.text)


def _has_expired(response: Response) -> bool:
    """Whether the catalog's clock says so, although ours does not: a conflict that no other try would mend."""
    return response.status_code == 409 and _EXPIRED in response.text
