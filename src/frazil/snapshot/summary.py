"""The numbers that a snapshot's summary keeps: what was added, what was removed, and the totals after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from frazil.errors import BadInput
from frazil.snapshot.data_file import DataFile, FileContent

Counts = Mapping[str, int]

_TOTALS = (
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


@dataclass(frozen=True, slots=True)
class _Names:
    files: tuple[str, ...]
    rows: str


_ADDED = {
    FileContent.DATA: _Names(("added-data-files",), "added-records"),
    FileContent.POSITION_DELETES: _Names(
        ("added-delete-files", "added-position-delete-files"), "added-position-deletes"
    ),
    FileContent.EQUALITY_DELETES: _Names(
        ("added-delete-files", "added-equality-delete-files"), "added-equality-deletes"
    ),
}
_REMOVED = {
    FileContent.DATA: _Names(("deleted-data-files",), "deleted-records"),
    FileContent.POSITION_DELETES: _Names(
        ("removed-delete-files", "removed-position-delete-files"), "removed-position-deletes"
    ),
    FileContent.EQUALITY_DELETES: _Names(
        ("removed-delete-files", "removed-equality-delete-files"), "removed-equality-deletes"
    ),
}


def check_summary(table: str, properties: Mapping[str, Any]) -> None:
    """Refuse what a user wants in a snapshot's summary and the format cannot keep there."""
    for key, value in properties.items():
        if key.lower() == "operation" or not isinstance(value, str):
            raise BadInput(
                f"snapshot property {key}={value!r} of table {table} cannot be kept: values are text, and the "
                "operation is not for the caller to say"
            )


def counts_of_added(files: Iterable[DataFile]) -> dict[str, int]:
    """What these files add."""
    return _count(files, _ADDED, "added-files-size")


def counts_of_removed(files: Iterable[DataFile]) -> dict[str, int]:
    """What removing these files takes away."""
    return _count(files, _REMOVED, "removed-files-size")


def merge_counts(several: Iterable[Counts]) -> dict[str, int]:
    """The sum, key by key."""
    total: dict[str, int] = {}
    for counts in several:
        for key, value in counts.items():
            total[key] = total.get(key, 0) + value
    return total


def totals_after(counts: Counts, parent: Mapping[str, str] | None) -> dict[str, int]:
    """The table's totals after a commit with these counts on this parent's summary.

    A parent whose summary lacks a total leaves it unknown, so it is left out rather than guessed.
    """
    totals = {}
    for total, added, removed in _TOTALS:
        before = "0" if parent is None else parent.get(total)
        if before is not None and before.isdigit():
            totals[total] = int(before) + counts.get(added, 0) - counts.get(removed, 0)
    return {key: value for key, value in totals.items() if value >= 0}


def _count(files: Iterable[DataFile], names: Mapping[FileContent, _Names], size: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in files:
        name = names[file.content]
        for key in name.files:
            counts[key] = counts.get(key, 0) + 1
        counts[name.rows] = counts.get(name.rows, 0) + file.record_count
        counts[size] = counts.get(size, 0) + file.file_size_in_bytes
    return counts
