"""A FileIO that fails on cue and keeps a record of what was made and deleted."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from frazil.testing.cues import Cues

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Operation = Literal["create", "write", "close", "open", "read", "exists", "delete"]


def _storage_error() -> Exception:
    return OSError("injected: the storage did not answer")


class FaultyFileIO(FileIO):
    """Passes everything on to `inner`, save for the operations that a test has put a fault on.

    `create`, `write` and `close` are those of an output file (a file whose `close` fails is not complete), `open` and
    `read` those of an input file.
    """

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner.properties)
        self.inner = inner
        self._cues: Cues[Callable[[], Exception]] = Cues()
        self._lock = threading.Lock()
        self._done: list[tuple[Operation, str]] = []

    def fail(
        self,
        operation: Operation,
        error: Callable[[], Exception] = _storage_error,
        *,
        path: str = ".",
        nth: int = 1,
        times: int = 1,
    ) -> None:
        """Raise `error()` in place of the nth such operation on a location that `path` is found in."""
        self._cues.add(error, rf"^{operation} .*(?:{path})", nth=nth, times=times)

    def done(self, operation: Operation) -> tuple[str, ...]:
        """The locations on which that operation succeeded, in order."""
        with self._lock:
            return tuple(location for kind, location in self._done if kind == operation)

    def new_input(self, location: str) -> InputFile:
        return _FaultyInputFile(self, self.inner.new_input(location))

    def new_output(self, location: str) -> OutputFile:
        return _FaultyOutputFile(self, self.inner.new_output(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path = location if isinstance(location, str) else location.location
        self.attempt("delete", path, lambda: self.inner.delete(path))

    def attempt(self, operation: Operation, location: str, act: Callable[[], Any]) -> Any:
        """Do `act` unless a fault is due; note that it was done."""
        error = self._cues.take(f"{operation} {location}")
        if error is not None:
            raise error()
        result = act()
        with self._lock:
            self._done.append((operation, location))
        return result


class _FaultyInputFile(InputFile):
    def __init__(self, io: FaultyFileIO, inner: InputFile) -> None:
        super().__init__(inner.location)
        self._io = io
        self._inner = inner

    def __len__(self) -> int:
        return len(self._inner)

    def exists(self) -> bool:
        return bool(self._io.attempt("exists", self.location, self._inner.exists))

    def open(self, seekable: bool = True) -> InputStream:
        stream = self._io.attempt("open", self.location, lambda: self._inner.open(seekable))
        return _FaultyStream(self._io, self.location, stream)


class _FaultyOutputFile(OutputFile):
    def __init__(self, io: FaultyFileIO, inner: OutputFile) -> None:
        super().__init__(inner.location)
        self._io = io
        self._inner = inner

    def __len__(self) -> int:
        return len(self._inner)

    def exists(self) -> bool:
        return bool(self._io.attempt("exists", self.location, self._inner.exists))

    def to_input_file(self) -> InputFile:
        return self._io.new_input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        stream = self._io.attempt("create", self.location, lambda: self._inner.create(overwrite))
        return _FaultyStream(self._io, self.location, stream)


class _FaultyStream:
    """An input or output stream; what it does not know (`tell`, `seek`, `closed`, `size` ...) is the inner stream's."""

    def __init__(self, io: FaultyFileIO, location: str, inner: Any) -> None:
        self._io = io
        self._location = location
        self._inner = inner

    def write(self, data: bytes) -> int:
        return int(self._io.attempt("write", self._location, lambda: self._inner.write(data)) or 0)

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, or all that is left. (PyArrow's streams take None for all, others a negative number.)"""
        wanted = () if size < 0 else (size,)
        return bytes(self._io.attempt("read", self._location, lambda: self._inner.read(*wanted)))

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._inner.seek(offset, whence))

    def tell(self) -> int:
        return int(self._inner.tell())

    def close(self) -> None:
        if not self._inner.closed:
            self._io.attempt("close", self._location, self._inner.close)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> _FaultyStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
