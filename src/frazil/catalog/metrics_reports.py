"""The routes of metrics reports: what engines tell of their scans and commits is kept, and can be read."""

from __future__ import annotations

import orjson
from sqlalchemy import Connection, delete, insert, select
from starlette.responses import Response

from frazil.catalog import pointers
from frazil.catalog.call import Call, no_content, reply
from frazil.catalog.database_tables import TABLE, metrics_reports
from frazil.catalog.document import read_string
from frazil.catalog.errors import IllegalArgument

_KINDS = ("scan-report", "commit-report")
_MOST_SHOWN = 1000
_COLUMNS = metrics_reports.c


def report_metrics(call: Call) -> Response:
    """Keep a report."""
    identifier, report = call.identifier("table"), call.document
    call.authorize(identifier.namespace, identifier.name)
    kind = read_string(report, "report-type")
    if kind not in _KINDS:
        raise IllegalArgument(f"Invalid report type: {kind}; it is {' or '.join(_KINDS)}")
    row = {
        **identifier.row,
        "report_id": call.backend.new_uuid(),
        "received_at_ms": call.backend.clock_ms(),
        "report": orjson.dumps(report).decode(),
    }

    def work(connection: Connection) -> None:
        pointers.get(connection, identifier, TABLE)
        connection.execute(insert(metrics_reports).values(row))

    call.backend.database.write(work)
    return no_content()


def list_reports(call: Call) -> Response:
    """The newest reports of a table, the newest first."""
    identifier = call.identifier("table")
    call.authorize(identifier.namespace, identifier.name)
    query = select(_COLUMNS.received_at_ms, _COLUMNS.report).where(
        *(_COLUMNS[name] == value for name, value in identifier.row.items())
    )
    with call.backend.database.read() as connection:
        pointers.get(connection, identifier, TABLE)
        rows = connection.execute(query.order_by(_COLUMNS.received_at_ms.desc()).limit(_MOST_SHOWN)).all()
    return reply({"reports": [{"received-at-ms": at, "report": orjson.loads(report)} for at, report in rows]})


def forget_before(connection: Connection, at_ms: int) -> int:
    """Remove what is older. Returns how many reports were."""
    return connection.execute(delete(metrics_reports).where(_COLUMNS.received_at_ms < at_ms)).rowcount
