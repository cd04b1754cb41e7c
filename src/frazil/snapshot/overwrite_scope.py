"""What an overwrite replaces, file by file: the whole table, the partitions that were written to, or what a filter takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Protocol, cast

from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
    strict_projection,
)
from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from frazil.errors import BadInput
from frazil.snapshot.commit import Contribution
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.manifest import ManifestFile, read_manifest_entries
from frazil.snapshot.row_filter import RowFilter


@dataclass(frozen=True, slots=True)
class WholeTable:
    """Every row of the branch."""


@dataclass(frozen=True, slots=True)
class TouchedPartitions:
    """Every row of the partitions that the new rows are in; of an unpartitioned table every row, if there are new ones."""


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """The rows that a filter takes, written as SQL writes it."""

    filter: str


Overwrite = WholeTable | TouchedPartitions | MatchingRows


class Fate(Enum):
    """What an overwrite does to a file."""

    OUTSIDE = "it may not matter to the overwrite"
    STAYS = "it may, so that the overwrite must know of it"
    GOES = "all of its rows are replaced"
    PARTLY = "some of its rows may be"


class Scope(Protocol):
    """The files that one overwrite has to do with."""

    def may_hold(self, manifest: ManifestFile) -> bool:
        """False only where no file of the manifest is touched."""

    def fate(self, file: DataFile) -> Fate:
        """What becomes of this file, by its values alone."""


def scope_of(overwrite: Overwrite, io: FileIO, metadata: TableMetadata, contribution: Contribution) -> Scope:
    """The scope over this table of an overwrite by this contribution."""
    match overwrite:
        case WholeTable():
            return _Everything()
        case TouchedPartitions():
            return _Partitions(metadata, _written_to(io, contribution))
        case MatchingRows(text):
            return _Filtered(metadata, RowFilter(text, metadata.schema()))


class _Everything:
    def may_hold(self, manifest: ManifestFile) -> bool:  # noqa: ARG002
        return True

    def fate(self, file: DataFile) -> Fate:  # noqa: ARG002
        return Fate.GOES


@dataclass
class _Partitions:
    metadata: TableMetadata
    partitions: frozenset[tuple[Any, ...]]

    def may_hold(self, manifest: ManifestFile) -> bool:  # noqa: ARG002
        return bool(self.partitions)

    def fate(self, file: DataFile) -> Fate:
        spec = self.metadata.spec()
        if file.spec_id == spec.spec_id:
            return Fate.GOES if _comparable(file.partition) in self.partitions else Fate.OUTSIDE
        if file.content is FileContent.DATA:
            raise BadInput(
                f"{file.file_path} was written when the table was partitioned by another spec ({file.spec_id}, now "
                f"{spec.spec_id}), so it cannot be told which of its rows are in the partitions to be replaced; overwrite "
                "by a filter, or rewrite the old files first"
            )
        return Fate.STAYS


@dataclass
class _Filtered:
    metadata: TableMetadata
    rows: RowFilter
    _specs: dict[int, _SpecFilter] = field(default_factory=dict)

    def may_hold(self, manifest: ManifestFile) -> bool:
        return self._spec(manifest.partition_spec_id).may_hold(manifest)

    def fate(self, file: DataFile) -> Fate:
        by_partition = self._spec(file.spec_id)
        if not by_partition.may_match(file.partition):
            return Fate.OUTSIDE
        if file.content is not FileContent.DATA:
            return Fate.GOES if by_partition.must_match(file.partition) else Fate.STAYS
        has_bounds = cast("Any", file)  # all that PyIceberg asks of a file of its own, ours has too
        if not self._may_match.eval(has_bounds):
            return Fate.OUTSIDE
        covered = by_partition.must_match(file.partition) or self._must_match.eval(has_bounds)
        return Fate.GOES if covered else Fate.PARTLY

    def _spec(self, spec_id: int) -> _SpecFilter:
        if spec_id not in self._specs:
            schema = self.metadata.schema()
            self._specs[spec_id] = _SpecFilter(schema, self.metadata.specs()[spec_id], self.rows.expression)
        return self._specs[spec_id]

    @cached_property
    def _may_match(self) -> _InclusiveMetricsEvaluator:
        return _InclusiveMetricsEvaluator(self.metadata.schema(), self.rows.expression)

    @cached_property
    def _must_match(self) -> _StrictMetricsEvaluator:
        return _StrictMetricsEvaluator(self.metadata.schema(), self.rows.expression)


class _SpecFilter:
    """A filter asked of the partitions of one spec."""

    def __init__(self, schema: Schema, spec: PartitionSpec, expression: BooleanExpression) -> None:
        may = inclusive_projection(schema, spec)(expression)
        partition = Schema(*spec.partition_type(schema).fields)
        self.may_hold: Callable[[Any], bool] = manifest_evaluator(spec, schema, may, True)
        self.may_match: Callable[[Any], bool] = expression_evaluator(partition, may, True)
        self.must_match: Callable[[Any], bool] = expression_evaluator(
            partition, strict_projection(schema, spec)(expression), True
        )


def _written_to(io: FileIO, contribution: Contribution) -> frozenset[tuple[Any, ...]]:
    return frozenset(
        _comparable(entry.data_file.partition)
        for manifest in contribution.manifests
        for entry in read_manifest_entries(io, manifest)
    )


def _comparable(values: Iterable[Any]) -> tuple[Any, ...]:
    """A partition that equals itself: NaN does not."""
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in values)
