"""A clock that a test moves."""

from __future__ import annotations


class MovableClock:
    """Stands where a clock is handed in: calling it gives milliseconds since the epoch. It moves only when told to."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms

    def __call__(self) -> int:
        return self._now_ms

    def seconds(self) -> float:
        """The same instant, for code that counts as `time.time` does: hand in `clock.seconds`."""
        return self._now_ms / 1000

    def advance(self, seconds: float) -> int:
        """Move on, or back with a negative number (clocks do); gives the new milliseconds."""
        self._now_ms += round(seconds * 1000)
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        """Stands where `time.sleep` is handed in: time passes, nobody waits."""
        self.advance(seconds)
