"""The user's wish to stop: at once where the work can be left anywhere, else at the next safe point."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from frazil.errors import Interrupted

OnStop = Callable[[Callable[[], None]], None]


class Stop:
    """Heard through `on_stop`, which is told what a signal shall call from now on."""

    def __init__(self, on_stop: OnStop) -> None:
        self._on_stop = on_stop
        self._asked = threading.Event()
        on_stop(self._asked.set)

    def check(self) -> None:
        """A safe point: Interrupted if the user has asked to stop."""
        if self._asked.is_set():
            raise Interrupted("the run was stopped; nothing was published")

    def ignore(self) -> None:
        """From here on, going on is quicker and safer than stopping."""
        self._on_stop(lambda: None)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Work that changes nothing and may be left at any point, by Interrupted."""
        self.check()
        self._on_stop(_interrupt)
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted("the run was stopped; nothing was published") from None
        finally:
            self._on_stop(self._asked.set)


def _interrupt() -> None:
    # Not an error of ours: Py4J takes every Exception for one of its connection's.
    raise KeyboardInterrupt
