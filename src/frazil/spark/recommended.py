"""Spark settings under which rows reach Python faster; measured in docs/performance.md."""

from __future__ import annotations

RECOMMENDED_SETTINGS = {
    # Workers are forked with everything imported.
    "spark.python.daemon.module": "frazil.spark.daemon",
    # No limit by bytes: to keep one, Spark adds up the size of every column anew for every row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""For `SparkSession.builder.config(map=…)`. Arrow batches stay bounded by `spark.sql.execution.arrow.maxRecordsPerBatch`."""
