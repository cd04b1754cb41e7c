"""Where the benchmark keeps things. Standard library only: `bench.setup` runs before anything is installed."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
BENCH = CHECKOUT / ".bench"  # gitignored
RESULTS = BENCH / "results"
WAREHOUSES = BENCH / "warehouses"

OWN = CHECKOUT / ".venv"
PEERS = CHECKOUT / ".venv-peers"
SPARK35 = CHECKOUT / ".venv-spark35"


def interpreter(environment: Path) -> Path:
    """The Python of a virtual environment."""
    return environment / "bin" / "python"


def lineitem(scale: float) -> Path:
    """The folder with the 16 Parquet files of TPC-H lineitem at this scale."""
    return BENCH / f"lineitem-sf{scale:g}"
