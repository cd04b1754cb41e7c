"""The routes of server-side scan planning. A plan is all in its id, so any process can answer, and none holds anything."""

from __future__ import annotations

from starlette.responses import Response

from frazil.catalog import pointers
from frazil.catalog.access import AllowAll
from frazil.catalog.call import Call, no_content, reply
from frazil.catalog.confined_io import ConfinedFileIO
from frazil.catalog.database_tables import TABLE
from frazil.catalog.document import read_string
from frazil.catalog.locations import folders_of
from frazil.catalog.metadata_store import MetadataDocument
from frazil.catalog.naming import decode_segment
from frazil.catalog.scan_planning import check_plan_id, fetch_tasks, plan_again, plan_scan


def plan_table_scan(call: Call) -> Response:
    """Plan a scan; always completed, for what is too big for one reply is left to plan tasks."""
    table = _table(call)
    return reply(plan_scan(table.metadata, call.document, _io(call, table)))


def fetch_planning_result(call: Call) -> Response:
    """The same plan again."""
    table, plan_id = _table(call), decode_segment(call.segments["plan_id"])
    return reply(plan_again(table.metadata, plan_id, _io(call, table)))


def cancel_planning(call: Call) -> Response:
    """Nothing is held for a plan, so there is nothing to give back; a plan that never was is 404."""
    check_plan_id(_table(call).metadata, decode_segment(call.segments["plan_id"]))
    return no_content()


def fetch_scan_tasks(call: Call) -> Response:
    """The files of a plan task."""
    table, task = _table(call), read_string(call.document, "plan-task")
    return reply(fetch_tasks(table.metadata, task, _io(call, table)))


def _io(call: Call, table: MetadataDocument) -> ConfinedFileIO:
    """The warehouse's files; where access is guarded the table's own alone, or a client could read of others through it."""
    guarded = not isinstance(call.backend.authorizer, AllowAll)
    roots = folders_of(table.metadata) if guarded else call.backend.settings.roots
    return ConfinedFileIO(call.backend.store.storage.file_io(table.location), roots)


def _table(call: Call) -> MetadataDocument:
    identifier = call.identifier("table")
    call.authorize(identifier.namespace, identifier.name)
    with call.backend.database.read() as connection:
        location = pointers.get(connection, identifier, TABLE)
    return call.backend.store.load(location)
