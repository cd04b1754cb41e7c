"""The environment that makes a process end at a named step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frazil.steps import CRASH_AT, CRASH_MARK, CRASH_WITH, STEPS

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


def crash_environment(
    step: str,
    *,
    nth: int = 1,
    mark: str | os.PathLike[str] | None = None,
    companions: str | os.PathLike[str] | None = None,
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """`base` and the variables with which a process ends itself the `nth` time it passes `step`.

    With `mark`, one process alone among all that inherit the environment ends, and leaves that file behind. The
    processes whose numbers stand in the file `companions` are ended with it, and before it.
    Raises ValueError for a step that is not in `frazil.steps.STEPS`.
    """
    if step not in STEPS:
        raise ValueError(f"no step is named {step!r}; the steps are {', '.join(STEPS)}")
    environment = {**(base or {}), CRASH_AT: f"{step}#{nth}"}
    if mark is not None:
        environment[CRASH_MARK] = str(mark)
    if companions is not None:
        environment[CRASH_WITH] = str(companions)
    return environment
