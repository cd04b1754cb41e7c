"""Spark's daemon of Python workers, with a writer's imports done once, before it forks the first worker."""

import gc

from pyspark.daemon import manager

import frazil.spark.pipeline
import frazil.spark.read
import frazil.spark.stream_write
import frazil.spark.write  # noqa: F401  what each worker would otherwise spend a second to import


def serve() -> None:
    """Fork workers until Spark ends.

    A worker collects garbage after every task. What is imported is none, and to look through it takes a tenth of a second.
    """
    gc.freeze()
    manager()


if __name__ == "__main__":
    serve()
