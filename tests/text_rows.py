"""What text sources give, as Python rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from frazil.sources.open import open_source
from frazil.sources.source import BadRow, Shard, Source, located_batches


def opened(*paths: Path | str, **options: str) -> Source:
    """A source of these paths; options with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return open_source([str(path) for path in paths], {}, options=named)


def rows_of(shards: Iterable[Shard]) -> list[dict[str, Any]]:
    """All rows of the shards in order."""
    return [row for shard in shards for batch in shard.batches({}) for row in batch.to_pylist()]


def read(*paths: Path | str, count: int = 1, **options: str) -> list[dict[str, Any]]:
    """All rows of a source."""
    return rows_of(opened(*paths, **options).shards(count))


def read_with_bad(source: Source, count: int = 1) -> tuple[list[tuple[dict[str, Any], str]], list[BadRow]]:
    """Rows with their positions, and the bad ones."""
    bad: list[BadRow] = []
    rows = [
        (row, located.position(at))
        for shard in source.shards(count)
        for located in located_batches(shard, {}, bad.append)
        for at, row in enumerate(located.batch.to_pylist())
    ]
    return rows, bad
