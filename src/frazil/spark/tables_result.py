"""What a run over the tables of a database has to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frazil.spark.ingest_result import IngestResult


@dataclass(frozen=True, slots=True)
class TablesResult:
    """A result per PostgreSQL table, by its name there. `atomic`: one commit made all of them visible."""

    job_id: str
    source: str
    tables: Mapping[str, IngestResult]
    instant: str
    atomic: bool
    started_over: bool = False

    @property
    def results(self) -> tuple[IngestResult, ...]:
        """The results alone."""
        return tuple(self.tables.values())

    @property
    def landed(self) -> bool:
        """Whether any snapshot was published."""
        return any(result.snapshot_id is not None for result in self.results)

    def total(self, figure: str) -> int:
        """A figure over all tables."""
        return sum(getattr(result, figure) for result in self.results)

    def to_document(self) -> dict[str, Any]:
        """The one JSON object of `--json`."""
        return {
            "outcome": "landed" if self.landed else "nothing to do",
            "job_id": self.job_id,
            "source": self.source,
            "instant": self.instant,
            "atomic": self.atomic,
            "started_over": self.started_over,
            **{figure: self.total(figure) for figure in ("rows", "files", "bytes", "source_bytes", "shards")},
            **{
                figure: max(getattr(result, figure) for result in self.results)
                for figure in ("session_seconds", "job_seconds")
            },
            "publish_seconds": sum(result.publish_seconds for result in self.results),
            "tables": {name: result.to_document() for name, result in self.tables.items()},
        }
