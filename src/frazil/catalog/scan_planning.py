"""Server-side scan planning: which files a reader must read, with the deletes that apply and what is left to filter.

A small table is planned at once. A big one is cut into plan tasks, each a few manifests, which the client fetches one by one or
all at the same time: the server never holds a plan, and reads a manifest only when its task is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
    residual_evaluator_of,
)
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from frazil.catalog.content_file import content_file_document
from frazil.catalog.delete_index import DeleteIndex
from frazil.catalog.document import Document
from frazil.catalog.errors import IllegalArgument, InvalidRequest
from frazil.catalog.manifests import live_entries, read_manifests
from frazil.catalog.scan_filter import ScanFilter, parse_filter
from frazil.catalog.scan_request import ScanRequest, open_plan_id, open_task
from frazil.catalog.table_draft import find, with_modern_fields

FILES_PER_TASK: Final = 1000
"""About how many files one reply tells of."""


def plan_scan(metadata: Document, request: Any, io: FileIO) -> Document:
    """The reply to planTableScan: a PlanTableScanResult, always completed."""
    table = with_modern_fields(metadata)
    scan = Scan(table, ScanRequest.parse(request, table), io)
    return {**scan.plan(), "plan-id": scan.request.plan_id(table["table-uuid"])}


def plan_again(metadata: Document, plan_id: str, io: FileIO) -> Document:
    """The reply to fetchPlanningResult. Raises `NoSuchPlan` for an id that is not of this table's plans."""
    table = with_modern_fields(metadata)
    return Scan(table, open_plan_id(plan_id, table), io).plan()


def check_plan_id(metadata: Document, plan_id: str) -> None:
    """All there is to cancelPlanning, since no plan is held: refuse an id that is not of this table's plans."""
    open_plan_id(plan_id, with_modern_fields(metadata))


def fetch_tasks(metadata: Document, plan_task: str, io: FileIO) -> Document:
    """The reply to fetchScanTasks. Raises `NoSuchPlanTask` for a token that is not of this table's plans."""
    table = with_modern_fields(metadata)
    request, first, end = open_task(plan_task, table)
    return Scan(table, request, io).tasks(first, end)


