"""Spark's daemon of Python workers, with a writer's imports done once, before it forks the first worker."""

import gc

from pyspark.daemon import manager

import frazil.spark.pipeline  # noqa: F401  what each worker would otherwise spend a second to import

if __name__ == "__main__":
    # A worker collects garbage after every task. What is imported is none, and to look through it takes a tenth of a second.
    gc.freeze()
    manager()
