"""The options of `df.write.format("frazil")` and `spark.read.format("frazil")`, parsed once, on the driver.

They bear the names of the command's options. Spark takes them in any case, so they are compared in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from frazil.errors import BadInput
from frazil.settings import CatalogSettings
from frazil.snapshot.overwrite_scope import MatchingRows, Overwrite, TouchedPartitions, WholeTable

_SUMMARY = "summary."
_TABLE = ("path", "root", "catalog")
_WRITE = (
    "branch",
    "conflict",
    "distribution",
    "format-version",
    "if-exists",
    "merge-schema",
    "on-bad-row",
    "overwrite",
    "partition-by",
    "summary.KEY",
)
_READ = (
    "as-of-timestamp",
    "branch",
    "columns",
    "end-snapshot-id",
    "filter",
    "snapshot-id",
    "split-size",
    "start-snapshot-id",
    "tag",
)
_STREAM = (*_WRITE, "checkpointlocation")

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write was asked to do. `overwrite` is None for an append, else `table`, `partitions` or a filter's text."""

    table: str
    catalog: CatalogSettings
    partition_by: str | None = None
    branch: str = "main"
    overwrite: str | None = None
    if_exists: str = "append"
    merge_schema: bool = False
    on_bad_row: str = "fail"
    distribution: str = "none"
    conflict: str = "rebase"
    format_version: int = 2
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def scope(self) -> Overwrite | None:
        """What is replaced, as a value; None for an append."""
        match self.overwrite:
            case None:
                return None
            case "table":
                return WholeTable()
            case "partitions":
                return TouchedPartitions()
            case text:
                return MatchingRows(text)

    @classmethod
    def parse(cls, options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
        """The options of a batch write; `overwrite` is Spark's own mode."""
        given = _Given(options, (*_TABLE, *_WRITE), "written")
        scope = given.text("overwrite")
        if scope is not None and not overwrite:
            raise BadInput(f'option overwrite={scope!r} says what to replace, so it needs .mode("overwrite") beside it')
        return cls._of(given, (scope or "table") if overwrite else None)

    @classmethod
    def parse_stream(cls, options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
        """The options of a stream; `overwrite` is Spark's output mode `complete`."""
        given = _Given(options, (*_TABLE, *_STREAM), "streamed to")
        if given.text("overwrite") is not None:
            raise BadInput(
                'option overwrite does not go with a stream; use .outputMode("complete") to replace the table'
            )
        return cls._of(given, "table" if overwrite else None)

    @classmethod
    def _of(cls, given: _Given, overwrite: str | None) -> WriteOptions:
        return cls(
            table=given.table,
            catalog=given.catalog,
            partition_by=given.text("partition-by"),
            branch=given.text("branch") or "main",
            overwrite=overwrite,
            if_exists=given.one_of("if-exists", "append", "error", "ignore"),
            merge_schema=given.one_of("merge-schema", "false", "true") == "true",
            on_bad_row=given.one_of("on-bad-row", "fail", "reject"),
            distribution=given.one_of("distribution", "none", "hash", "range"),
            conflict=given.one_of("conflict", "rebase", "abort"),
            format_version=int(given.one_of("format-version", "2", "1", "3")),
            summary=given.beginning_with(_SUMMARY),
        )


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Which rows of which table are read. At most one of the four ways to name a state is set.

    `start_snapshot_id` asks for what was appended after it, up to `end_snapshot_id` or the newest state. `columns` is
    empty for all of them; `filter` is as SQL writes it.
    """

    table: str
    catalog: CatalogSettings
    snapshot_id: int | None = None
    as_of_ms: int | None = None
    branch: str | None = None
    tag: str | None = None
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    columns: tuple[str, ...] = ()
    filter: str | None = None
    split_bytes: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """The options of a read."""
        given = _Given(options, (*_TABLE, *_READ), "read")
        given.at_most_one("snapshot-id", "as-of-timestamp", "branch", "tag")
        for state in ("snapshot-id", "as-of-timestamp", "tag"):
            given.at_most_one(state, "start-snapshot-id")
        if given.text("end-snapshot-id") is not None and given.text("start-snapshot-id") is None:
            raise BadInput("option end-snapshot-id needs start-snapshot-id beside it; for one state use snapshot-id")
        return cls(
            table=given.table,
            catalog=given.catalog,
            snapshot_id=given.parsed("snapshot-id", int, "a snapshot's number"),
            as_of_ms=given.parsed("as-of-timestamp", _milliseconds, "a time such as 2026-01-01T12:00:00Z"),
            branch=given.text("branch"),
            tag=given.text("tag"),
            start_snapshot_id=given.parsed("start-snapshot-id", int, "a snapshot's number"),
            end_snapshot_id=given.parsed("end-snapshot-id", int, "a snapshot's number"),
            columns=given.parsed("columns", _names, "columns' names, each once, such as 'id, day'") or (),
            filter=given.text("filter"),
            split_bytes=given.parsed("split-size", _bytes, "a size such as 64MB, or a number of bytes"),
        )


class _Given:
    """The options as Spark hands them over, by lower-case name; one that is not known is refused."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...], done: str) -> None:
        self._options = {key.lower(): value for key, value in options.items()}
        prefixes = tuple(name.removesuffix("KEY") for name in known if name.endswith("KEY"))
        unknown = sorted(key for key in self._options if key not in known and not key.startswith(prefixes or "\0"))
        if unknown:
            names = ", ".join(name for name in known if name != "path")
            raise BadInput(
                f"no option {', '.join(map(repr, unknown))} is known where a table is {done}; the known ones are {names}"
            )

    @property
    def table(self) -> str:
        path = self.text("path")
        if path is None:
            raise BadInput('name the table: .save("namespace.table") or .load("namespace.table")')
        return path

    @property
    def catalog(self) -> CatalogSettings:
        return CatalogSettings.choose(self.text("root"), self.text("catalog"))

    def text(self, name: str) -> str | None:
        return self._options.get(name) or None

    def one_of(self, name: str, default: str, *others: str) -> str:
        value = (self.text(name) or default).lower()
        if value not in (default, *others):
            raise BadInput(f"option {name} is {value!r}, but it must be one of {', '.join((default, *others))}")
        return value

    def parsed(self, name: str, parse: Callable[[str], _Value], meant: str) -> _Value | None:
        text = self.text(name)
        try:
            return None if text is None else parse(text)
        except ValueError:
            raise BadInput(f"option {name} is {text!r}, but it must be {meant}") from None

    def at_most_one(self, *names: str) -> None:
        given = [name for name in names if self.text(name) is not None]
        if len(given) > 1:
            raise BadInput(f"options {' and '.join(given)} exclude each other; give one of them")

    def beginning_with(self, prefix: str) -> dict[str, str]:
        return {key.removeprefix(prefix): value for key, value in self._options.items() if key.startswith(prefix)}


def _milliseconds(text: str) -> int:
    """Milliseconds since 1970, or a time in ISO 8601, which is UTC when it names no zone."""
    if text.isdigit():
        return int(text)
    moment: Any = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(text)
    return names


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([kmg]?)b?", text.strip().lower())
    if match is None or not int(match[1]):
        raise ValueError(text)
    units = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
    return int(match[1]) * units[match[2]]
