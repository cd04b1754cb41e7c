"""The sink's driver side without Spark: what it commits, and what it leaves when a commit goes wrong."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

import frazil
from frames import FrameLake
from frazil.errors import StorageFailed
from frazil.snapshot.storage import file_io
from frazil.snapshot.warehouse import EmbeddedCatalog
from frazil.spark import write
from frazil.spark.options import WriteOptions
from frazil.spark.write import BatchWriter, batch_writer
from frazil.spark.write_task import ShardWritten, attempts_mark, has_mark
from frazil.testing import FaultyCatalog

ROWS = StructType().add("id", LongType(), nullable=False).add("text", StringType())


@pytest.fixture
def frames(tmp_path: Path) -> FrameLake:
    """An empty lake."""
    return FrameLake(tmp_path / "lake")


def writer(frames: FrameLake, *, overwrite: bool = False, **options: str) -> BatchWriter:
    """A writer as the driver's second process gets it."""
    given = {"path": "db.t", "root": str(frames.root), **{key.replace("_", "-"): v for key, v in options.items()}}
    made = batch_writer(WriteOptions.parse(given, overwrite=overwrite), ROWS)
    copied: BatchWriter = pickle.loads(pickle.dumps(made))
    return copied


def message(of: BatchWriter, *ids: int, shard: int = 0, attempt: int = 0, retried: bool = False) -> ShardWritten:
    """What a task sends for these rows."""
    rows = (
        [pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array([f"row {each}" for each in ids])})] if ids else []
    )
    report = frazil.write_shard(of.snapshot, f"part-{shard:05d}", rows, attempt=attempt)
    sent: ShardWritten = pickle.loads(pickle.dumps(ShardWritten.of(report, retried=retried)))
    return sent


def faulty(monkeypatch: pytest.MonkeyPatch, frames: FrameLake) -> FaultyCatalog:
    catalog = EmbeddedCatalog(frames.root)
    monkeypatch.setattr(write, "open_catalog", lambda _: catalog)
    return FaultyCatalog(catalog)


def test_what_the_tasks_wrote_is_published_as_one_snapshot(frames: FrameLake) -> None:
    one = writer(frames)
    one.commit([message(one, 1, 2), message(one, 3, shard=1), message(one, shard=2)])
    assert frames.ids() == [1, 2, 3] and len(frames.table().metadata.snapshots) == 1
    assert frames.leftovers() == set()


def test_with_merge_schema_the_table_is_changed_first_so_that_the_rows_fit(frames: FrameLake) -> None:
    first = writer(frames)
    first.commit([message(first, 1)])
    wider = StructType().add("fare", DoubleType()).add("id", LongType())
    options = {"path": "db.t", "root": str(frames.root)}
    with pytest.raises(frazil.SchemaMismatch, match="has no column 'fare'"):
        batch_writer(WriteOptions.parse(options, overwrite=False), wider)
    one = batch_writer(WriteOptions.parse({**options, "Merge-Schema": "true"}, overwrite=False), wider)
    report = frazil.write_shard(one.snapshot, "part-0", [pa.table({"fare": [2.5], "id": [2]})])
    one.commit([ShardWritten.of(report, retried=False)])
    assert frames.ids() == [1, 2] and frames.rows()["fare"].to_pylist() in ([None, 2.5], [2.5, None])
    assert frames.leftovers() == set()


NARROW = [pa.table({"id": pa.array([1, 2, 2**40], pa.int64()), "text": ["a", "b", "c"]})]


def narrow_table(frames: FrameLake) -> None:
    catalog = EmbeddedCatalog(make(frames.root))
    catalog.create_namespace("db")
    catalog.create_table("db.t", pa.schema([("id", pa.int32()), ("text", pa.string())]))


def make(root: Path) -> Path:
    (root / "warehouse").mkdir(parents=True)
    return root


def test_rows_that_do_not_fit_land_beside_in_the_same_job(frames: FrameLake) -> None:
    narrow_table(frames)
    with pytest.raises(frazil.SchemaMismatch, match="does not fit table"):
        writer(frames)
    one = writer(frames, on_bad_row="reject")
    assert one.rejects is not None
    report = frazil.write_shard(one.snapshot, "part-0", NARROW, rejects=one.rejects.beside(one.snapshot))
    one.commit([ShardWritten.of(report, retried=False)])
    assert frames.ids() == [1, 2] and not frames.leftovers() & frames.leftovers("db.t__rejected")
    (rejected,) = frames.rows("db.t__rejected").to_pylist()
    assert "id" in rejected["reason"] and str(2**40) in rejected["row"]
    assert frames.table().current_snapshot().summary["frazil.rejected-rows"] == "1"  # type: ignore[union-attr, index]


def test_no_table_for_rejected_rows_stays_where_all_fit_or_the_write_fails(
    frames: FrameLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "_SECONDS_BETWEEN_LOOKS", 0.0)
    narrow_table(frames)
    one = writer(frames, on_bad_row="reject")
    report = frazil.write_shard(
        one.snapshot, "part-0", [NARROW[0].slice(0, 2)], rejects=one.rejects.beside(one.snapshot)
    )  # type: ignore[union-attr]
    one.commit([ShardWritten.of(report, retried=False)])
    assert frames.ids() == [1, 2] and not EmbeddedCatalog(frames.root).table_exists("db.t__rejected")
    two = writer(frames, on_bad_row="reject")
    frazil.write_shard(two.snapshot, "part-0", NARROW, rejects=two.rejects.beside(two.snapshot))  # type: ignore[union-attr]
    two.abort([None])
    assert not EmbeddedCatalog(frames.root).table_exists("db.t__rejected") and frames.leftovers() == set()


