"""Numbers that are asked for when Prometheus comes: which server this is, and what all its processes count together."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Final

from frazil.catalog import counters
from frazil.catalog.database import Database
from frazil.catalog.metrics import Gauge, Metric

_TOLD: Final = {
    counters.STAGED: "Staged creates begun.",
    counters.FINALISED: "Staged creates that became tables.",
    counters.FAILED: "Staged creates whose first commit was refused.",
    counters.CLEANED: "Staged creates that expired and were removed.",
    counters.CLEANUP_FAILURES: "Files of staged creates that could not be removed.",
}


class SharedCounters:
    """The counters in the database: the same whichever process answers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lines(self) -> Iterable[str]:
        """HELP, TYPE and the number of each."""
        with self._database.read() as connection:
            found = counters.read_all(connection)
        for name in sorted(found):
            full = f"frazil_catalog_{name}_total"
            yield f"# HELP {full} {_TOLD.get(name, name)}"
            yield f"# TYPE {full} counter"
            yield f"{full} {found[name]}"


def server_metrics(database: Database, started: float) -> list[Metric]:
    """What /metrics shows beside the requests."""
    return [
        Gauge(
            "frazil_catalog_started_seconds", f"When this process started. Frazil {version('frazil')}.", lambda: started
        ),
        SharedCounters(database),
    ]
