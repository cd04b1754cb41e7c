"""What the page on DataFrames shows is executed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from frames import FrameLake
from frazil.spark.options import _TABLE, _WRITE
from test_documents import CHECKOUT, python_blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_page_on_data_frames_runs(spark: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": spark, "ROOT": str(tmp_path / "lake")}
    for block in python_blocks("docs/spark.md"):
        exec(block, names)
    assert FrameLake(tmp_path / "lake").ids("db.trips") == [1, 1, 2, 2]


def test_every_option_of_a_write_is_documented() -> None:
    page = (CHECKOUT / "docs" / "spark.md").read_text()
    assert {name for name in (*_TABLE, *_WRITE) if name != "path" and f"`{name}`" not in page} == set()
