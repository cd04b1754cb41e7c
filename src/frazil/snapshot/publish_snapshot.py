"""The coordinator's whole work: reports in, one commit out.

Only here is the table changed, and only here is a commit tried again.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from frazil.errors import (
    AlreadyConsumed,
    BadInput,
    CommitConflict,
    CommitRefused,
    FrazilError,
    OutcomeUnknown,
    StorageFailed,
)
from frazil.errors import NotLanded as NotLandedError
from frazil.snapshot.batch_progress import NumberedBatch, check_batch
from frazil.snapshot.commit import Contribution, Plan, Removal, assemble, gather, live_manifests
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.manifest import ManifestFile
from frazil.snapshot.manifest_merge import ManifestMerger
from frazil.snapshot.outcome import Landed, NotLanded, Unknown
from frazil.snapshot.overwrite import Replacement
from frazil.snapshot.overwrite_scope import Overwrite, WholeTable
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import asserted_head, check_reservation, head_of, now_ms
from frazil.snapshot.retry import RetryPolicy
from frazil.snapshot.storage import delete_files
from frazil.snapshot.summary import check_summary
from frazil.snapshot.table import Accepted, CatalogTable
from frazil.steps import step

ConflictPolicy = Literal["rebase", "abort"]

# A reservation may be cancelled and swept after the look that found it good, so a look must not be old when we commit.
_LOOK_IS_GOOD_FOR_MS = 30_000


def publish_snapshot(
    table: Table,
    snapshot: DistributedSnapshot,
    reports: Iterable[Report],
    *,
    summary: Mapping[str, str] | None = None,
    overwrite: bool | Overwrite = False,
    conflict: ConflictPolicy = "rebase",
    batch: NumberedBatch | None = None,
    clock_ms: Callable[[], int] = now_ms,
    sleep: Callable[[float], None] = time.sleep,
) -> Landed:
    """Make everything in `reports` visible in `table` at one instant, and say that it landed.

    Appends rebase onto whatever other writers have published meanwhile, under the table's `commit.retry.*` bounds;
    `conflict="abort"` gives up at the first conflict. A commit with delete files never rebases: it raises CommitConflict
    if the branch moved since `begin_snapshot`.

    An `overwrite` replaces the branch's rows: all of them (`WholeTable`, or True), those of the partitions that the
    reports are in (`TouchedPartitions`), or those that a filter takes (`MatchingRows`). Files that a filter takes only
    in part are written again, here, without the rows it takes; that all new rows match the filter is for the writers to
    see to. It raises CommitConflict if any file among those it replaces came or went since `begin_snapshot`.

    A numbered `batch` is published once: BatchAlreadyLanded if it, or a later one of its query, is in the table.

    Anything but `Landed` is an error with a type of its own, so that no caller can overlook it: NotLanded and its kinds
    (AlreadyConsumed, CommitConflict, CommitRefused, ReservationExpired …) when it is proven that nothing changed, and
    OutcomeUnknown when it cannot be told; then no file has been deleted and calling again is safe.
    """
    publisher = publisher_of(
        table,
        snapshot,
        reports,
        summary=summary,
        overwrite=overwrite,
        conflict=conflict,
        batch=batch,
        clock_ms=clock_ms,
    )
    waits = RetryPolicy.from_properties(table.metadata.properties).waits(time.monotonic, random.random)
    try:
        publisher.settle()
        landed = _until_it_lands(publisher, waits, sleep)
    except (BadInput, NotLandedError) as error:
        raise publisher.proven(error) from error.__cause__
    return publisher.finish(landed)


def publisher_of(
    table: Table,
    snapshot: DistributedSnapshot,
    reports: Iterable[Report],
    *,
    summary: Mapping[str, str] | None = None,
    overwrite: bool | Overwrite = False,
    conflict: ConflictPolicy = "rebase",
    batch: NumberedBatch | None = None,
    clock_ms: Callable[[], int] = now_ms,
) -> Publisher:
    """All that one call of `publish_snapshot` starts from, checked."""
    if conflict not in ("rebase", "abort"):
        raise BadInput(f"conflict is {conflict!r}, but it must be 'rebase' or 'abort'")
    check_summary(snapshot.name, summary or {})
    return Publisher(
        target=CatalogTable(table),
        snapshot=snapshot,
        contribution=gather(snapshot, reports),
        summary={**(summary or {}), **(batch.summary if batch else {})},
        overwrite=(WholeTable() if overwrite else None) if isinstance(overwrite, bool) else overwrite,
        conflict=conflict,
        batch=batch,
        clock_ms=clock_ms,
    )


def _until_it_lands(publisher: Publisher, waits: Iterator[float], sleep: Callable[[float], None]) -> Landed:
    while True:
        with publisher.target.exclusive():
            answer = publisher.attempt_or_recognise()
        if isinstance(answer, Landed):
            return answer
        wait = next(waits, None)
        if wait is None:
            return publisher.last_look(answer)
        sleep(wait)


@dataclass(slots=True)
class Publisher:
    """One call's memory over its attempts: the lists it wrote, what they use, and which attempts might still land."""

    target: CatalogTable
    snapshot: DistributedSnapshot
    contribution: Contribution
    summary: Mapping[str, str]
    overwrite: Overwrite | None
    conflict: ConflictPolicy
    batch: NumberedBatch | None
    clock_ms: Callable[[], int]
    # Two coordinators must never write the same file, so each counts its attempts from a number of its own.
    first_attempt: int = field(default_factory=lambda: secrets.randbelow(2**30) * 1000 + 1)
    attempts: int = 0
    written: dict[str, frozenset[str]] = field(default_factory=dict)  # each list, with the manifests in it
    unresolved: list[Plan] = field(default_factory=list)
    merger: ManifestMerger | None = None
    replacement: Replacement | None = None
    removal: Removal | None = None

    def settle(self) -> None:
        """For an overwrite: find out, before the first attempt, what it replaces, and write again what it keeps."""
        if self.overwrite is None:
            return
        metadata = self._look()
        self._find(metadata)
        check_reservation(metadata, self.snapshot, self.clock_ms())
        self.replacement = Replacement.begin(
            self.target.table, self.snapshot, self.overwrite, self.contribution, self.first_attempt
        )
        if self.replacement.kept is not None:
            self.contribution = self.contribution.joined_by(gather(self.snapshot, [self.replacement.kept]))

    def attempt_or_recognise(self) -> Landed | NotLanded | Unknown:
        """As `attempt`; but a manifest that is gone may be so because another coordinator merged it and landed."""
        try:
            return self.attempt()
        except StorageFailed:
            landed = self._find(self._look())
            if landed is None:
                raise
            return landed

    def attempt(self) -> Landed | NotLanded | Unknown:
        """One try: look at the table, check, assemble, ask."""
        proposed = self.propose()
        if isinstance(proposed, Landed):
            return proposed
        return self.answered(proposed, self.target.update(proposed.requirements, proposed.updates))

    def propose(self) -> Landed | Plan:
        """What to ask the catalog for, by a new look at the table; or that an earlier attempt has landed after all."""
        looked_ms = self.clock_ms()
        metadata = self._look()
        landed = self._find(metadata)
        if landed is not None:
            return landed
        self._check(metadata)
        manifests = self._manifests(metadata)
        number = self.first_attempt + self.attempts
        self.attempts += 1
        listed = frozenset(manifest.manifest_path for manifest in manifests)
        self.written[self.snapshot.manifest_list_path(number)] = listed
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
            table_properties=self.batch.properties if self.batch else None,
        )
        step("publish:list-written")
        if self.clock_ms() - looked_ms > _LOOK_IS_GOOD_FOR_MS:
            check_reservation(self._look(), self.snapshot, self.clock_ms())
        return plan

    def answered(self, plan: Plan, answer: Accepted | NotLanded | Unknown) -> Landed | NotLanded | Unknown:
        """What the catalog's answer to a plan means."""
        match answer:
            case Accepted():
                step("publish:committed")
                return self._landed(plan.snapshot.sequence_number or 0, plan.snapshot.manifest_list)
            case NotLanded(conflict=False):
                return self._refused(answer, plan)
            case Unknown():
                self.unresolved.append(plan)
        return answer

    def _refused(self, answer: NotLanded, plan: Plan) -> Landed | NotLanded:
        """Raise CommitRefused, unless the table has moved on: some catalogs answer by 400, not 409, what came late."""
        now = self._look()
        landed = self._find(now)
        if landed is not None:
            return landed
        if (now.last_updated_ms, len(now.snapshots)) == plan.planned_on:
            raise CommitRefused(f"the catalog refused {self._subject}: {answer.reason}; nothing was published")
        return answer

    def _look(self) -> TableMetadata:
        return self.target.look(self.snapshot.table_uuid, f"publishing {self._subject}")

    def _find(self, metadata: TableMetadata) -> Landed | None:
        """Whether one of this publisher's own attempts is in the table after all."""
        found = metadata.snapshot_by_id(self.snapshot.snapshot_id)
        if found is None:
            self._rule_out(metadata)
            return None
        if found.manifest_list not in self.written:
            self.unresolved.clear()  # the snapshot id is taken, so none of them can land any more
            raise AlreadyConsumed(
                f"{self._subject} is already consumed: another coordinator, or an earlier call that never heard of it, "
                "has published it; there is nothing left to do"
            )
        landed = self._landed(found.sequence_number or 0, found.manifest_list)
        return replace(landed, reply_lost=True)

    def _rule_out(self, metadata: TableMetadata) -> None:
        """Forget the attempts that cannot land any more, as the branch has moved past what they asserted.

        The reservation must still be there: an attempt that landed, and whose snapshot was expired since, removed it.
        """
        held = self.snapshot.reservation_key in metadata.properties
        head = asserted_head(metadata, self.snapshot.ref)
        self.unresolved = [plan for plan in self.unresolved if not held or plan.asserted_head == head]

    def finish(self, landed: Landed) -> Landed:
        """Remove the lists and manifests that the landed attempt does not use: no other can land any more."""
        spare = [path for path in self.written if path != landed.manifest_list]
        ours = [manifest.manifest_path for manifest in self.contribution.manifests]
        listed = self.written[landed.manifest_list]
        spare += [path for path in (*ours, *self._made) if path not in listed]
        return replace(landed, leftovers=self._remove(spare))

    @property
    def _made(self) -> list[str]:
        """The manifests that publishing itself wrote."""
        rewritten = self.replacement.written if self.replacement else []
        return rewritten + (self.merger.written if self.merger else [])

    @property
    def _kept(self) -> list[str]:
        """The files and manifests of the rows that an overwrite kept: of no use to anybody if it does not land."""
        if self.replacement is None or self.replacement.kept is None:
            return []
        return [*self.replacement.kept_files, *(each.manifest_path for each in self.replacement.kept.manifests)]

    def _remove(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Remove spare files; gives those that could not be, for that must not hide what became of the snapshot."""
        left = []
        for path in paths:
            try:
                delete_files(self.target.io, [path])
            except StorageFailed:
                left.append(path)
        return tuple(left)

    def last_look(self, answer: NotLanded | Unknown) -> Landed:
        """Raise what is to be said when no try is left; an attempt that landed in spite of its answer is found here."""
        landed = self._find(self._look())
        if landed is not None:
            return landed
        if self.unresolved:
            raise self._unknown(answer.reason)
        raise CommitConflict(
            f"{self._subject} was not published: another writer was first ({answer.reason}), {self.attempts} tries; "
            "the data files are kept, so publish again with the same descriptor, or cancel and sweep"
        )

    def proven(self, error: BadInput | NotLandedError) -> FrazilError:
        """This error where "not landed" holds for every attempt, and the lists removed; else that it is unknown."""
        if self.unresolved:
            return self._unknown(str(error))
        left = self._remove([*self.written, *self._made, *self._kept])
        if left:
            error.add_note(f"{len(left)} files could not be removed; a sweep will find them: {', '.join(left)}")
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
        if self.batch is not None:
            check_batch(metadata, self.batch, self.snapshot.name)
        check_reservation(metadata, self.snapshot, self.clock_ms())
        if head_of(metadata, self.snapshot.ref) != self.snapshot.parent_snapshot_id and self._must_not_rebase:
            raise CommitConflict(
                f"{self._subject} was not published: branch {self.snapshot.ref!r} has moved since it was begun, and "
                f"{self._must_not_rebase}; begin again on the new state"
            )

    @property
    def _must_not_rebase(self) -> str:
        """Why this commit may only follow the snapshot it was begun on; empty where it may follow any."""
        if self.contribution.adds_deletes:
            return "deletes must not meet rows that they have not seen"
        return "its conflict policy is to abort" if self.conflict == "abort" else ""

    def _manifests(self, metadata: TableMetadata) -> list[ManifestFile]:
        carried = live_manifests(self.target.io, metadata, head_of(metadata, self.snapshot.ref))
        if self.replacement is not None:
            self.removal = self.replacement.removal(metadata, carried)
            carried = list(self.removal.manifests)
        if self.merger is None:
            self.merger = ManifestMerger.for_table(self.target.io, metadata, self.snapshot, self.first_attempt)
        return self.merger.merge(metadata, self.contribution.manifests, carried)

    def _landed(self, sequence_number: int, manifest_list: str) -> Landed:
        return Landed(
            table=self.snapshot.name,
            snapshot_id=self.snapshot.snapshot_id,
            sequence_number=sequence_number,
            manifest_list=manifest_list,
            attempts=self.attempts,
        )
