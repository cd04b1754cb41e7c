"""Which Parquet columns are worth a dictionary, judged on the rows at hand."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from frazil.snapshot.column_metrics import LeafColumn

_SAMPLE_ROWS = 65_536
_FEW = 0.5
_LEVELLING_OFF = 1.6


def dictionary_columns(rows: pa.Table, leaves: tuple[LeafColumn, ...], dictionary_bytes: int) -> list[str]:
    """The paths of the columns to write with a dictionary of at most `dictionary_bytes`.

    A dictionary pays when values come back: there are few in the sample, and its second half brings few that the first
    did not. (Keys in order repeat within a sample too, but go on growing; the writer would fill a dictionary only to
    throw it away.) Columns within structs, lists and maps are not judged: they get one, and the writer's own fallback.
    """
    sample = rows.slice(0, _SAMPLE_ROWS)
    return [leaf.path for leaf in leaves if len(leaf.steps) != 1 or _pays(sample.column(leaf.path), dictionary_bytes)]


def _pays(column: pa.ChunkedArray, dictionary_bytes: int) -> bool:
    if pa.types.is_dictionary(column.type):
        return True
    if pa.types.is_boolean(column.type) or not len(column):
        return False
    plain = pa.chunked_array([chunk.storage for chunk in column.chunks]) if _is_extension(column) else column
    width = max(1.0, plain.nbytes / len(plain))
    whole = pc.count_distinct(plain).as_py()
    half = pc.count_distinct(plain.slice(0, len(plain) // 2)).as_py()
    return bool(whole <= _FEW * len(plain) and whole <= _LEVELLING_OFF * half and whole * width <= dictionary_bytes)


def _is_extension(column: pa.ChunkedArray) -> bool:
    return isinstance(column.type, pa.BaseExtensionType)
