"""Partition values as the folder names that PyIceberg itself would give."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionFieldValue, PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import BinaryType, DateType, DecimalType, LongType, NestedField, StringType, TimestampType

from frazil.snapshot.partition_path import PartitionPath

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "day", DateType()),
    NestedField(4, "region", StringType()),
    NestedField(5, "price", DecimalType(9, 2)),
    NestedField(6, "raw", BinaryType()),
)


@pytest.mark.parametrize(
    ("source", "transform", "value", "path"),
    [
        (1, IdentityTransform(), 7, "p=7"),
        (1, BucketTransform(4), 3, "p=3"),
        (2, YearTransform(), 56, "p=2026"),
        (2, MonthTransform(), 12 * 56 + 1, "p=2026-02"),
        (2, DayTransform(), 1, "p=1970-01-02"),
        (2, HourTransform(), 25, "p=1970-01-02-01"),
        (3, IdentityTransform(), date(2026, 1, 2), "p=2026-01-02"),
        (2, IdentityTransform(), datetime(2026, 1, 2, 3, 4, 5), "p=2026-01-02T03%3A04%3A05"),
        (4, IdentityTransform(), "a/b c", "p=a%2Fb+c"),
        (4, TruncateTransform(2), "ab", "p=ab"),
        (5, TruncateTransform(10), Decimal("1.20"), "p=1.20"),
        (6, IdentityTransform(), b"\x00\xff", "p=AP8%3D"),
        (4, IdentityTransform(), None, "p=null"),
        (2, DayTransform(), None, "p=null"),
    ],
)
def test_a_value_is_named_as_the_transform_shows_it(source: int, transform: Any, value: Any, path: str) -> None:
    spec = PartitionSpec(PartitionField(source, 1000, transform, "p"))
    assert PartitionPath((value,), spec, SCHEMA).to_path() == path


def test_identity_values_are_named_as_pyiceberg_names_them() -> None:
    spec = PartitionSpec(
        PartitionField(4, 1000, IdentityTransform(), "region"), PartitionField(3, 1001, IdentityTransform(), "day")
    )
    values = ("süd / west", date(2026, 2, 3))
    pairs = [PartitionFieldValue(field, value) for field, value in zip(spec.fields, values, strict=True)]
    assert PartitionPath(values, spec, SCHEMA).to_path() == PartitionKey(pairs, spec, SCHEMA).to_path()


def test_two_transforms_of_one_column_stand_side_by_side() -> None:
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(4), "b"), PartitionField(1, 1001, TruncateTransform(10), "t")
    )
    assert PartitionPath((3, 20), spec, SCHEMA).to_path() == "b=3/t=20"
