"""The clock moves when told to."""

from __future__ import annotations

from frazil.testing import MovableClock


def test_the_clock_stands_still_until_it_is_moved() -> None:
    clock = MovableClock(start_ms=1_000)
    assert (clock(), clock()) == (1_000, 1_000)
    clock.advance(1.5)
    clock.sleep(2)
    assert (clock(), clock.seconds()) == (4_500, 4.5)
    clock.advance(-4.5)
    assert clock() == 0
