"""Frazil on PySpark. `distribute` is for users; `df.write.format("frazil")` needs no import at all."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.spark.distribution import distribute

__all__ = ["distribute"]


def __getattr__(name: str) -> Any:
    # On first use: Spark imports this package in every process that looks for data sources.
    if name not in __all__:
        raise AttributeError(f"module 'frazil.spark' has no attribute {name!r}")
    return getattr(import_module("frazil.spark.distribution"), name)
