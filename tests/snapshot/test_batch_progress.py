from __future__ import annotations

import pytest

import frazil
from frazil.errors import BadInput, BatchAlreadyLanded
from frazil.snapshot.batch_progress import NumberedBatch, check_batch, commits_of_query, last_batch, uuids_of_query
from frazil.snapshot.publish_snapshot import publish_snapshot
from frazil.snapshot.reservation import begin_snapshot
from lakes import Lake, append, ids, write

FIRST, SECOND = NumberedBatch("query", 0), NumberedBatch("query", 1)


def test_a_batch_is_published_once_and_its_number_is_in_the_table_and_in_the_summary(any_lake: Lake) -> None:
    table = any_lake.table()
    for batch, number in ((FIRST, 1), (FIRST, 2), (SECOND, 3)):
        snapshot = begin_snapshot(table)
        report = write(table, snapshot, number)
        try:
            publish_snapshot(table, snapshot, [report], batch=batch)
        except BatchAlreadyLanded as error:
            assert number == 2 and "batch 0 of query query is in table" in str(error)
            frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert ids(any_lake.again(table)) == [1, 3]
    assert last_batch(any_lake.again(table).metadata, "query") == 1
    assert [s.summary["frazil.batch-id"] for s in table.metadata.snapshots if s.summary] == ["0", "1"]
    assert any_lake.orphans(table) == set()


def test_of_two_coordinators_with_one_batch_one_lands(lake: Lake) -> None:
    table, other = lake.table(), lake.catalog.load_table("db.t")
    mine, theirs = begin_snapshot(table), begin_snapshot(other)
    publish_snapshot(other, theirs, [write(other, theirs, 1)], batch=FIRST)
    with pytest.raises(BatchAlreadyLanded):
        publish_snapshot(table, mine, [write(table, mine, 1)], batch=FIRST)
    assert ids(table) == [1]


def test_batches_of_other_queries_and_plain_appends_do_not_hinder(lake: Lake) -> None:
    table = lake.table()
    append(table, 1)
    for batch in (NumberedBatch("one", 5), NumberedBatch("two", 5)):
        snapshot = begin_snapshot(table)
        publish_snapshot(table, snapshot, [write(table, snapshot, 2)], batch=batch)
    assert ids(table) == [1, 2, 2]


def test_a_later_batch_stands_for_all_before_it(lake: Lake) -> None:
    table = lake.table()
    snapshot = begin_snapshot(table)
    publish_snapshot(table, snapshot, [write(table, snapshot, 1)], batch=NumberedBatch("query", 7))
    check_batch(table.metadata, NumberedBatch("query", 8), "db.t")
    with pytest.raises(BatchAlreadyLanded, match="its last one there is 7"):
        check_batch(table.metadata, NumberedBatch("query", 3), "db.t")


def test_a_number_that_is_none_is_refused_with_what_to_do(lake: Lake) -> None:
    table = lake.table(**{"frazil.batch.query": "many"})
    with pytest.raises(BadInput, match=r"frazil\.batch\.query is 'many'"):
        last_batch(table.metadata, "query")


def test_the_reservations_of_a_query_are_found_again(lake: Lake) -> None:
    table = lake.table()
    begin_snapshot(table)
    first = begin_snapshot(table, new_uuid=uuids_of_query("query"))
    second = begin_snapshot(table, new_uuid=uuids_of_query("query"))
    begin_snapshot(table, new_uuid=uuids_of_query("another"))
    frazil.cancel(table, second)
    assert sorted(commits_of_query(table.metadata, "query")) == sorted([first.commit_uuid, second.commit_uuid])
    assert first.snapshot_id != second.snapshot_id and first.commit_uuid != second.commit_uuid
