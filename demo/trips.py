"""A month of taxi trips as Parquet files: decimals, zoned timestamps, strings, nested columns, nulls."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ZONES = ["Airport", "Old Town", "Harbour", "University", "North Station", "South Station", "Market", "Hill", "Island"]
VENDORS = ["Aurora", "Borealis", "Polar Cab"]
TAGS = [["shared"], ["night", "airport"], [], ["priority"], ["night"]]


def write_month(folder: Path, year: int, month: int, rows: int, files: int, first_id: int) -> int:
    """Write `rows` trips in `files` files; returns the bytes. The same arguments give the same rows."""
    folder.mkdir(parents=True)
    for number in range(files):
        count = rows // files
        trips = _trips(year, month, count, first_id + number * count)
        pq.write_table(trips, folder / f"part-{number}.parquet", row_group_size=250_000)
    return sum(path.stat().st_size for path in folder.iterdir())


def _trips(year: int, month: int, rows: int, first_id: int) -> pa.Table:
    random = np.random.default_rng(first_id)
    days = calendar.monthrange(year, month)[1]
    start = int(datetime(year, month, 1, tzinfo=UTC).timestamp())
    pickup = (start + random.integers(0, days * 86_400, rows)) * 1_000_000
    dropoff = pickup + random.integers(180, 5_400, rows) * 1_000_000
    distance = random.gamma(2.0, 3.0, rows)
    cents = (300 + distance * 180).astype(np.int64)
    origin, target = random.integers(0, len(ZONES), rows), random.integers(0, len(ZONES), rows)
    instant = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "trip_id": pa.array(np.arange(first_id, first_id + rows)),
            "pickup_at": pa.array(pickup, instant),
            "dropoff_at": pa.array(dropoff, instant),
            "vendor": _named(VENDORS, random.integers(0, len(VENDORS), rows)),
            "passengers": pa.array(random.integers(1, 7, rows).astype(np.int32)),
            "distance_km": pa.array(distance),
            "fare": _money(cents),
            "tip": _money(cents * random.integers(0, 25, rows) // 100, random.random(rows) < 0.3),
            "route": pa.StructArray.from_arrays(
                [_named(ZONES, origin), _named(ZONES, target)],
                names=["from", "to"],
            ),
            "tags": pa.array(TAGS).take(pa.array(random.integers(0, len(TAGS), rows))),
        }
    )


def _named(names: list[str], picks: np.ndarray) -> pa.Array:
    return pa.array(names).take(pa.array(picks))


def _money(cents: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Cents as decimal(9, 2): the same integers, widened to 128 bits."""
    wide = np.empty((len(cents), 2), np.int64)
    wide[:, 0], wide[:, 1] = cents, cents >> 63
    validity = pa.array(cents, mask=missing).buffers()[0]
    return pa.Array.from_buffers(pa.decimal128(9, 2), len(cents), [validity, pa.py_buffer(wide)])
