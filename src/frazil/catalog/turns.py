"""Turns: writers to one table queue within a process instead of racing, which would only cost the losers their files.

What keeps commits right is the database; this is about waste alone, and other processes race as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock for each name that somebody holds or waits for. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Wait until nobody else holds the name, and hold it."""
        with self._guard:
            lock, users = self._held.get(name, (threading.Lock(), 0))
            self._held[name] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                users = self._held[name][1] - 1
                if users:
                    self._held[name] = (lock, users)
                else:
                    del self._held[name]
