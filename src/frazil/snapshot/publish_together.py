"""The coordinator's work for several tables at one instant: reports in, one commit over all of them out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence

from frazil.errors import BadInput, FrazilError
from frazil.errors import NotLanded as NotLandedError
from frazil.snapshot.commit import Plan
from frazil.snapshot.outcome import Landed, NotLanded, Unknown
from frazil.snapshot.publish_snapshot import Publisher
from frazil.snapshot.retry import RetryPolicy
from frazil.snapshot.transaction import commit_together


def publish_together(publishers: Sequence[Publisher], *, sleep: Callable[[float], None] = time.sleep) -> list[Landed]:
    """Make the snapshots of all publishers visible at one instant; what landed, in their order.

    All tables are of one catalog for which `commits_together` holds. Conflicts on one table are tried again for all,
    under the first table's `commit.retry.*` bounds. Any other end than `Landed` is an error as `publish_snapshot`
    raises it, and holds for every table.
    """
    waits = RetryPolicy.from_properties(publishers[0].target.metadata.properties).waits(time.monotonic, random.random)
    try:
        for publisher in publishers:
            publisher.settle()
        landed = _until_they_land(publishers, waits, sleep)
    except (BadInput, NotLandedError) as error:
        raise _proven(publishers, error) from error.__cause__
    return [publisher.finish(each) for publisher, each in zip(publishers, landed, strict=True)]


def _until_they_land(
    publishers: Sequence[Publisher], waits: Iterator[float], sleep: Callable[[float], None]
) -> list[Landed]:
    while True:
        answers = _attempt(publishers)
        landed = [answer for answer in answers if isinstance(answer, Landed)]
        if len(landed) == len(publishers):
            return landed
        wait = next(waits, None)
        if wait is None:
            return [
                answer if isinstance(answer, Landed) else publisher.last_look(answer)
                for publisher, answer in zip(publishers, answers, strict=True)
            ]
        sleep(wait)


def _attempt(publishers: Sequence[Publisher]) -> list[Landed | NotLanded | Unknown]:
    """One try for all tables that are not found to have landed."""
    proposed = [publisher.propose() for publisher in publishers]
    changes = [
        (publisher.target, plan) for publisher, plan in zip(publishers, proposed, strict=True) if isinstance(plan, Plan)
    ]
    if not changes:
        return [each for each in proposed if isinstance(each, Landed)]
    answer = commit_together(changes)
    return [
        publisher.answered(each, answer) if isinstance(each, Plan) else each
        for publisher, each in zip(publishers, proposed, strict=True)
    ]


def _proven(publishers: Sequence[Publisher], error: BadInput | NotLandedError) -> FrazilError:
    """The error itself where it is proven for every table; where one may have landed after all, that it is unknown."""
    found: list[FrazilError] = [publisher.proven(error) for publisher in publishers]
    return next((each for each in found if each is not error), error)
