"""How long a publisher tries again.

Full jitter under a low cap that shrinks from try to try: a retry rewrites nothing but the manifest list, so it is
cheap, and whoever has lost most often waits least. Waits that grow would starve the unlucky. The table's own
`commit.retry.*` properties win where they are set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from frazil.errors import BadInput


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of retrying: how often, how long in all, and the shortest and longest span to draw a wait from."""

    retries: int = 500
    total_seconds: float = 1800.0
    least_wait_seconds: float = 0.03
    longest_wait_seconds: float = 0.6

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> RetryPolicy:
        """The table's `commit.retry.*` properties over our defaults."""
        default = cls()
        return cls(
            retries=int(_number(properties, "commit.retry.num-retries", default.retries)),
            total_seconds=_number(properties, "commit.retry.total-timeout-ms", default.total_seconds * 1000) / 1000,
            least_wait_seconds=_number(properties, "commit.retry.min-wait-ms", default.least_wait_seconds * 1000)
            / 1000,
            longest_wait_seconds=_number(properties, "commit.retry.max-wait-ms", default.longest_wait_seconds * 1000)
            / 1000,
        )

    def waits(self, clock: Callable[[], float], random: Callable[[], float]) -> Iterator[float]:
        """Seconds to wait before each further try; ends when the budget does."""
        deadline = clock() + self.total_seconds
        span = self.longest_wait_seconds
        for _ in range(self.retries):
            if clock() >= deadline:
                return
            yield random() * span
            span = max(span / 2, min(self.least_wait_seconds, self.longest_wait_seconds))


def _number(properties: Mapping[str, str], key: str, default: float) -> float:
    text = properties.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < math.inf:
        raise BadInput(f"table property {key} is {text!r}, but it must be a number that is not negative")
    return value
