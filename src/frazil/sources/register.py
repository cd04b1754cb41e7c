"""Parquet files that join a table as they are: shards are lists of files, and a shard's work is to read their footers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema

from frazil.errors import BadInput
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.parquet_footer import PlannedFile, read_footer
from frazil.snapshot.registered_file import FileRegistrar
from frazil.snapshot.report import Report
from frazil.snapshot.storage import file_io
from frazil.snapshot.write_shard import report_files
from frazil.sources.files import SourceFile
from frazil.sources.merged_schema import merged_schema, plain_field
from frazil.sources.pieces import grouped, shard_name

KIND = "register"
_MOST_FILES = 5000
_LEAST_FILES = 50
_UNFIT = "?#"


@dataclass(frozen=True, slots=True)
class RegisterShard:
    """Some of the files."""

    name: str
    files: tuple[PlannedFile, ...]

    @property
    def rows(self) -> int:
        """Not known before the footers are read."""
        return 0

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(file.size for file in self.files)

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  no row is read
        """None: no row of a registered file is read."""
        raise BadInput(f"the {len(self.files)} files of shard {self.name} are registered, not read; use `report`")

    def report(self, snapshot: DistributedSnapshot, attempt: int, io: FileIO | None = None) -> Report:
        """List the files in a manifest of the snapshot. On an error no manifest is left; the files stay as they are."""
        io = io or file_io(snapshot.storage, snapshot.location)
        registrar = FileRegistrar(snapshot, io)
        files = [listed for file in self.files if (listed := registrar.data_file(file)) is not None]
        return report_files(snapshot, self.name, files, attempt=attempt, io=io)

    def to_document(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {"kind": KIND, "files": [[file.path, file.size, file.modified_ms] for file in self.files]}


def shard_from_document(name: str, document: Mapping[str, Any]) -> RegisterShard:
    """The shard that `to_document` described."""
    return RegisterShard(name, tuple(PlannedFile(*file) for file in document["files"]))


class RegisterSource:
    """The files to register, with the schemas of those that were looked at."""

    def __init__(
        self,
        description: str,
        files: Sequence[PlannedFile],
        schemas: list[tuple[str, pa.Schema]],
        folder_columns: Sequence[pa.Field] = (),
    ) -> None:
        self.description = description
        self.files = files
        self._schemas = schemas
        self._folder_columns = folder_columns

    @property
    def rows(self) -> int:
        """Not known before the footers are read."""
        return 0

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(file.size for file in self.files)

    def for_table(self, schema: Schema) -> RegisterSource:  # noqa: ARG002  the files have types of their own
        """The source itself."""
        return self

    def schema(self) -> pa.Schema:
        """One schema that holds all that were looked at, and what only the folders tell."""
        return pa.schema([*merged_schema(self._schemas), *self._folder_columns])

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Each distinct schema with the first file that has it."""
        return self._schemas

    def shards(self, count: int) -> list[RegisterShard]:
        """About `count` shards of as many files each; fewer where each would have next to none, more where very many."""
        files = len(self.files)
        count = max(min(count, -(-files // _LEAST_FILES)), -(-files // _MOST_FILES))
        groups = grouped(self.files, lambda _: 1, count)
        return [RegisterShard(shard_name(number), tuple(members)) for number, members in enumerate(groups)]


def planned_files(files: Sequence[SourceFile], location: str) -> list[PlannedFile]:
    """The files by the names that a table at `location` will list them under.

    BadInput for a file that readers of the table could not reach, or whose name they would misread.
    """
    remote = _is_remote(location)
    prefix = "file://" if location.startswith("file:") else ""
    planned = []
    for file in files:
        path = file.path if "://" in file.path else prefix + file.path
        if unfit := sorted(set(path) & set(_UNFIT)):
            raise BadInput(f"{path} has {' and '.join(unfit)} in its name, which readers misread; rename it")
        if remote and not _is_remote(path):
            raise BadInput(
                f"{path} is on this machine, where readers of a table at {location} cannot reach it; copy it there, or "
                "ingest it"
            )
        planned.append(PlannedFile(path, file.size, file.modified_ms))
    return planned


def file_schemas(files: Sequence[PlannedFile], io: FileIO) -> list[tuple[str, pa.Schema]]:
    """Each distinct schema among these files, with the first that has it."""
    distinct: list[tuple[str, Any, pa.Schema]] = []
    for file in files:
        found = read_footer(file, io).schema
        if not any(known.equals(found) for _, known, _ in distinct):
            fields = [plain_field(field) for field in found.to_arrow_schema()]
            distinct.append((file.path, found, pa.schema(fields)))
    return [(path, schema) for path, _, schema in distinct]


def _is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file:")
