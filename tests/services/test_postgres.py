"""A catalog on a real PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog


def test_rows_are_read_back_and_a_stale_commit_is_a_conflict(postgres_catalog: SqlCatalog) -> None:
    postgres_catalog.create_namespace("db")
    table = postgres_catalog.create_table("db.t", schema=Schema(NestedField(1, "id", LongType())))
    stale = postgres_catalog.load_table("db.t")
    with table.update_schema() as update:
        update.add_column("more", LongType())
    with pytest.raises(CommitFailedException), stale.update_schema() as update:
        update.add_column("other", LongType())
    table.append(pa.table({"id": [1, 2], "more": [None, 4]}, schema=table.schema().as_arrow()))
    assert postgres_catalog.load_table("db.t").scan().to_arrow().num_rows == 2
