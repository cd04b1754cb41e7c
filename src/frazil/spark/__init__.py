"""Frazil on PySpark. `distribute` and the settings are for users; `df.write.format("frazil")` needs no import at all."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.spark.distribution import distribute
    from frazil.spark.recommended import RECOMMENDED_SETTINGS

_HOMES = {"distribute": "frazil.spark.distribution", "RECOMMENDED_SETTINGS": "frazil.spark.recommended"}

__all__ = ["RECOMMENDED_SETTINGS", "distribute"]


def __getattr__(name: str) -> Any:
    # On first use: Spark imports this package in every process that looks for data sources.
    if name not in _HOMES:
        raise AttributeError(f"module 'frazil.spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
