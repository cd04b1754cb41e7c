"""A manifest as the value that a manifest list, and a report, holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import Any

from frazil.errors import BadInput


class ManifestContent(IntEnum):
    """What the files of a manifest are (the format's field 517)."""

    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True)
class FieldSummary:
    """What one partition field holds in a manifest. Bounds are in the format's single-value serialisation."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A whole entry of the manifest list.

    Sequence numbers are None until publish assigns them. Counts are None only in entries read from a v1 list that
    left them out. `first_row_id` is None until a v3 list assigns it, and always for delete manifests.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: ManifestContent
    added_snapshot_id: int
    sequence_number: int | None = None
    min_sequence_number: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] = ()
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Every field as a JSON value; bytes are hexadecimal. `from_json` gives back an equal value."""
        entry = {field.name: getattr(self, field.name) for field in fields(self)}
        entry["content"] = int(self.content)
        entry["key_metadata"] = _to_hex(self.key_metadata)
        entry["partitions"] = [_summary_to_json(summary) for summary in self.partitions]
        return entry

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> ManifestFile:
        """The inverse of `to_json`. BadInput, with the names, if a field is unknown or missing."""
        _require_names(entry, {field.name for field in fields(cls)}, "a manifest")
        known = dict(entry)
        known["content"] = ManifestContent(entry["content"])
        known["key_metadata"] = _from_hex(entry["key_metadata"])
        known["partitions"] = tuple(_summary_from_json(summary) for summary in entry["partitions"])
        return cls(**known)


def _summary_to_json(summary: FieldSummary) -> dict[str, Any]:
    entry = asdict(summary)
    return {**entry, "lower_bound": _to_hex(summary.lower_bound), "upper_bound": _to_hex(summary.upper_bound)}


def _summary_from_json(entry: Mapping[str, Any]) -> FieldSummary:
    _require_names(entry, {field.name for field in fields(FieldSummary)}, "a partition field summary")
    bounds = {name: _from_hex(entry[name]) for name in ("lower_bound", "upper_bound")}
    return FieldSummary(**{**entry, **bounds})


def _require_names(entry: Mapping[str, Any], names: set[str], what: str) -> None:
    if unknown := entry.keys() - names:
        raise BadInput(f"unknown fields in the JSON of {what}: {', '.join(sorted(unknown))}")
    if missing := names - entry.keys():
        raise BadInput(f"missing fields in the JSON of {what}: {', '.join(sorted(missing))}")


def _to_hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _from_hex(value: str | None) -> bytes | None:
    return None if value is None else bytes.fromhex(value)