class Scan:
    """One scan of a table."""

    def __init__(self, table: Document, request: ScanRequest, io: FileIO) -> None:
        self.table = table
        self.request = request
        self.io = io
        self.schema: Schema = request.schema(table)
        self.specs = {spec["spec-id"]: PartitionSpec.model_validate(spec) for spec in table["partition-specs"]}
        self.filter: ScanFilter = parse_filter(request.filter, self.schema, request.case_sensitive)
        self.stats = frozenset(self._column(name) for name in request.stats_fields)
        self._tests: dict[int, PartitionTests] = {}

    def plan(self) -> Document:
        """The whole scan: its file scan tasks if there are few, else the plan tasks to fetch them by."""
        groups = list(self._groups())
        if len(groups) <= 1:
            return {"status": "completed", **(self.tasks(*groups[0]) if groups else _NOTHING)}
        uuid = self.table["table-uuid"]
        return {"status": "completed", "plan-tasks": [self.request.task(uuid, *group) for group in groups]}

    def tasks(self, first: int, end: int) -> Document:
        """The file scan tasks of the data manifests in those places, and the delete files they refer to."""
        deletes: list[Document] = []
        places: dict[tuple[str, Any], int] = {}
        tasks = []
        for manifest in self._data_manifests[first:end]:
            for entry in self._kept(manifest):
                references = [self._place(file, deletes, places) for file in self._deletes.for_entry(entry)]
                tasks.append(self._task(entry, references))
        return {"file-scan-tasks": tasks, **({"delete-files": deletes} if deletes else {})}

    def _task(self, entry: ManifestEntry, references: list[int]) -> Document:
        file = entry.data_file
        task: Document = {
            "data-file": content_file_document(file, self.specs[file.spec_id], self.schema, self.stats),
            "residual-filter": self.filter.residual(self._tests_of(file.spec_id).residual(file.partition)),
        }
        return task | ({"delete-file-references": references} if references else {})

    def _place(self, file: DataFile, deletes: list[Document], places: dict[tuple[str, Any], int]) -> int:
        document = content_file_document(file, self.specs[file.spec_id], self.schema)
        key = (file.file_path, document.get("content-offset"))
        if key not in places:
            places[key] = len(deletes)
            deletes.append(document)
        return places[key]

    def _groups(self) -> Iterator[tuple[int, int]]:
        """The data manifests that can hold something, in runs of about as many files as a reply should tell of."""
        first, files = None, 0
        for place, manifest in enumerate(self._data_manifests):
            if not self._tests_of(manifest.partition_spec_id).may_match(manifest):
                continue
            if first is None:
                first = place
            files += (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            if files >= FILES_PER_TASK:
                yield first, place + 1
                first, files = None, 0
        if first is not None:
            yield first, len(self._data_manifests)

    @cached_property
    def _manifests(self) -> list[ManifestFile]:
        """The manifests of the snapshot; of an incremental scan those that its appends added, each once."""
        if self.request.after_snapshot_id is None:
            return (
                [] if self.request.snapshot_id is None else self._manifests_of(self._snapshot(self.request.snapshot_id))
            )
        found = {
            manifest.manifest_path: manifest
            for snapshot_id in self._appended
            for manifest in self._manifests_of(self._snapshot(snapshot_id))
            if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id in self._appended
        }
        return list(found.values())

    @cached_property
    def _data_manifests(self) -> list[ManifestFile]:
        return [manifest for manifest in self._manifests if manifest.content is ManifestContent.DATA]

    @cached_property
    def _deletes(self) -> DeleteIndex:
        index = DeleteIndex(self.specs)
        for manifest in self._manifests:
            if manifest.content is ManifestContent.DELETES:
                for entry in live_entries(self.io, manifest):
                    index.add(entry)
        return index

    @cached_property
    def _appended(self) -> list[int]:
        """The appends of an incremental scan, newest first."""
        snapshots = {one["snapshot-id"]: one for one in self.table["snapshots"]}
        found, number = [], self.request.snapshot_id
        while number is not None and number != self.request.after_snapshot_id:
            snapshot = snapshots.get(number)
            if snapshot is None:
                break
            if (snapshot.get("summary") or {}).get("operation") == "append":
                found.append(number)
            number = snapshot.get("parent-snapshot-id")
        if number != self.request.after_snapshot_id:
            raise IllegalArgument(
                f"Starting snapshot (exclusive) {self.request.after_snapshot_id} is not a parent ancestor of end snapshot "
                f"{self.request.snapshot_id}"
            )
        return found

    def _kept(self, manifest: ManifestFile) -> Iterator[ManifestEntry]:
        """The live entries of a data manifest that the scan must read."""
        tests = self._tests_of(manifest.partition_spec_id)
        if not tests.may_match(manifest):
            return
        appended = None if self.request.after_snapshot_id is None else set(self._appended)
        for entry in live_entries(self.io, manifest):
            if appended is not None and (
                entry.status != ManifestEntryStatus.ADDED or entry.snapshot_id not in appended
            ):
                continue
            if tests.keeps(entry.data_file):
                yield entry

    def _snapshot(self, snapshot_id: int) -> Document:
        snapshot = find(self.table["snapshots"], "snapshot-id", snapshot_id)
        if snapshot is None:
            raise IllegalArgument(f"Cannot find snapshot with ID {snapshot_id}")
        return snapshot

    def _manifests_of(self, snapshot: Document) -> list[ManifestFile]:
        if snapshot.get("manifest-list") is None:
            raise InvalidRequest(
                f"Cannot plan a scan of snapshot {snapshot['snapshot-id']}: it has no manifest list; plan it in the client"
            )
        return read_manifests(self.io, snapshot["manifest-list"])

    def _column(self, name: str) -> int:
        try:
            return self.schema.find_field(name, self.request.case_sensitive).field_id
        except ValueError:
            raise IllegalArgument(f"Cannot find stats field '{name}' in struct: {self.schema.as_struct()}") from None

    def _tests_of(self, spec_id: int) -> PartitionTests:
        if spec_id not in self._tests:
            self._tests[spec_id] = PartitionTests(self.specs[spec_id], self.schema, self.filter.expression)
        return self._tests[spec_id]


_NOTHING: Final[Document] = {"file-scan-tasks": []}


class PartitionTests:
    """The filter, prepared for the files of one partition spec."""

    def __init__(self, spec: PartitionSpec, schema: Schema, expression: BooleanExpression) -> None:
        projected = inclusive_projection(schema, spec, True)(expression)
        partition = Schema(*spec.partition_type(schema).fields)
        self._of_manifest: Callable[[ManifestFile], bool] = manifest_evaluator(spec, schema, projected, True)
        self._of_partition: Callable[[Record], bool] = expression_evaluator(partition, projected, True)
        self._of_metrics = _InclusiveMetricsEvaluator(schema, expression, True, include_empty_files=False)
        self._residuals = residual_evaluator_of(spec=spec, expr=expression, case_sensitive=True, schema=schema)
        self._expression = expression

    def may_match(self, manifest: ManifestFile) -> bool:
        """Whether the manifest can name a file that matters."""
        return self._of_manifest(manifest)

    def keeps(self, file: DataFile) -> bool:
        """Whether the file can hold a row that matters."""
        return self._of_partition(file.partition) and self._of_metrics.eval(file)

    def residual(self, partition: Record) -> BooleanExpression:
        """What of the filter the partition leaves open."""
        if _has_null(partition):
            return self._expression  # PyIceberg compares a null value with the bound, which no type allows
        return self._residuals.residual_for(partition)


def _has_null(partition: Sequence[Any] | Record) -> bool:
    return any(partition[place] is None for place in range(len(partition)))
