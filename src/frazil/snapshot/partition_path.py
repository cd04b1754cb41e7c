"""A partition's values as the folder name that the table's location provider puts into a path."""

from __future__ import annotations

from typing import Any

from pyiceberg.partitioning import PartitionField, PartitionSpec, partition_record_value
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, TruncateTransform
from pyiceberg.typedef import Record


class PartitionPath:
    """What location providers ask of a PyIceberg partition key, for values that are transformed already.

    PyIceberg's own key refuses two transforms of one column, and takes transformed values for source values.
    """

    def __init__(self, values: tuple[Any, ...], spec: PartitionSpec, schema: Schema) -> None:
        pairs = zip(spec.fields, values, strict=True)
        self.partition = Record(*(_internal(field, value, schema) for field, value in pairs))
        self.partition_spec = spec
        self.schema = schema

    def to_path(self) -> str:
        """`ts_day=2026-01-01/id_bucket=3`, escaped for a path."""
        return self.partition_spec.partition_to_path(self.partition, self.schema)


def _internal(field: PartitionField, value: Any, schema: Schema) -> Any:
    if value is None or not isinstance(field.transform, (IdentityTransform, TruncateTransform)):
        return value
    return partition_record_value(field, value, schema)
