"""What a run of `frazil ingest` has to show, and who is told while it goes on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol


class Progress(Protocol):
    """Who is told how a run goes on."""

    def phase(self, text: str) -> None:
        """What is being done now."""

    def planned(self, job_id: str, rows: int, size: int, shards: int) -> None:
        """The work is known."""

    def accepted(self, rows: int, size: int) -> None:
        """One more shard is done, and its report is on disk."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The figures of a run. `snapshot_id` is None where there was no row to append, so that nothing was published.

    `rejected`: rows that did not fit, which are in `rejected_table`.
    `notes`: what went wrong after the snapshot had landed, and what to do about it.
    """

    job_id: str
    table: str
    location: str
    metadata_location: str
    snapshot_id: int | None
    rows: int
    files: int
    bytes: int
    source_bytes: int
    shards: int
    shards_done_before: int
    commit_attempts: int
    session_seconds: float
    job_seconds: float
    publish_seconds: float
    table_created: bool
    branch: str = "main"
    rejected: int = 0
    rejected_table: str | None = None
    notes: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The one JSON object of `--json`."""
        nothing = "all rejected" if self.rejected else "nothing to do"
        return {"outcome": "landed" if self.snapshot_id is not None else nothing, **asdict(self)}