def test_rejected_rows_are_taken_back_where_the_others_do_not_land(frames: FrameLake) -> None:
    narrow_table(frames)
    one = writer(frames, overwrite=True, on_bad_row="reject")
    report = frazil.write_shard(one.snapshot, "part-0", NARROW, rejects=one.rejects.beside(one.snapshot))  # type: ignore[union-attr]
    rival = frazil.begin_snapshot(frames.table())
    fits = [pa.table({"id": pa.array([7], pa.int32())})]
    frazil.publish_snapshot(frames.table(), rival, [frazil.write_shard(rival, "r", fits)])
    with pytest.raises(frazil.CommitConflict):
        one.commit([ShardWritten.of(report, retried=False)])
    assert frames.ids() == [7]
    assert not EmbeddedCatalog(frames.root).table_exists("db.t__rejected") and frames.leftovers() == set()


def test_a_message_is_small(frames: FrameLake) -> None:
    one = writer(frames)
    assert len(pickle.dumps(message(one, *range(100)))) < 1000


def test_files_of_attempts_that_lost_are_swept(frames: FrameLake) -> None:
    one = writer(frames)
    message(one, 1, 2, attempt=7)
    one.commit([message(one, 1, 2, attempt=8, retried=True)])
    assert frames.ids() == [1, 2] and frames.leftovers() == set()


def test_a_mark_tells_of_an_attempt_that_lost_without_a_word(frames: FrameLake) -> None:
    one = writer(frames)
    message(one, 1, 2, attempt=8)
    accepted = message(one, 1, 2, attempt=7)
    assert not has_mark(one.snapshot)
    with file_io({}, one.snapshot.location).new_output(attempts_mark(one.snapshot)).create() as stream:
        stream.write(b"x")
    one.commit([accepted])
    assert frames.ids() == [1, 2] and frames.leftovers() == set()


def test_a_reply_that_was_lost_is_a_commit_all_the_same(frames: FrameLake, monkeypatch: pytest.MonkeyPatch) -> None:
    one = writer(frames)
    sent = [message(one, 1)]
    with faulty(monkeypatch, frames) as catalog:
        catalog.lose_reply()
        one.commit(sent)
    assert frames.ids() == [1] and frames.leftovers() == set()


def test_nothing_is_deleted_when_the_outcome_is_unknown_not_even_by_the_abort_that_follows(
    frames: FrameLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = writer(frames)
    with frames.table().transaction() as change:
        change.set_properties({"commit.retry.num-retries": "0"})
    sent = [message(one, 1)]
    before = frames.stored()
    with faulty(monkeypatch, frames) as catalog:
        catalog.fail_before()
        with pytest.raises(frazil.OutcomeUnknown):
            one.commit(sent)
        one.abort(sent)
    assert before <= frames.stored()
    frazil.publish_snapshot(frames.table(), one.snapshot, [frazil.Report.from_protobuf(sent[0].report)])
    assert frames.ids() == [1]


def test_a_conflict_leaves_nothing(frames: FrameLake) -> None:
    first = writer(frames)
    first.commit([message(first, 1)])
    one, rival = writer(frames, overwrite=True), writer(frames)
    sent = [message(one, 2)]
    rival.commit([message(rival, 3)])
    with pytest.raises(frazil.CommitConflict):
        one.commit(sent)
    one.abort(sent)
    assert frames.ids() == [1, 3] and frames.leftovers() == set()


def test_an_abort_leaves_neither_files_nor_a_table_that_the_write_made(
    frames: FrameLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "_SECONDS_BETWEEN_LOOKS", 0.0)
    one = writer(frames)
    one.abort([message(one, 1, 2), None])
    assert frames.stored() == set() and not EmbeddedCatalog(frames.root).table_exists("db.t")


def test_an_abort_looks_again_for_files_that_come_late(frames: FrameLake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = writer(frames)
    first.commit([message(first, 1)])
    one = writer(frames)
    late: list[Any] = [lambda: message(one, 5), lambda: message(one, 6, shard=1)]
    monkeypatch.setattr("frazil.spark.write.time.sleep", lambda _: late.pop()() if late else None)
    one.abort([None])
    assert late == [] and frames.ids() == [1] and frames.leftovers() == set()


def test_spare_files_that_cannot_be_removed_do_not_make_a_failure_of_what_landed(
    frames: FrameLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = writer(frames)
    sent = [message(one, 1, retried=True)]

    def refuse(*_: Any, **__: Any) -> None:
        raise StorageFailed("the folder cannot be listed")

    monkeypatch.setattr(write, "sweep", refuse)
    with pytest.warns(UserWarning, match=r"landed, but spare files could not be removed .*frazil sweep db\.t --commit"):
        one.commit(sent)
    assert frames.ids() == [1]
