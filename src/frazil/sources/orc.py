"""ORC files, cut into shards by stripe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import orc

from frazil.sources.file_parts import Contents, PartsShard, PartsSource, parts_of
from frazil.sources.open import SourceRequest


@dataclass(frozen=True)
class OrcFormat:
    """ORC. A stripe is held whole while it is read, as PyArrow's reader has it."""

    kind: str = "orc"
    part: str = "stripe"

    def contents(self, system: Any, path: str) -> Contents:
        """What the file's footer says."""
        with system.open_input_file(path) as stream:
            file = orc.ORCFile(stream)
            return Contents(file.schema, file.nstripes, file.nrows)

    def read(self, system: Any, path: str, first: int, last: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Stripe by stripe."""
        with system.open_input_file(path) as stream:
            file = orc.ORCFile(stream)
            for number in range(first, last):
                yield number, file.read_stripe(number)


def open_source(request: SourceRequest) -> PartsSource:
    """The kind's way in; see `frazil.sources.open`."""
    return PartsSource(request, OrcFormat())


def shard_from_document(name: str, document: Mapping[str, Any]) -> PartsShard:
    """The kind's way back from a job's log."""
    return PartsShard(name, parts_of(document), OrcFormat())
