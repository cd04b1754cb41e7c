"""What Spark's Java side says when something fails, in one line; and that it may be gone altogether."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST = 400
_NOISE = ("at ", "File ", "Traceback", "Driver stacktrace", "Caused by", "...", ":", "JVM stacktrace")
_JAVA_CLASS = re.compile(r"^:?\s*(?:[a-z_$][\w$]*\.)+(?=[A-Z]\w*(?:Error|Exception): )")


def cause_of(error: BaseException) -> str:
    """The line that tells most: the last that names an error, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("frazil.errors.") and ": " in line]
    if ours:
        return ours[-1].partition(": ")[2]
    causes = [line for line in lines if not line.startswith("at ") and ("Error: " in line or "Exception: " in line)]
    telling = [line for line in lines if not line.startswith(_NOISE)]
    line = (causes or telling or [type(error).__name__])[-1 if causes else 0]
    line = _JAVA_CLASS.sub("", line)
    return line if len(line) < _LONGEST else line[:_LONGEST] + "…"


@contextmanager
def gone_is_ended() -> Iterator[None]:
    """For ending what runs in the JVM: a JVM that died, or that was never reached, has ended it already."""
    from py4j.protocol import Py4JError  # here because planning and `--help` do without Spark

    try:
        yield
    except (Py4JError, OSError):
        return
