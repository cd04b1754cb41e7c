"""Parts for tests, users' own tests too: a clock to move, faults to inject, steps to crash at."""

from frazil.testing.catalog_proxy import (
    LOST_REPLY,
    LOST_REQUEST,
    CatalogProxy,
    Fault,
    RecordedRequest,
    delayed,
    duplicated,
    held_until,
    lost_behind_status,
    refused_with,
)
from frazil.testing.clock import MovableClock
from frazil.testing.crash import crash_environment
from frazil.testing.cues import Cues
from frazil.testing.faulty_catalog import CommitCall, FaultyCatalog
from frazil.testing.faulty_file_io import FaultyFileIO

__all__ = [
    "LOST_REPLY",
    "LOST_REQUEST",
    "CatalogProxy",
    "CommitCall",
    "Cues",
    "Fault",
    "FaultyCatalog",
    "FaultyFileIO",
    "MovableClock",
    "RecordedRequest",
    "crash_environment",
    "delayed",
    "duplicated",
    "held_until",
    "lost_behind_status",
    "refused_with",
]
