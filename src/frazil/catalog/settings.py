"""What a catalog server was told, parsed once at the edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from frazil.errors import BadInput
from frazil.settings import EMBEDDED_CATALOG

STAGE_CREATE: Final = "FRAZIL_STAGE_CREATE"
STAGING_PLACES: Final = ("internal", "table")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything the server depends on. Times are in seconds, sizes in bytes."""

    database: str
    warehouse: str
    name: str = EMBEDDED_CATALOG
    allowed_locations: tuple[str, ...] = ()
    storage: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    namespace_separator: str = "%1F"
    stage_create: bool = True
    staging: str = "internal"
    staged_for: float = 24 * 3600
    janitor_every: float = 60
    idempotency_for: float = 30 * 60
    metrics_reports_for: float = 7 * 24 * 3600
    ended_reservations_for: float = 30 * 24 * 3600
    cache_bytes: int = 512 * 1024 * 1024
    commit_tries: int = 8
    threads: int = 32
    connections: int = 10

    def __post_init__(self) -> None:
        if self.staging not in STAGING_PLACES:
            raise BadInput(f"staged metadata can lie in {' or '.join(STAGING_PLACES)}, not in {self.staging!r}")
        if "://" not in self.warehouse:
            raise BadInput(
                f"the warehouse {self.warehouse!r} is no location; write file:///folder or s3://bucket/folder"
            )

    @property
    def roots(self) -> tuple[str, ...]:
        """Where tables may lie."""
        return (self.warehouse, *self.allowed_locations)


def stage_create_enabled(environment: Mapping[str, str]) -> bool:
    """`FRAZIL_STAGE_CREATE=off` turns staged create off; anything but on and off is a mistake."""
    value = environment.get(STAGE_CREATE, "on").lower()
    if value not in ("on", "off"):
        raise BadInput(f"{STAGE_CREATE}={value}: it is on or off")
    return value == "on"
