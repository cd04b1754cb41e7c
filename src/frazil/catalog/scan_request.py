"""A scan that a client asks to be planned, and the tokens that stand for it or for a part of it.

A token says all that is needed to plan again, so the server keeps nothing between requests and any process can answer. What a
token names is looked up in the table it is used on, never read from the token: no file can be named by one.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pyiceberg.schema import Schema

from frazil.catalog.document import (
    Document,
    as_object,
    read_bool,
    read_optional_long,
    read_strings,
)
from frazil.catalog.errors import IllegalArgument, NoSuchPlan, NoSuchPlanTask
from frazil.catalog.table_draft import NO_SNAPSHOT, find

_LONGEST_TOKEN: Final = 1 << 20
_PLAN: Final = "plan"
_TASK: Final = "task"


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A PlanTableScanRequest, resolved: `snapshot_id` is the one to read, None in a table that has none."""

    snapshot_id: int | None
    after_snapshot_id: int | None
    """Of an incremental scan: the snapshot after which appends count."""
    filter: Any
    case_sensitive: bool
    snapshot_schema: bool
    stats_fields: tuple[str, ...]

    @classmethod
    def parse(cls, request: Any, metadata: Document) -> ScanRequest:
        """The request, if it is well-formed and its snapshots are in the table."""
        document = as_object(request, "scan request")
        snapshot_id = read_optional_long(document, "snapshot-id")
        start, end = (read_optional_long(document, f"{side}-snapshot-id") for side in ("start", "end"))
        if snapshot_id is not None and (start is not None or end is not None):
            raise IllegalArgument("Invalid scan: cannot provide both snapshotId and startSnapshotId/endSnapshotId")
        if (start is None) != (end is None):
            raise IllegalArgument("Invalid incremental scan: startSnapshotId and endSnapshotId is required")
        for name in ("select", "stats-fields"):
            if document.get(name) is not None:
                read_strings(document, name)
        read_optional_long(document, "min-rows-requested")
        chosen = snapshot_id if snapshot_id is not None else end
        return cls(
            snapshot_id=_current(metadata) if chosen is None else _known(metadata, chosen),
            after_snapshot_id=start,
            filter=document.get("filter"),
            case_sensitive=_flag(document, "case-sensitive", True),
            snapshot_schema=_flag(document, "use-snapshot-schema", False),
            stats_fields=tuple(document.get("stats-fields") or ()),
        )

    def schema(self, metadata: Document) -> Schema:
        """The schema that names in the request are looked up in."""
        number = metadata["current-schema-id"]
        if self.snapshot_schema and self.snapshot_id is not None:
            snapshot = find(metadata["snapshots"], "snapshot-id", self.snapshot_id) or {}
            number = snapshot.get("schema-id", number)
        return Schema.model_validate(find(metadata["schemas"], "schema-id", number))

    def plan_id(self, table_uuid: str) -> str:
        """The token of the whole scan."""
        return _seal([_PLAN, table_uuid, *self._fields()])

    def task(self, table_uuid: str, first: int, end: int) -> str:
        """The token of a part: the manifests in those places of the list that the scan reads."""
        return _seal([_TASK, table_uuid, *self._fields(), first, end])

    def _fields(self) -> list[Any]:
        flags = [self.case_sensitive, self.snapshot_schema]
        return [self.snapshot_id, self.after_snapshot_id, self.filter, *flags, self.stats_fields]


def open_plan_id(token: str, metadata: Document) -> ScanRequest:
    """The scan that a plan id stands for. Raises `NoSuchPlan` for an id that this table's plans cannot have."""
    fields = _open(token, _PLAN, metadata, 6)
    if fields is None:
        raise NoSuchPlan(f"Cannot find plan with id: {token[:80]}")
    return _request(fields)


def open_task(token: str, metadata: Document) -> tuple[ScanRequest, int, int]:
    """The scan and the places that a plan task stands for. Raises `NoSuchPlanTask` for what is no token of this table."""
    fields = _open(token, _TASK, metadata, 8)
    if fields is None or not (isinstance(fields[6], int) and isinstance(fields[7], int) and 0 <= fields[6] < fields[7]):
        raise NoSuchPlanTask(f"Cannot find plan task: {token[:80]}")
    return _request(fields), fields[6], fields[7]


def _request(fields: list[Any]) -> ScanRequest:
    return ScanRequest(fields[0], fields[1], fields[2], fields[3] is True, fields[4] is True, tuple(fields[5]))


def _seal(fields: list[Any]) -> str:
    return base64.urlsafe_b64encode(zlib.compress(orjson.dumps(fields))).decode().rstrip("=")


def _open(token: str, kind: str, metadata: Document, count: int) -> list[Any] | None:
    try:
        packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        fields = orjson.loads(zlib.decompressobj().decompress(packed, _LONGEST_TOKEN))
    except (binascii.Error, zlib.error, orjson.JSONDecodeError, ValueError):
        return None
    if not isinstance(fields, list) or len(fields) != count + 2 or fields[:2] != [kind, metadata.get("table-uuid")]:
        return None
    fields = fields[2:]
    snapshot_id, stats = fields[0], fields[5]
    if snapshot_id is not None and find(metadata.get("snapshots") or [], "snapshot-id", snapshot_id) is None:
        return None
    return fields if isinstance(stats, list) and all(isinstance(name, str) for name in stats) else None


def _flag(document: Document, name: str, default: bool) -> bool:
    return default if document.get(name) is None else read_bool(document, name)


def _current(metadata: Document) -> int | None:
    current: int = metadata.get("current-snapshot-id") or NO_SNAPSHOT
    return None if current == NO_SNAPSHOT else current


def _known(metadata: Document, snapshot_id: int) -> int:
    if find(metadata.get("snapshots") or [], "snapshot-id", snapshot_id) is None:
        raise IllegalArgument(f"Cannot find snapshot with ID {snapshot_id}")
    return snapshot_id
