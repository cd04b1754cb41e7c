"""Which query a stream's tasks and driver work for, and which of its batches.

Spark tells neither to a data source in Python but in two places: the tasks have both as local properties, and the
checkpoint names the query. The driver needs the name before there is a task, to find again what it has reserved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark import TaskContext

from frazil.errors import BadInput
from frazil.snapshot.batch_progress import NumberedBatch
from frazil.snapshot.storage import file_io

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


def batch_of_task() -> NumberedBatch:
    """The batch that this task writes a part of."""
    context = TaskContext.get()
    query_id = context.getLocalProperty(_QUERY_ID) if context else None
    batch_id = context.getLocalProperty(_BATCH_ID) if context else None
    if query_id is None or batch_id is None:
        raise BadInput(
            "Spark does not say which query and batch this task is of; a stream can be written by a query alone"
        )
    return NumberedBatch(query_id, int(batch_id))


def query_of_checkpoint(location: str | None, storage: Mapping[str, str]) -> str | None:
    """The id of the query that has this checkpoint; None where it cannot be read from here.

    Without it nothing goes wrong: what a killed driver has reserved is swept when its reservation expires.
    """
    if location is None:
        return None
    text = _text(f"{location.rstrip('/')}/metadata", storage)
    if text is None:
        return None
    try:
        found = json.loads(text)["id"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _text(location: str, storage: Mapping[str, str]) -> str | None:
    scheme = urlsplit(location).scheme
    try:
        if scheme in ("", "file"):
            return Path(unquote(urlsplit(location).path) if scheme else location).read_text(encoding="utf-8")
        if scheme in ("s3", "s3a", "gs", "abfs", "abfss"):
            with file_io(storage, location).new_input(location).open() as stream:
                return stream.read().decode()
    except (OSError, UnicodeDecodeError):
        return None
    return None
