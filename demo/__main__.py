"""Make two months of trips, ingest one, append the other, and look at the table with DuckDB."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyiceberg.catalog import load_catalog

from demo.lake_reader import LakeReader
from demo.trips import write_month

ROWS = 2_500_000
FILES = 4
TABLE = "demo.trips"


def main() -> None:
    root = Path(os.environ.get("FRAZIL_ROOT", "lake")).resolve()
    with tempfile.TemporaryDirectory() as folder:
        months = make_trips(Path(folder))
        if (root / "warehouse" / "demo" / "trips").exists():
            print(f"The table {TABLE} is in {root} from an earlier demo; its rows are replaced.\n")
        ingest(months[0], root, "--partition-by", "day(pickup_at)", "--mode", "overwrite")
        ingest(months[1], root)
    # As any PyIceberg user would open it.
    catalog = load_catalog("frazil", type="sql", uri=f"sqlite:///{root}/catalog.db")
    show(catalog.load_table(TABLE).metadata_location)


def make_trips(folder: Path) -> list[Path]:
    """Two folders of Parquet files."""
    began = time.monotonic()
    months = [folder / "trips-2026-01", folder / "trips-2026-02"]
    size = sum(write_month(path, 2026, at + 1, ROWS, FILES, at * ROWS) for at, path in enumerate(months))
    print(f"Made {2 * ROWS:,} taxi trips, {size / 1e6:.0f} MB of Parquet, in {time.monotonic() - began:.1f} s.\n")
    return months


def ingest(source: Path, root: Path, *options: str) -> None:
    """Run the command as a user would."""
    frazil = Path(sys.executable).with_name("frazil")
    print("$ frazil ingest", f"{source.name}/", TABLE, *(shlex.quote(option) for option in options), flush=True)
    done = subprocess.run([frazil, "ingest", source, TABLE, "--root", root, *options], check=False)
    if done.returncode:
        sys.exit(f"demo: frazil ingest ended with exit code {done.returncode}")
    print()


def show(metadata_location: str) -> None:
    """Both snapshots' rows are there, partitioned and pruned; else the demo fails."""
    reader = LakeReader(metadata_location.removeprefix("file://"))
    print("What DuckDB, a reader that is not ours, sees in the table:\n")
    months = reader.rows(
        "SELECT strftime(pickup_at, '%Y-%m') AS month, count(*), sum(fare), avg(distance_km) "
        "FROM {table} GROUP BY month ORDER BY month"
    )
    print(f"  {'month':<10}{'trips':>12}{'fares':>18}{'average km':>13}")
    for month, trips, fares, distance in months:
        print(f"  {month:<10}{trips:>12,}{fares:>18,}{distance:>13.2f}")
    day = "SELECT * FROM {table} WHERE pickup_at >= '2026-02-14 00:00:00+00' AND pickup_at < '2026-02-15 00:00:00+00'"
    everything, pruned = reader.files_read("SELECT * FROM {table}"), reader.files_read(day)
    print(f"\n  files read for the whole table: {everything}; for one day, 2026-02-14: {pruned}")
    if [trips for _, trips, _, _ in months] != [ROWS, ROWS] or not 0 < pruned < everything:
        sys.exit("demo: the table is not what it should be")
    print(f"\nTwo runs, two snapshots, {2 * ROWS:,} rows, all there, partitioned by day and pruned.")


if __name__ == "__main__":
    main()
