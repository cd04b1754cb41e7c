"""How a CSV file is written, as the user's options say, and where its records end."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frazil.errors import BadInput

OPTIONS = frozenset(
    {"delimiter", "quote", "escape", "header", "null-values", "encoding", "multiline", "skip-lines", "schema"}
)
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


@dataclass(frozen=True)
class CsvDialect:
    """A CSV dialect. `quote` and `escape` are None where there is none.

    A quote counts only where a field begins; within quotes a doubled one stands for itself.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null_values: tuple[str, ...] = ("",)
    encoding: str = "utf-8"

    @classmethod
    def from_options(cls, options: Mapping[str, str], default_delimiter: str) -> CsvDialect:
        """BadInput names the option that cannot be used."""
        dialect = cls(
            delimiter=_character("delimiter", options.get("delimiter", default_delimiter)) or ",",
            quote=_character("quote", options.get("quote", '"')),
            escape=_character("escape", options.get("escape", "none")),
            null_values=tuple(options.get("null-values", "").split(",")),
            encoding=_encoding(options.get("encoding", "utf-8")),
        )
        marks = [mark for mark in (dialect.delimiter, dialect.quote, dialect.escape) if mark]
        if len(set(marks)) < len(marks):
            raise BadInput("the options delimiter, quote and escape must be different characters")
        return dialect

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> CsvDialect:
        """The value that `to_document` gave."""
        return cls(**{**document, "null_values": tuple(document["null_values"])})

    def to_document(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "delimiter": self.delimiter,
            "quote": self.quote,
            "escape": self.escape,
            "null_values": list(self.null_values),
            "encoding": self.encoding,
        }

    def last_end(self, text: bytes) -> int:
        """How many of these bytes, which begin with a record, are whole records with their line ends."""
        end = _line_ends(text)
        if self._quote is None or self._quote not in text:
            return end if self._escape is None or self._escape not in text else self._last_by_walking(text)
        quotes = self._well_formed_quotes(text)
        if quotes is None:
            return self._last_by_walking(text)
        while end and (before := int(np.searchsorted(quotes, end - 1))) % 2:
            end = _line_ends(text, int(quotes[before - 1]))
        return end

    def records(self, text: bytes) -> list[tuple[int, int]]:
        """Where each record begins and ends, empty lines included; the last may lack its line end."""
        return [match.span() for match in self._record.finditer(text) if match.end() > match.start()]

    def has_open_quote(self, record: bytes) -> bool:
        """Whether a quoted field of this record is not closed."""
        return self._closed_record.fullmatch(record) is None

    @cached_property
    def _quote(self) -> bytes | None:
        return self.quote.encode() if self.quote else None

    @cached_property
    def _escape(self) -> bytes | None:
        return self.escape.encode() if self.escape else None

    @cached_property
    def _record(self) -> re.Pattern[bytes]:
        """One record with its line end, as PyArrow's parser has it: a quote that is never closed reaches to the end."""
        return self._pattern(rb"(?:%s|\Z)")

    @cached_property
    def _closed_record(self) -> re.Pattern[bytes]:
        return self._pattern(rb"%s")

    def _pattern(self, closing: bytes) -> re.Pattern[bytes]:
        delimiter = re.escape(self.delimiter.encode())
        escape = re.escape(self._escape) if self._escape else b""
        escaped = escape + rb"(?:.|\Z)|" if escape else b""
        field = plain = rb"(?:%s[^%s%s\r\n]++)*+" % (escaped, delimiter, escape)
        if self._quote:
            quote = re.escape(self._quote)
            inner = rb"(?:%s[^%s%s]++|%s%s)*+" % (escaped, quote, escape, quote, quote)
            quoted = quote + inner + closing % quote + plain
            field = rb"(?:%s|(?!%s)%s)" % (quoted, quote, plain)
        return re.compile(rb"%s(?:%s%s)*+(?P<end>\r\n|\n|\r|\Z)" % (field, delimiter, field), re.DOTALL)

    def _well_formed_quotes(self, text: bytes) -> Any:
        """The places of all quotes if each either opens a field at its beginning, closes it, or is doubled; else None.

        Then a line end is a record's end just where an even number of quotes stands before it.
        """
        if self._escape is not None and self._escape in text:
            return None
        data = np.frombuffer(text, np.uint8)
        quotes = np.flatnonzero(data == ord(self.quote or ""))
        opening = quotes[::2]
        before = data[np.maximum(opening - 1, 0)]
        begins = (before == ord(self.delimiter)) | (before == ord("\n")) | (before == ord("\r")) | (opening == 0)
        doubled = np.zeros(len(opening), bool)
        doubled[1:] = opening[1:] == quotes[1::2][: len(opening) - 1] + 1
        return quotes if bool((begins | doubled).all()) else None

    def _last_by_walking(self, text: bytes) -> int:
        last = 0
        for match in self._record.finditer(text):
            if match["end"] and not (match["end"] == b"\r" and match.end() == len(text)):
                last = match.end()
        return last


def _line_ends(text: bytes, stop: int | None = None) -> int:
    """The end of the last line before `stop`; a carriage return ends lines where there is no line feed.

    One at the very end of the text may be half of both.
    """
    if end := text.rfind(b"\n", 0, stop) + 1:
        return end
    return text.rfind(b"\r", 0, len(text) - 1 if stop is None else stop) + 1


def _character(option: str, text: str) -> str | None:
    if text in ("none", ""):
        if option == "delimiter":
            raise BadInput("--option delimiter needs a character")
        return None
    character = _NAMED.get(text, text)
    if len(character) != 1 or not character.isascii() or character in "\r\n":
        raise BadInput(f"--option {option}={text} is not one ASCII character")
    return character


def _encoding(name: str) -> str:
    """UTF-8, or an encoding with one byte for each character, ASCII's among them."""
    try:
        found = codecs.lookup(name).name
        whole = bytes(range(256)).decode(found, "replace")
        fits = found == "utf-8" or (len(whole) == 256 and whole[:128] == bytes(range(128)).decode("ascii"))
    except (LookupError, UnicodeError):
        fits = False
    if not fits:
        raise BadInput(
            f"--option encoding={name} cannot be read; use utf-8 or a single-byte encoding such as latin-1 or cp1252, or "
            "convert the files to UTF-8 first"
        )
    return found
