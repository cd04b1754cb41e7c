"""The end of a batch, with two drivers that run one query by mistake."""

from __future__ import annotations

from pyiceberg.table import Table

import frazil
from frazil.snapshot.batch_progress import NumberedBatch, commits_of_query, uuids_of_query
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.reservation import begin_snapshot
from frazil.spark.stream_commit import BatchCommit
from lakes import Lake, ids, write

FIRST, SECOND = NumberedBatch("query", 0), NumberedBatch("query", 1)


def reserve(table: Table) -> DistributedSnapshot:
    return begin_snapshot(table, new_uuid=uuids_of_query("query"))


def commit(table: Table, snapshot: DistributedSnapshot, batch: NumberedBatch, *numbers: int) -> bool:
    ending = BatchCommit(table, snapshot, batch)
    report = write(table, snapshot, *numbers)
    landed = ending.publish([report], replace=False, abort_on_conflict=False)
    if landed:
        ending.sweep_leftovers(of_losers=False)
    return landed


def test_a_batch_that_lands_sweeps_what_was_reserved_before_it(lake: Lake) -> None:
    table = lake.table()
    killed = reserve(table)
    write(table, killed, 1)
    assert commit(table, reserve(table), FIRST, 1)
    assert ids(table) == [1] and lake.orphans(table) == set()
    assert commits_of_query(table.metadata, "query") == []


def test_a_driver_that_is_late_leaves_the_one_ahead_of_it_alone(lake: Lake) -> None:
    table, other = lake.table(), lake.catalog.load_table("db.t")
    late = reserve(table)
    late_report = write(table, late, 1)
    assert commit(other, reserve(other), FIRST, 1)  # sweeps the late one's reservation and files
    ahead = reserve(other)
    ahead_report = write(other, ahead, 2)
    later = reserve(table)
    assert not commit(table, later, FIRST, 1)
    frazil.publish_snapshot(other, ahead, [ahead_report], batch=SECOND)
    assert ids(lake.again(table)) == [1, 2]
    assert late_report.rows == 1 and lake.orphans(table) == set()


def test_a_batch_without_rows_leaves_no_reservation_and_no_mark(lake: Lake) -> None:
    table = lake.table()
    BatchCommit(table, reserve(table), FIRST).give_back()
    table = lake.again(table)
    assert commits_of_query(table.metadata, "query") == [] and table.metadata.snapshots == []
