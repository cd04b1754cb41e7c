"""Rows that are deleted because they equal a row of a delete file in some columns; null equals null."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Codes = npt.NDArray[np.int64]


class DeletedKeys:
    """The keys of deleted rows, in columns of the names given.

    Each distinct key has a number, found column by column: the number of its first columns and the place of the next
    column's value make the number of one column more. Numbers stay below the count of keys, so nothing runs over.
    """

    def __init__(self, names: Sequence[str], keys: pa.Table) -> None:
        self._names = list(names)
        self._values: list[pa.Array] = []
        self._pairs: list[_Codes] = []
        codes = np.zeros(keys.num_rows, np.int64)
        for name in self._names:
            column = keys[name].combine_chunks()
            values = pc.unique(column)
            pairs, codes = np.unique(_paired(codes, column, values), return_inverse=True)
            self._values.append(values)
            self._pairs.append(pairs)

    def kept_of(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Which rows of the batch are left, as a mask; None for all of them."""
        codes = np.zeros(batch.num_rows, np.int64)
        for name, values, pairs in zip(self._names, self._values, self._pairs, strict=True):
            wanted = _paired(codes, batch.column(name), values)
            at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            codes = np.where(pairs[at] == wanted, at, -1)
        deleted = codes >= 0
        return pa.array(~deleted) if deleted.any() else None


def _paired(codes: _Codes, column: pa.Array, values: pa.Array) -> _Codes:
    """The number so far and the place of the column's value as one number; -1 where either is not known."""
    found = pc.index_in(column, value_set=values, skip_nulls=False)
    places = np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)
    return np.where((codes >= 0) & (places >= 0), codes * len(values) + places, -1)
