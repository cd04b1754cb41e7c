"""Counters, gauges and histograms, and the text in which Prometheus reads them.

Written by hand: the format is a page long, and what it takes here is less than a dependency would bring.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final, Protocol

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[str, ...]


class Metric(Protocol):
    """Something that can be read out."""

    def lines(self) -> Iterable[str]:
        """Its part of the exposition."""


class Counter:
    """How often something happened, by labels. Thread-safe."""

    kind: Final = "counter"

    def __init__(self, name: str, told: str, labels: Labels = ()) -> None:
        self._head = _head(name, told, self.kind)
        self._name, self._labels = name, labels
        self._values: dict[Labels, float] = {} if labels else {(): 0}
        self._lock = threading.Lock()

    def add(self, *values: str, count: float = 1) -> None:
        """It happened."""
        with self._lock:
            self._values[values] = self._values.get(values, 0) + count

    def value(self, *values: str) -> float:
        """How often, so far."""
        return self._values.get(values, 0)

    def lines(self) -> Iterable[str]:
        """HELP, TYPE, and one line for each set of labels."""
        with self._lock:
            values = sorted(self._values.items())
        yield from self._head
        for labels, value in values:
            yield f"{self._name}{_labelled(self._labels, labels)} {_number(value)}"


class Gauge:
    """A number that is asked for when it is read out."""

    def __init__(self, name: str, told: str, ask: Callable[[], float]) -> None:
        self._head = _head(name, told, "gauge")
        self._name, self._ask = name, ask

    def lines(self) -> Iterable[str]:
        """HELP, TYPE and the number."""
        yield from self._head
        yield f"{self._name} {_number(self._ask())}"


class Histogram:
    """How many fell below each bound, by labels. Thread-safe."""

    def __init__(self, name: str, told: str, labels: Labels, bounds: tuple[float, ...] = SECONDS) -> None:
        self._head = _head(name, told, "histogram")
        self._name, self._labels, self._bounds = name, labels, bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def observe(self, value: float, *labels: str) -> None:
        """One more."""
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
            counts[bisect_left(self._bounds, value)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterable[str]:
        """HELP, TYPE, the cumulated buckets, the sum and the count."""
        with self._lock:
            found = [(labels, list(counts), self._sums[labels]) for labels, counts in sorted(self._counts.items())]
        yield from self._head
        for labels, counts, total in found:
            below = 0
            for bound, count in zip((*map(_number, self._bounds), "+Inf"), counts, strict=True):
                below += count
                yield f"{self._name}_bucket{_labelled((*self._labels, 'le'), (*labels, bound))} {below}"
            yield f"{self._name}_sum{_labelled(self._labels, labels)} {_number(total)}"
            yield f"{self._name}_count{_labelled(self._labels, labels)} {below}"


def exposition(metrics: Iterable[Metric]) -> bytes:
    """All of them, as Prometheus reads them."""
    return ("\n".join(line for metric in metrics for line in metric.lines()) + "\n").encode()


def _head(name: str, told: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {told}", f"# TYPE {name} {kind}"


def _labelled(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
