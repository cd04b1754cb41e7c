"""The janitor: ends what has expired. Every process of a catalog has one, and they do not get in each other's way."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from sqlalchemy import Connection

from frazil.catalog import idempotency, metrics_reports, reservations, staged
from frazil.catalog.backend import Backend

_LOG = logging.getLogger(__name__)


class Janitor:
    """A thread that cleans up every now and then, for as long as the context lasts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="frazil-janitor", daemon=True)

    def __enter__(self) -> Janitor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._ended.wait(self._backend.settings.janitor_every):
            try:
                clean(self._backend)
            except Exception:  # noqa: BLE001  the next turn is the retry, and the log says why there is one
                _LOG.exception("cleaning up failed; it is tried again in %s s", self._backend.settings.janitor_every)


def clean(backend: Backend) -> int:
    """Remove staged creates that have expired, and what need not be remembered any longer.

    Returns how many staged creates there were.
    """
    now_ms, settings = backend.clock_ms(), backend.settings

    def forget(connection: Connection) -> None:
        idempotency.forget_before(connection, now_ms - int(2000 * settings.idempotency_for))
        metrics_reports.forget_before(connection, now_ms - int(1000 * settings.metrics_reports_for))
        reservations.forget_before(connection, now_ms - int(1000 * settings.ended_reservations_for))

    backend.database.write(forget)
    return staged.clean(backend)
