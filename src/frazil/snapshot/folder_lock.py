"""A lock on a file, between processes and threads, that its holder may take again."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class FolderLock:
    """The operating system frees it when the process that holds it ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = threading.RLock()
        self._file: IO[bytes] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for the lock and hold it; nothing more to do for a thread that holds it already."""
        with self._thread:
            if self._file is not None:
                yield
                return
            with self._path.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._file = file
                try:
                    yield
                finally:
                    self._file = None
                    # Closing alone would leave it to a child that was forked meanwhile and holds the same open file.
                    fcntl.flock(file, fcntl.LOCK_UN)
