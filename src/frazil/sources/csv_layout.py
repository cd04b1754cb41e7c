"""What the beginning of a CSV file says: its columns, and where its records begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frazil.errors import BadInput, SchemaMismatch, SourceUnreadable
from frazil.sources.csv_dialect import CsvDialect
from frazil.sources.csv_parser import CsvParser
from frazil.sources.text_blocks import TextRange
from frazil.sources.text_files import TextHead


@dataclass(frozen=True, slots=True)
class CsvFile:
    """One file as planned: all its records as a range, and its head's text, in which they begin at `begin`."""

    range: TextRange
    text: bytes
    begin: int

    @property
    def sample(self) -> bytes:
        """The records of the head."""
        return self.text[self.begin :]


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """How files begin: after `skip` lines comes a header, or else the columns are `names` by place."""

    dialect: CsvDialect
    has_header: bool
    skip: int
    names: tuple[str, ...] | None

    def file(self, head: TextHead) -> CsvFile:
        """The file behind this head. SchemaMismatch for a header, or a count of columns, that cannot be right."""
        text = head.whole_records(self.dialect.last_end)
        begin = self._after_skipped(head, text)
        record, first = self._first_record(head, text, begin)
        values = self._values(head, record)
        if self.has_header:
            columns, begin = self._header(head, values), first
        else:
            columns = self._columns_by_place(head, len(values))
        start = head.skipped + begin
        return CsvFile(TextRange(head.file, start, None, head.compression, columns), text, begin)

    def _after_skipped(self, head: TextHead, text: bytes) -> int:
        begin = 0
        for _ in range(self.skip):
            begin = text.find(b"\n", begin) + 1
            if not begin:
                raise BadInput(f"source {head.file.path} has fewer lines than --option skip-lines={self.skip}")
        return begin

    def _first_record(self, head: TextHead, text: bytes, begin: int) -> tuple[bytes, int]:
        """The first record that is not an empty line, and where it ends."""
        for start, end in self.dialect.records(text[begin:]):
            record = text[begin + start : begin + end]
            if record.strip(b"\r\n"):
                return record, begin + end
        raise BadInput(
            f"source {head.file.path} has no first record within {len(head.text):,} bytes; see --option delimiter and quote"
        )

    def _values(self, head: TextHead, record: bytes) -> list[str]:
        try:
            return CsvParser.values(self.dialect, record)
        except ValueError as error:
            raise SourceUnreadable(
                f"source {head.file.path}: its first record cannot be read: {error}; see --option encoding"
            ) from error

    def _header(self, head: TextHead, values: Iterable[str]) -> tuple[str, ...]:
        names = [value.strip() for value in values]
        if bad := [name for name in names if not name or names.count(name) > 1]:
            raise SchemaMismatch(
                f"the header of {head.file.path} names {'column ' + repr(bad[0]) + ' twice' if bad[0] else 'a column nothing'}; "
                "mend it, or read the file with --option header=false --option skip-lines=1 and --schema"
            )
        return tuple(names)

    def _columns_by_place(self, head: TextHead, count: int) -> tuple[str, ...]:
        if self.names is None:
            return tuple(f"column_{number}" for number in range(1, count + 1))
        if count != len(self.names):
            raise SchemaMismatch(
                f"source {head.file.path} has {count} columns and no header, but {len(self.names)} are named: "
                f"{', '.join(self.names)}; say with --schema which they are"
            )
        return self.names
