"""Reading the format's Avro files: PyIceberg's reader, made to read all valid files and to refuse cut ones."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator
from typing import Any

from pyiceberg.avro.file import AvroFile, AvroFileHeader
from pyiceberg.exceptions import ResolveError
from pyiceberg.io import FileIO, InputFile, InputStream
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from frazil.errors import StorageFailed


def read_records(file_io: FileIO, path: str, schema: Schema) -> Iterator[Record]:
    """The records of an Avro file, projected to `schema` by field id.

    The file is read whole at the first step. StorageFailed if it cannot be read, or is damaged or cut short.
    """
    try:
        with file_io.new_input(path).open() as stream:
            content = stream.read()
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error}") from error
    try:
        with _Reader(_InMemory(path, content), schema) as records:
            # PyIceberg's compiled decoder does not see the end: it would read on in the memory behind a cut file.
            if records.decoder.tell() > len(content) or not content.endswith(records.header.sync):
                raise EOFError("it does not end with a whole block")
            yield from records
    except (EOFError, KeyError, TypeError, ValueError, ResolveError, SystemError, zlib.error) as error:
        raise StorageFailed(f"{path} is damaged or not an Avro file of this kind: {error}") from error


class _InMemory(InputFile):
    def __init__(self, location: str, content: bytes) -> None:
        super().__init__(location)
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002  # the interface has it
        return io.BytesIO(self._content)


class _Reader(AvroFile[Record]):
    """PyIceberg's reader, which alone knows neither `timestamp-nanos` nor a reference to a named type."""

    def _read_header(self) -> AvroFileHeader:
        header = super()._read_header()
        schema = _readable(json.loads(header.meta["avro.schema"]), {})
        header[1] = {**header.meta, "avro.schema": json.dumps(schema)}
        return header


def _readable(node: Any, named: dict[str, Any]) -> Any:
    if isinstance(node, str):
        return named.get(node, node)
    if isinstance(node, list):
        return [_readable(item, named) for item in node]
    inner = {key: _readable(node[key], named) for key in ("type", "items", "fields", "values") if key in node}
    result = {**node, **inner}
    if node.get("logicalType") == "timestamp-nanos":
        result["logicalType"] = "timestamp-micros"  # the same long; nobody looks at its unit here
    if node.get("type") == "fixed":
        named[node["name"]] = result
    return result
