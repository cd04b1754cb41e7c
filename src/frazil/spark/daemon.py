"""Spark's daemon of Python workers, with a writer's imports done once, before it forks the first worker."""

from pyspark.daemon import manager

import frazil.spark.pipeline
import frazil.spark.write  # noqa: F401  what each worker would otherwise spend a second to import

if __name__ == "__main__":
    manager()
