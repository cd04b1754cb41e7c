"""The coordinator's whole work: reports in, one commit out.

Only here is the table changed, and only here is a commit tried again.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from frazil.errors import AlreadyConsumed, BadInput, CommitConflict, CommitRefused, FrazilError, OutcomeUnknown
from frazil.errors import NotLanded as NotLandedError
from frazil.snapshot.commit import Contribution, Plan, Removal, assemble, gather, live_manifests
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.manifest import ManifestFile
from frazil.snapshot.manifest_merge import ManifestMerger
from frazil.snapshot.outcome import Landed, NotLanded, Unknown
from frazil.snapshot.overwrite import remove_all
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import check_reservation, head_of, now_ms
from frazil.snapshot.retry import RetryPolicy
from frazil.snapshot.storage import delete_files
from frazil.snapshot.table import Accepted, CatalogTable
from frazil.steps import step

ConflictPolicy = Literal["rebase", "abort"]


def publish_snapshot(
    table: Table,
    snapshot: DistributedSnapshot,
    reports: Iterable[Report],
    *,
    summary: Mapping[str, str] | None = None,
    overwrite: bool = False,
    conflict: ConflictPolicy = "rebase",
    clock_ms: Callable[[], int] = now_ms,
    sleep: Callable[[float], None] = time.sleep,
) -> Landed:
    """Make everything in `reports` visible in `table` at one instant, and say that it landed.

    Appends rebase onto whatever other writers have published meanwhile, under the table's `commit.retry.*` bounds;
    `conflict="abort"` gives up at the first conflict. An `overwrite` replaces all rows of the branch and, like a commit
    with delete files, never rebases: it raises CommitConflict if the branch moved since `begin_snapshot`.

    Anything but `Landed` is an error with a type of its own, so that no caller can overlook it: NotLanded and its kinds
    (AlreadyConsumed, CommitConflict, CommitRefused, ReservationExpired …) when it is proven that nothing changed, and
    OutcomeUnknown when it cannot be told; then no file has been deleted and calling again is safe.
    """
    if conflict not in ("rebase", "abort"):
        raise BadInput(f"conflict is {conflict!r}, but it must be 'rebase' or 'abort'")
    publisher = _Publisher(
        target=CatalogTable(table),
        snapshot=snapshot,
        contribution=gather(snapshot, reports),
        summary=dict(summary or {}),
        overwrite=overwrite,
        conflict=conflict,
        clock_ms=clock_ms,
    )
    waits = RetryPolicy.from_properties(table.metadata.properties).waits(time.monotonic, random.random)
    try:
        while True:
            with publisher.target.exclusive():
                answer = publisher.attempt()
            if isinstance(answer, Landed):
                return publisher.finish(answer)
            wait = next(waits, None)
            if wait is None:
                raise publisher.given_up(answer)
            sleep(wait)
    except NotLandedError as error:
        raise publisher.proven(error) from error.__cause__


@dataclass(slots=True)
class _Publisher:
    """One call's memory over its attempts: the lists it wrote, and which attempts might still land."""

    target: CatalogTable
    snapshot: DistributedSnapshot
    contribution: Contribution
    summary: Mapping[str, str]
    overwrite: bool
    conflict: ConflictPolicy
    clock_ms: Callable[[], int]
    # Two coordinators must never write the same file, so each counts its attempts from a number of its own.
    first_attempt: int = field(default_factory=lambda: secrets.randbelow(2**30) * 1000 + 1)
    attempts: int = 0
    written: list[str] = field(default_factory=list)
    unresolved: list[Plan] = field(default_factory=list)
    merger: ManifestMerger | None = None
    removal: Removal | None = None

    def attempt(self) -> Landed | NotLanded | Unknown:
        """One try: look at the table, check, assemble, ask."""
        metadata = self._look()
        landed = self._find(metadata)
        if landed is not None:
            return landed
        self._check(metadata)
        manifests = self._manifests(metadata)
        number = self.first_attempt + self.attempts
        self.attempts += 1
        self.written.append(self.snapshot.manifest_list_path(number))
        step("publish:before-list")
        plan = assemble(
            self.target.io,
            metadata,
            self.snapshot,
            self.contribution,
            manifests,
            self.removal,
            attempt=number,
            now_ms=self.clock_ms(),
            properties=self.summary,
        )
        step("publish:list-written")
        answer = self.target.update(plan.requirements, plan.updates)
        match answer:
            case Accepted():
                step("publish:committed")
                return self._landed(plan.snapshot.sequence_number or 0, plan.snapshot.manifest_list)
            case NotLanded(conflict=False) if not self._stale(metadata):
                raise CommitRefused(f"the catalog refused {self._subject}: {answer.reason}; nothing was published")
            case Unknown():
                self.unresolved.append(plan)
        return answer

    def _stale(self, planned_on: TableMetadata) -> bool:
        """Whether the table moved on under a refused plan: some catalogs answer a late sequence number by 400, not 409."""
        now = self._look()
        return now.last_updated_ms != planned_on.last_updated_ms or len(now.snapshots) != len(planned_on.snapshots)

    def _look(self) -> TableMetadata:
        if not self.attempts:
            return self.target.refresh(self.snapshot.table_uuid)
        return self.target.look(self.snapshot.table_uuid, f"publishing {self._subject}")

    def _find(self, metadata: TableMetadata) -> Landed | None:
        """Whether one of this publisher's own attempts is in the table after all."""
        found = metadata.snapshot_by_id(self.snapshot.snapshot_id)
        if found is None:
            head = metadata.refs.get(self.snapshot.ref)
            moved = head.snapshot_id if head else None
            self.unresolved = [plan for plan in self.unresolved if plan.asserted_head == moved]
            return None
        if found.manifest_list not in self.written:
            raise AlreadyConsumed(
                f"{self._subject} is already consumed: another "
                "coordinator has published it; there is nothing left to do"
            )
        landed = self._landed(found.sequence_number or 0, found.manifest_list)
        return replace(landed, reply_lost=True)

    def finish(self, landed: Landed) -> Landed:
        """Remove the lists and merged manifests that the landed attempt does not use: none of them can land any more."""
        spare = [path for path in self.written if path != landed.manifest_list]
        delete_files(self.target.io, [*spare, *(self.merger.unused if self.merger else ())])
        return landed

    def given_up(self, answer: NotLanded | Unknown) -> FrazilError:
        """The error to raise when no try is left."""
        if isinstance(answer, Unknown):
            return self._unknown(answer.reason)
        return CommitConflict(
            f"{self._subject} was not published: another writer was first ({answer.reason}), {self.attempts} tries; "
            "the data files are kept, so publish again with the same descriptor, or cancel and sweep"
        )

    def proven(self, error: NotLandedError) -> FrazilError:
        """This error where "not landed" holds for every attempt, and the lists removed; else that it is unknown."""
        if self.unresolved:
            return self._unknown(str(error))
        removed = [manifest.manifest_path for manifest in self.removal.manifests] if self.removal else []
        delete_files(self.target.io, [*self.written, *removed, *(self.merger.written if self.merger else ())])
        return error

    def _unknown(self, reason: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"it is not known whether {self._subject} was published ({reason}); nothing was deleted. "
            "Publish again with the same descriptor: if it landed, that will be recognised"
        )

    @property
    def _subject(self) -> str:
        return f"snapshot {self.snapshot.snapshot_id} of table {self.snapshot.name}"

    def _check(self, metadata: TableMetadata) -> None:
        check_reservation(metadata, self.snapshot, self.clock_ms())
        if head_of(metadata, self.snapshot.ref) != self.snapshot.parent_snapshot_id and self._must_not_rebase:
            raise CommitConflict(
                f"{self._subject} was not published: branch {self.snapshot.ref!r} has moved since it was begun, and "
                f"{self._must_not_rebase}; begin again on the new state"
            )

    @property
    def _must_not_rebase(self) -> str:
        """Why this commit may only follow the snapshot it was begun on; empty where it may follow any."""
        if self.overwrite:
            return "an overwrite must not remove rows that it has not seen"
        if self.contribution.adds_deletes:
            return "deletes must not meet rows that they have not seen"
        return "its conflict policy is to abort" if self.conflict == "abort" else ""

    def _manifests(self, metadata: TableMetadata) -> list[ManifestFile]:
        carried = live_manifests(self.target.io, metadata, head_of(metadata, self.snapshot.ref))
        if self.overwrite:
            if self.removal is None:
                self.removal = remove_all(self.target.io, metadata, self.snapshot, carried, self.first_attempt)
            carried = list(self.removal.manifests)
        if self.merger is None:
            self.merger = ManifestMerger.for_table(self.target.io, metadata, self.snapshot, self.first_attempt)
        return self.merger.merge(metadata, [*self.contribution.manifests, *carried])

    def _landed(self, sequence_number: int, manifest_list: str) -> Landed:
        return Landed(
            table=self.snapshot.name,
            snapshot_id=self.snapshot.snapshot_id,
            sequence_number=sequence_number,
            manifest_list=manifest_list,
            attempts=self.attempts,
        )
