"""Settings, parsed once at the edge into frozen values."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frazil.errors import BadInput

DEFAULT_ROOT = "lake"
EMBEDDED_CATALOG = "frazil"
# What Spark itself keeps out of its logs (spark.redaction.regex).
_SECRET = re.compile(r"(?i)secret|password|token|access[._-]?key")


@dataclass(frozen=True, slots=True)
class CatalogSettings:
    """Which catalog to use: an embedded one under `root`, or the PyIceberg catalog called `name`."""

    root: str | None = None
    name: str | None = None

    @classmethod
    def choose(cls, root: str | None, name: str | None, environment: Mapping[str, str] = os.environ) -> CatalogSettings:
        """An option wins over the environment; with nothing said it is PyIceberg's default catalog, else `./lake`."""
        if root is not None and name is not None:
            raise BadInput(
                "give --root or --catalog, not both: the first is an embedded catalog, the second a configured one"
            )
        if root is None and name is None:
            root, name = environment.get("FRAZIL_ROOT"), environment.get("FRAZIL_CATALOG")
            if root and name:
                raise BadInput("FRAZIL_ROOT and FRAZIL_CATALOG are both set; unset one of them")
        if name:
            return cls(name=name)
        if root is None and _pyiceberg_has_default():
            return cls(name="default")
        root = root or DEFAULT_ROOT
        if "://" in root and not root.startswith("file://"):
            raise BadInput(
                f"--root {root} is not a local folder; the embedded catalog is a SQLite file, so use --catalog with a "
                "catalog that keeps its tables there"
            )
        return cls(root=str(Path(root.removeprefix("file://")).expanduser().resolve()))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> CatalogSettings:
        """The value that `to_document` gave."""
        return cls(root=document.get("root"), name=document.get("catalog"))

    def to_document(self) -> dict[str, Any]:
        """As JSON values."""
        return {"root": self.root, "catalog": self.name}

    def __str__(self) -> str:
        return f"catalog {self.name}" if self.name else f"{self.root}"


@dataclass(frozen=True, slots=True)
class RejectLimit:
    """How many rows a job may reject: a number, or a share in percent; with neither there is no limit."""

    rows: int | None = None
    percent: float | None = None

    @classmethod
    def parse(cls, text: str | None) -> RejectLimit:
        """`1000` or `0.5%`."""
        if text is None:
            return cls()
        number = text.strip().removesuffix("%").strip()
        try:
            limit = cls(percent=float(number)) if text.strip().endswith("%") else cls(rows=int(number))
        except ValueError:
            limit = cls(rows=-1)
        if not ((limit.rows or 0) >= 0 and 0 <= (limit.percent or 0) <= 100):
            raise BadInput(
                f"--max-rejected {text!r} is neither a number of rows, such as 1000, nor a share, such as 0.5%"
            )
        return limit

    def is_passed(self, rejected: int, rows: int | None) -> bool:
        """Whether so many rejected rows, of `rows` in all where that is known already, are too many."""
        if self.rows is not None and rejected > self.rows:
            return True
        return self.percent is not None and rows is not None and rejected * 100 > self.percent * rows

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.percent is not None else str(self.rows)


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """What `frazil ingest` was asked to do."""

    sources: tuple[str, ...]
    table: str
    catalog: CatalogSettings
    partition_by: str | None = None
    mode: str = "append"
    branch: str = "main"
    master: str = "local[*]"
    conflict: str = "rebase"
    format_version: int = 2
    summary: Mapping[str, str] = field(default_factory=dict)
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    shard_bytes: int | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    tables: str | None = None
    query: str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    merge_schema: bool = False
    on_bad_row: str = "fail"
    max_rejected: str | None = None

    def to_document(self) -> dict[str, Any]:
        """As JSON values, for the job's log. Credentials, and settings that look like it, stay out: a resume names them again."""
        return {
            "sources": list(self.sources),
            "table": self.table,
            **self.catalog.to_document(),
            "partition-by": self.partition_by,
            "mode": self.mode,
            "branch": self.branch,
            "master": self.master,
            "conflict": self.conflict,
            "format-version": self.format_version,
            "summary": dict(self.summary),
            "spark-conf": _without_secrets(self.spark_conf),
            "shard-bytes": self.shard_bytes,
            "format": self.format,
            "options": _without_secrets(self.options),
            "tables": self.tables,
            "query": self.query,
            "merge-schema": self.merge_schema,
            "on-bad-row": self.on_bad_row,
            "max-rejected": self.max_rejected,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> IngestSettings:
        """The settings that `to_document` noted."""
        return cls(
            sources=tuple(document["sources"]),
            table=document["table"],
            catalog=CatalogSettings.from_document(document),
            partition_by=document["partition-by"],
            mode=document["mode"],
            branch=document["branch"],
            master=document["master"],
            conflict=document["conflict"],
            format_version=document["format-version"],
            summary=document["summary"],
            spark_conf=document["spark-conf"],
            shard_bytes=document["shard-bytes"],
            format=document.get("format"),
            options=document.get("options", {}),
            tables=document.get("tables"),
            query=document.get("query"),
            merge_schema=document.get("merge-schema", False),
            on_bad_row=document.get("on-bad-row", "fail"),
            max_rejected=document.get("max-rejected"),
        )


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where jobs are kept: `FRAZIL_STATE`, else the user's own state folder."""
    if chosen := environment.get("FRAZIL_STATE"):
        return Path(chosen).expanduser().resolve()
    base = environment.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "frazil"


def _without_secrets(pairs: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in pairs.items() if not _SECRET.search(key)}


def _pyiceberg_has_default() -> bool:
    # Imported here because `frazil --help` must not pay for PyIceberg.
    from pyiceberg.utils.config import Config

    return bool(Config().get_catalog_config("default"))
