"""Which kind of source a user means, by what was said, by address or by suffix; and shards back from a job's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast

from frazil.errors import BadInput
from frazil.sources import register
from frazil.sources.compression import with_compression
from frazil.sources.csv_dialect import OPTIONS as CSV_OPTIONS
from frazil.sources.files import SourceFile, find_files, first_bytes
from frazil.sources.postgres_address import SCHEMES as POSTGRES_SCHEMES
from frazil.sources.postgres_types import OPTIONS as POSTGRES_OPTIONS
from frazil.sources.source import Shard, Source


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source: its `--format`, the module that reads it, and how it is recognised.

    `options` are the names that `--option` may give. A kind of files has suffixes, and `magic` if its files begin with
    bytes of their own; any other kind has the schemes of its addresses.
    """

    name: str
    module: str
    options: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    magic: bytes | None = None


KINDS = (
    Kind("parquet", "frazil.sources.parquet", suffixes=(".parquet", ".parq", ".pq"), magic=b"PAR1"),
    Kind("avro", "frazil.sources.avro", suffixes=(".avro",), magic=b"Obj\x01"),
    Kind("orc", "frazil.sources.orc", suffixes=(".orc",), magic=b"ORC"),
    Kind("arrow", "frazil.sources.arrow_ipc", suffixes=(".arrow", ".arrows", ".feather", ".ipc"), magic=b"ARROW1"),
    Kind("csv", "frazil.sources.csv", options=CSV_OPTIONS, suffixes=with_compression(".csv", ".tsv")),
    Kind(
        "json",
        "frazil.sources.json_lines",
        options=frozenset({"schema"}),
        suffixes=with_compression(".jsonl", ".ndjson", ".json"),
    ),
    Kind("postgres", "frazil.sources.postgres", options=POSTGRES_OPTIONS, schemes=POSTGRES_SCHEMES),
)


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What a kind's module opens: the user's words, checked options, and for kinds of files the files, none twice."""

    patterns: tuple[str, ...]
    storage: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict)
    files: tuple[SourceFile, ...] = ()

    @property
    def description(self) -> str:
        """As the user named it."""
        return ", ".join(self.patterns)


class _Module(Protocol):
    """What the module of a kind offers."""

    def open_source(self, request: SourceRequest) -> Source:
        """The source, looked at far enough that bad input shows."""

    def shard_from_document(self, name: str, document: Mapping[str, Any]) -> Shard:
        """The shard that `to_document` described."""


def open_source(
    patterns: Sequence[str],
    storage: Mapping[str, str],
    format: str | None = None,  # noqa: A002  the option's name
    options: Mapping[str, str] | None = None,
) -> Source:
    """The source that the patterns name. Without `format` its kind is told by address, suffix or first bytes.

    BadInput for kinds that are mixed or not known, and for an option that the kind does not have.
    """
    kind, files = _recognised(patterns, storage) if format is None else _named(patterns, storage, format)
    options = options or {}
    unknown = sorted(set(options) - kind.options)
    if unknown:
        raise BadInput(
            f"a {kind.name} source has no option {', '.join(unknown)}; it has {', '.join(sorted(kind.options)) or 'none'}"
        )
    return _module(kind).open_source(SourceRequest(tuple(patterns), storage, options, tuple(files)))


def shard_from_document(name: str, document: Mapping[str, Any]) -> Shard:
    """The shard of any kind that its `to_document` described."""
    if document["kind"] == register.KIND:  # files that are not read, so no format that could be named
        return register.shard_from_document(name, document)
    return _module(_kind(document["kind"])).shard_from_document(name, document)


def _kind(name: str) -> Kind:
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise BadInput(f"--format {name} is not known; use one of {', '.join(kind.name for kind in KINDS)}")


def _module(kind: Kind) -> _Module:
    return cast("_Module", import_module(kind.module))


def _named(patterns: Sequence[str], storage: Mapping[str, str], name: str) -> tuple[Kind, list[SourceFile]]:
    kind = _kind(name)
    return kind, find_files(patterns, storage, kind.suffixes) if kind.suffixes else []


def _recognised(patterns: Sequence[str], storage: Mapping[str, str]) -> tuple[Kind, list[SourceFile]]:
    found: dict[str, str] = {}
    addressed = {pattern: kind for pattern in patterns if (kind := _by_scheme(pattern))}
    for pattern, kind in addressed.items():
        found.setdefault(kind.name, pattern)
    named = [pattern for pattern in patterns if pattern not in addressed]
    suffixes = tuple(suffix for kind in KINDS for suffix in kind.suffixes)
    files = find_files(named, storage, suffixes) if named else []
    for file in files:
        found.setdefault(_by_suffix(file, storage).name, file.path)
    if len(found) > 1:
        mixed = " and ".join(f"{name} ({example})" for name, example in found.items())
        raise BadInput(
            f"the sources are of different kinds: {mixed}; ingest one kind at a time, or say which with --format"
        )
    return _kind(next(iter(found))), files


def _by_scheme(pattern: str) -> Kind | None:
    scheme = pattern.partition("://")[0] if "://" in pattern else None
    return next((kind for kind in KINDS if scheme in kind.schemes), None)


def _by_suffix(file: SourceFile, storage: Mapping[str, str]) -> Kind:
    for kind in KINDS:
        if kind.suffixes and file.path.lower().endswith(kind.suffixes):
            return kind
    head = first_bytes(file, storage, 8)
    for kind in KINDS:
        if kind.magic is not None and head.startswith(kind.magic):
            return kind
    raise BadInput(
        f"source {file.path} does not show its format; say it with --format "
        f"({', '.join(kind.name for kind in KINDS if kind.suffixes)})"
    )
