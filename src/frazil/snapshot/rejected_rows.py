"""The rows of one shard that do not fit, on their way into a table of their own: reason, position, and the row as JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import TooManyRejected
from frazil.snapshot.descriptor import DistributedSnapshot

REJECTED_ROWS = pa.schema(
    [
        pa.field("job", pa.string()),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("shard", pa.string(), nullable=False),
        pa.field("position", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("row", pa.string()),
    ]
)
_HELD_ROWS = 10_000
_HELD_CHARACTERS = 8 * 1024 * 1024

Position = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class RejectTo:
    """Where a writer's rejected rows go: a reservation on the table for them, and what they are marked with.

    `snapshot_id` is that of the rows beside which they were rejected. `most` is how many one shard may reject.
    """

    snapshot: DistributedSnapshot
    snapshot_id: int
    job: str | None = None
    most: int | None = None


class RejectedRows:
    """Gathers rejected rows; `take` hands over those not yet taken, as a table of `REJECTED_ROWS`."""

    def __init__(self, to: RejectTo, table: str, shard: str, take: Callable[[pa.Table], None]) -> None:
        self._to, self._table, self._shard, self._take = to, table, shard, take
        self._held: list[tuple[str | None, str, str | None]] = []
        self._characters = 0
        self.count = 0

    def add(self, position: str | None, reason: str, row: str | None) -> None:
        """Take one row. TooManyRejected if that is one more than the shard may reject."""
        self.count += 1
        if self._to.most is not None and self.count > self._to.most:
            raise TooManyRejected(
                f"shard {self._shard} of table {self._table} has more than {self._to.most} rows that do not fit, which is "
                f"the limit; the last one: {reason}{f' ({position})' if position else ''}"
            )
        self._held.append((position, reason, row))
        self._characters += len(row or "")
        if len(self._held) >= _HELD_ROWS or self._characters >= _HELD_CHARACTERS:
            self.flush()

    def add_from(self, batch: pa.RecordBatch, bad: Mapping[int, str], before: int, position: Position | None) -> None:
        """Take the rows of a batch with these numbers; `position` tells where a row is, counted with those before."""
        numbers = sorted(bad)
        rows = rows_as_json(batch.take(pa.array(numbers, pa.int64())))
        for number, row in zip(numbers, rows, strict=True):
            self.add(position(before + number) if position else None, bad[number], row)

    def flush(self) -> None:
        """Hand over what is held."""
        if not self._held:
            return
        positions, reasons, rows = zip(*self._held, strict=True)
        size = len(self._held)
        self._held, self._characters = [], 0
        columns = [[self._to.job] * size, [self._to.snapshot_id] * size, [self._shard] * size, positions, reasons, rows]
        self._take(
            pa.table(
                [pa.array(column, field.type) for column, field in zip(columns, REJECTED_ROWS, strict=True)],
                schema=REJECTED_ROWS,
            )
        )


def rows_as_json(batch: pa.RecordBatch) -> list[str]:
    """Each row as one JSON object. Bytes are in hexadecimal, numbers with a point and moments as text, as they print."""
    columns = {name: _values(batch.column(at)) for at, name in enumerate(batch.schema.names)}
    rows = zip(*columns.values(), strict=True)
    return [json.dumps(dict(zip(columns, row, strict=True)), default=_plain, ensure_ascii=False) for row in rows]


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_temporal(column.type):
        # Arrow has moments that Python has not.
        column = pc.cast(column, pa.string(), safe=False)
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [str(value) if value.is_valid else None for value in column]


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
