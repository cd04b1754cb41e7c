"""The route of the configuration, and the routes of health."""

from __future__ import annotations

from sqlalchemy import text
from starlette.responses import Response

from frazil.catalog.call import Call, reply
from frazil.catalog.errors import NoSuchWarehouse, ServiceUnavailable

NATIVE_RESERVATIONS = "frazil.native-reservations"


def get_config(call: Call) -> Response:
    """What a client must know before anything else. Whatever stands in `endpoints` works, and nothing else does."""
    settings = call.backend.settings
    call.authorize()
    warehouse = call.query.get("warehouse")
    if warehouse and warehouse.rstrip("/") not in (settings.name, settings.warehouse.rstrip("/")):
        raise NoSuchWarehouse(f"Warehouse does not exist: {warehouse}; this server has {settings.name}")
    overrides = {"prefix": settings.name, NATIVE_RESERVATIONS: "true"}
    if settings.namespace_separator.upper() != "%1F":
        overrides["namespace-separator"] = settings.namespace_separator
    return reply(
        {
            "defaults": dict(settings.defaults),
            "overrides": overrides,
            "endpoints": list(call.endpoints),
            "idempotency-key-lifetime": f"PT{int(settings.idempotency_for)}S",
        }
    )


def health(_call: Call) -> Response:
    """The process answers."""
    return reply({"status": "up"})


def ready(call: Call) -> Response:
    """The database answers too."""
    try:
        with call.backend.database.read() as connection:
            connection.execute(text("SELECT 1"))
    except Exception as error:
        raise ServiceUnavailable(f"The database does not answer: {type(error).__name__}") from error
    return reply({"status": "ready"})
