"""How long a publisher tries again: bounded, jittered, and never starving the unlucky."""

from __future__ import annotations

import pytest

from frazil import BadInput
from frazil.snapshot.retry import RetryPolicy
from frazil.testing import MovableClock


def spans(policy: RetryPolicy) -> list[float]:
    """The longest wait that each retry could draw."""
    return list(policy.waits(lambda: 0.0, lambda: 1.0))


def test_the_tables_properties_win() -> None:
    properties = {
        "commit.retry.num-retries": "3",
        "commit.retry.total-timeout-ms": "5000",
        "commit.retry.min-wait-ms": "10",
        "commit.retry.max-wait-ms": "100",
    }
    assert RetryPolicy.from_properties(properties) == RetryPolicy(3, 5.0, 0.01, 0.1)
    assert RetryPolicy.from_properties({}) == RetryPolicy()


def test_there_are_as_many_waits_as_retries() -> None:
    assert len(spans(RetryPolicy(retries=7))) == 7
    assert spans(RetryPolicy(retries=0)) == []


def test_whoever_has_lost_most_often_waits_least() -> None:
    found = spans(RetryPolicy(retries=8, least_wait_seconds=0.1, longest_wait_seconds=0.8))
    assert found == [0.8, 0.4, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]


def test_a_least_wait_above_the_longest_does_not_lengthen_it() -> None:
    assert spans(RetryPolicy(retries=3, least_wait_seconds=5, longest_wait_seconds=0.5)) == [0.5] * 3


def test_a_wait_is_drawn_from_nothing_to_the_span() -> None:
    drawn = iter([0.0, 0.5, 1.0])
    waits = RetryPolicy(retries=3, least_wait_seconds=1, longest_wait_seconds=1).waits(lambda: 0.0, lambda: next(drawn))
    assert list(waits) == [0.0, 0.5, 1.0]


def test_trying_ends_with_the_total_time() -> None:
    clock = MovableClock()
    waits = RetryPolicy(retries=100, total_seconds=10).waits(clock.seconds, lambda: 1.0)
    next(waits)
    clock.advance(9.9)
    next(waits)
    clock.advance(0.2)
    assert next(waits, None) is None


@pytest.mark.parametrize("value", ["-1", "soon", "nan", "inf", ""])
def test_a_property_that_is_no_number_is_named(value: str) -> None:
    with pytest.raises(BadInput, match=r"commit\.retry\.num-retries"):
        RetryPolicy.from_properties({"commit.retry.num-retries": value})
