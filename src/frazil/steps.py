"""The named steps of the protocol: the places at which a test may end the process.

A step lies *after* the deed its name states and before the next one. With neither variable in the environment `step`
compares one module constant with None and returns.

    FRAZIL_CRASH_AT=publish:list-written       end this process (SIGKILL) the first time it passes that step
    FRAZIL_CRASH_AT=write:manifest-written#3   ... the third time
    FRAZIL_CRASH_MARK=/a/file/to/be/made       only if this file is not there yet; it is made just before the end,
                                               so that a retried task passes and the test sees the crash did happen
    FRAZIL_CRASH_WITH=/a/file                  with the numbers of processes that are ended just before this one: those
                                               on whose behalf it works, such as the Spark driver
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Final

CRASH_AT: Final = "FRAZIL_CRASH_AT"
CRASH_MARK: Final = "FRAZIL_CRASH_MARK"
CRASH_WITH: Final = "FRAZIL_CRASH_WITH"

STEPS: Final[dict[str, str]] = {
    "merge:begun": "the merged schema is known; the table does not have it yet",
    "merge:committed": "the table has the merged schema; nothing is reserved yet",
    "reserve:begun": "the table is loaded; the reservation is not in it yet",
    "reserve:committed": "the reservation is in the table; the caller does not hold the descriptor yet",
    "write:file-opened": "a data file is open; nothing of it is complete",
    "write:file-closed": "a data file is complete; no manifest names it",
    "write:manifest-written": "a manifest is complete; no report names it",
    "write:reported": "the report is made; it has not left the writer",
    "job:declared": "the job and its shards are on disk; no shard has begun",
    "job:report-stored": "a shard's report is on disk; the job has not gone on",
    "job:finished": "the last report is on disk; publishing has not begun",
    "reject:committed": "the rejected rows are in their table; the others are not published yet",
    "reject:taking-back": "the rejected rows are to be taken back; they are still there",
    "reject:taken-back": "the rejected rows are out of their table; their files are not swept",
    "publish:before-list": "the reservation is found good; the manifest list is not written",
    "publish:list-written": "the manifest list is written; the catalog has not been called",
    "publish:committed": "the catalog has accepted the commit; nobody has noted it",
    "publish:noted": "the outcome is on disk; leftovers are not swept",
    "catalog:metadata-written": "the catalog has written a metadata file; no pointer names it",
    "catalog:pointer-moved": "the pointers are moved in the catalog's transaction, which is not committed",
    "catalog:committed": "the catalog's transaction is committed; the client has no reply",
    "catalog:staged-written": "the metadata of a staged create is written; its marker is not",
    "catalog:staged": "a staged create has its marker; the client has no reply",
    "catalog:finalised": "a staged create has given up its marker to its table, in a transaction that is not committed",
    "catalog:cleaned": "the janitor has removed the file of an expired staged create, but not its marker",
    "sweep:listed": "the files to sweep are known; none is deleted",
    "sweep:deleted": "one file is deleted; more may follow",
}

_passes: Counter[str] = Counter()


def step(name: str) -> None:
    """Pass the step `name`. While a test is at work an unknown name is refused, and the process may end here."""
    if _TARGET is not None:
        _pass_step(name, _TARGET)


def _parse_target(text: str | None) -> tuple[str, int] | None:
    """The step and the pass to end at. Refuses an unknown step, for such a test would wait in vain."""
    if not text:
        return None
    name, _, nth = text.partition("#")
    if name not in STEPS:
        raise ValueError(f"{CRASH_AT}={text}: no step is named {name!r}; the steps are {', '.join(STEPS)}")
    return name, int(nth or 1)


def _pass_step(name: str, target: tuple[str, int]) -> None:
    if name not in STEPS:
        raise ValueError(f"no step is named {name!r}: add it to frazil.steps.STEPS")
    _passes[name] += 1
    if (name, _passes[name]) == target and _leave_mark(os.environ.get(CRASH_MARK)):
        for pid in _companions(os.environ.get(CRASH_WITH)):
            os.kill(pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _leave_mark(path: str | None) -> bool:
    """True when the process shall end: there is no mark to leave, or this process is the one that left it."""
    if path is None:
        return True
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _companions(path: str | None) -> list[int]:
    return [] if path is None else [int(word) for word in Path(path).read_text().split()]


_TARGET: Final = _parse_target(os.environ.get(CRASH_AT))
