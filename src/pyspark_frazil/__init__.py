"""Where Spark looks: it imports every top-level module called `pyspark_…` and takes its `DefaultSource`."""

from frazil.spark.data_source import FrazilDataSource as DefaultSource

__all__ = ["DefaultSource"]
