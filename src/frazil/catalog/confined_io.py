"""A FileIO that keeps to the warehouse: metadata may name any file, and the server would read it with its own rights."""

from __future__ import annotations

from pyiceberg.io import FileIO, InputFile, OutputFile

from frazil.catalog.locations import checked_location


class ConfinedFileIO(FileIO):
    """Another FileIO within these roots. What lies outside is `Forbidden`."""

    def __init__(self, inner: FileIO, roots: tuple[str, ...]) -> None:
        super().__init__(inner.properties)
        self._inner = inner
        self._roots = roots

    def new_input(self, location: str) -> InputFile:
        """A file to read, in the warehouse."""
        checked_location(location, self._roots)
        return self._inner.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        """A file to write, in the warehouse."""
        checked_location(location, self._roots)
        return self._inner.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file of the warehouse."""
        checked_location(location if isinstance(location, str) else location.location, self._roots)
        self._inner.delete(location)
