"""A writer's whole work: the rows of one shard in, one report out.

It runs on any host, from the descriptor alone. It asks the catalog for nothing and talks to no other writer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyiceberg.io import FileIO

from frazil.errors import BadInput, FrazilError, SchemaMismatch
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.data_file_sink import DataFileSink
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.manifest import ManifestWriter
from frazil.snapshot.manifest_file import ManifestContent, ManifestFile
from frazil.snapshot.partition_path import PartitionPath
from frazil.snapshot.rejected_rows import Position, RejectedRows, RejectTo
from frazil.snapshot.report import Report
from frazil.snapshot.storage import delete_files, file_io
from frazil.snapshot.summary import counts_of_added
from frazil.steps import step

_SHARD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=-]{0,127}")
_MANIFEST_TARGET_BYTES = 8 * 1024 * 1024


def write_shard(
    snapshot: DistributedSnapshot,
    shard: str,
    batches: Iterable[Any],
    *,
    attempt: int = 0,
    io: FileIO | None = None,
    rejects: RejectTo | None = None,
) -> Report:
    """Write the rows of one shard and report them. On an error no file of this attempt is left.

    With `rejects` a row that does not fit the table is written there, and is no error.
    """
    with SnapshotWriter(snapshot, shard=shard, attempt=attempt, io=io, rejects=rejects) as writer:
        for batch in batches:
            writer.write(batch)
    return writer.report


class SnapshotWriter:
    """One attempt at one shard of a reserved snapshot, used with `with`.

    Leaving the block writes the manifest and makes the `report`; leaving it by an exception removes every file. A
    shard's attempts need numbers of their own, as their files lie side by side until one of them is accepted. `io`
    defaults to what the descriptor's storage properties, or the environment, give.

    With `rejects` rows that do not fit go there instead of raising SchemaMismatch, and so do those that the caller could
    not read (`reject`). Their report is part of this one.
    """

    def __init__(
        self,
        snapshot: DistributedSnapshot,
        shard: str,
        *,
        attempt: int = 0,
        io: FileIO | None = None,
        rejects: RejectTo | None = None,
    ) -> None:
        _check_shard(snapshot, shard, attempt)
        self._snapshot = snapshot
        self._shard = shard
        self._attempt = attempt
        self._io = io or file_io(snapshot.storage, snapshot.location)
        numbers = count()
        self._sink = DataFileSink(
            schema=snapshot.schema,
            spec=snapshot.spec,
            location=snapshot.location,
            properties=snapshot.table_properties,
            io=self._io,
            file_name=lambda: snapshot.data_file_name(shard, attempt, next(numbers)),
            on_bad_rows=self._take_bad_rows if rejects else None,
        )
        self._rejects = RejectWriter(rejects, snapshot.name, shard, attempt, io) if rejects else None
        self._position: Position | None = None
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """What to send to the coordinator, once the block is left."""
        if self._report is None:
            raise FrazilError(f"shard {self._shard!r} has no report yet: leave the `with` block first")
        return self._report

    def write(self, data: Any, position: Position | None = None) -> int:
        """Take all rows of an Arrow batch, table or reader; returns how many. (A rejected row is taken too.)

        `position` tells where in the source the row of that number, counted from 0 within `data`, comes from.
        """
        self._position = position
        return self._sink.write(data)

    def reject(self, position: str | None, reason: str, row: str | None) -> None:
        """Take a row that could not be read. SchemaMismatch where rows are not to be rejected."""
        if self._rejects is None:
            raise SchemaMismatch(f"a row for table {self._snapshot.name} cannot be read ({position}): {reason}")
        self._rejects.rows.add(position, reason, row)

    def _take_bad_rows(self, batch: pa.RecordBatch, bad: Mapping[int, str], before: int) -> None:
        if self._rejects is not None:
            self._rejects.rows.add_from(batch, bad, before, self._position)

    def discard(self) -> None:
        """Remove every file, those of a report that was made included: it must not be published then."""
        made = self._report.manifests if self._report else ()
        self._report = None
        self._sink.abort()
        delete_files(self._io, [manifest.manifest_path for manifest in made])

    def __enter__(self) -> SnapshotWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abort()
            return
        try:
            self._report = self._finish()
        except BaseException:
            self._abort()
            raise

    def _abort(self) -> None:
        try:
            self._sink.abort()
        finally:
            if self._rejects is not None:
                self._rejects.abort()

    def _finish(self) -> Report:
        files = self._sink.close()
        rejected = self._rejects.finish() if self._rejects else None
        report = report_files(self._snapshot, self._shard, files, attempt=self._attempt, io=self._io)
        return report if rejected is None else replace(report, rejected_rows=rejected.rows, rejected=rejected)


class RejectWriter:
    """The files of the rows that one attempt at a shard rejects, made when the first of them comes."""

    def __init__(self, to: RejectTo, table: str, shard: str, attempt: int, io: FileIO | None) -> None:
        self._to, self._shard, self._attempt, self._io = to, shard, attempt, io
        self._writer: SnapshotWriter | None = None
        self.rows = RejectedRows(to, table, shard, self._write)

    def finish(self) -> Report | None:
        """The report of the rejected rows; None where there are none. On an error no file is left."""
        self.rows.flush()
        if self._writer is None:
            return None
        self._writer.__exit__(None, None, None)
        return self._writer.report

    def abort(self) -> None:
        """Leave no file, finished or not."""
        if self._writer is not None:
            self._writer.discard()

    def _write(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = SnapshotWriter(self._to.snapshot, self._shard, attempt=self._attempt, io=self._io)
        self._writer.write(rows)


def report_files(
    snapshot: DistributedSnapshot, shard: str, files: Iterable[DataFile], *, attempt: int = 0, io: FileIO | None = None
) -> Report:
    """Write manifests for ready-made data and delete files and report them: the way in for writers of other kinds.

    On an error no manifest is left; the files themselves are the caller's.
    """
    _check_shard(snapshot, shard, attempt)
    io = io or file_io(snapshot.storage, snapshot.location)
    files = list(files)
    _check_files(snapshot, files)
    manifests: list[ManifestFile] = []
    try:
        for content, members in _by_content(files).items():
            manifests += _write_manifests(snapshot, shard, attempt, io, content, members, len(manifests))
    except BaseException:
        delete_files(io, [manifest.manifest_path for manifest in manifests])
        raise
    step("write:manifest-written")
    report = Report(
        commit_uuid=snapshot.commit_uuid,
        snapshot_id=snapshot.snapshot_id,
        shard=shard,
        attempt=attempt,
        manifests=tuple(manifests),
        counts=counts_of_added(files),
        partitions=_partition_paths(snapshot, files),
    )
    step("write:reported")
    return report


def _check_shard(snapshot: DistributedSnapshot, shard: str, attempt: int) -> None:
    if not _SHARD_NAME.fullmatch(shard):
        raise BadInput(
            f"{shard!r} cannot name a shard of table {snapshot.name}: its files bear the name, so use up to 128 "
            "letters, digits and . _ = -"
        )
    if not 0 <= attempt < 2**31:
        raise BadInput(
            f"attempt {attempt} at shard {shard!r} of table {snapshot.name}: use a number from 0 to 2**31 - 1"
        )


def _check_files(snapshot: DistributedSnapshot, files: Iterable[DataFile]) -> None:
    for file in files:
        if file.spec_id != snapshot.spec.spec_id:
            raise BadInput(
                f"{file.file_path} is partitioned by spec {file.spec_id}, but this snapshot of table {snapshot.name} "
                f"writes spec {snapshot.spec.spec_id}; give its values by that one"
            )
        if (
            snapshot.format_version >= 3
            and file.content is FileContent.POSITION_DELETES
            and file.file_format.upper() != "PUFFIN"
        ):
            raise BadInput(
                f"{file.file_path} lists deleted positions, which a format v{snapshot.format_version} table such as "
                f"{snapshot.name} takes as deletion vectors (Puffin) alone"
            )


def _by_content(files: Iterable[DataFile]) -> dict[ManifestContent, list[DataFile]]:
    grouped: dict[ManifestContent, list[DataFile]] = {}
    for file in files:
        content = ManifestContent.DATA if file.content is FileContent.DATA else ManifestContent.DELETES
        grouped.setdefault(content, []).append(file)
    return grouped


def _write_manifests(
    snapshot: DistributedSnapshot,
    shard: str,
    attempt: int,
    io: FileIO,
    content: ManifestContent,
    files: list[DataFile],
    first: int,
) -> list[ManifestFile]:
    """One manifest, or several where the files are too many for one of the target size."""
    per_manifest = _files_per_manifest(snapshot, files)
    written: list[ManifestFile] = []
    for start in range(0, len(files), per_manifest):
        with ManifestWriter(
            io,
            snapshot.manifest_path(shard, attempt, first + len(written)),
            schema=snapshot.schema,
            spec=snapshot.spec,
            format_version=snapshot.format_version,
            snapshot_id=snapshot.snapshot_id,
            content=content,
        ) as writer:
            for file in files[start : start + per_manifest]:
                writer.add(file)
            written.append(writer.close())
    return written


def _files_per_manifest(snapshot: DistributedSnapshot, files: list[DataFile]) -> int:
    """By the bytes that an entry takes when compressed: some 40 and 12 for each column with statistics."""
    target = int(snapshot.table_properties.get("commit.manifest.target-size-bytes", _MANIFEST_TARGET_BYTES))
    return max(1, target // (40 + 12 * max(1, len(files[0].value_counts))))


def _partition_paths(snapshot: DistributedSnapshot, files: Iterable[DataFile]) -> tuple[str, ...]:
    if snapshot.spec.is_unpartitioned():
        return ()
    touched = {file.partition for file in files}
    return tuple(sorted(PartitionPath(values, snapshot.spec, snapshot.schema).to_path() for values in touched))
