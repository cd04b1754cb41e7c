"""Shards of a PostgreSQL table hold every row once, all of one instant, whatever happens to the table meanwhile."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pyarrow as pa
import pytest

from commands import Patient
from databases import Database, rows_of
from frazil.errors import SourceInterrupted, SourceNotFound, SourceUnreadable
from frazil.sources.open import shard_from_document
from frazil.sources.postgres import PostgresShard, PostgresSource, block_ranges
from frazil.sources.postgres_address import PostgresAddress
from frazil.sources.postgres_snapshot import HeldSnapshot, held_snapshot
from frazil.sources.postgres_tables import find_tables
from frazil.sources.postgres_types import TypeOptions
from services.processes import wait_until


@contextmanager
def held(database: Database, tables: str = "public.t") -> Iterator[HeldSnapshot]:
    with held_snapshot(PostgresAddress.parse(database.url), tables) as snapshot:
        yield snapshot


def shards_of(snapshot: HeldSnapshot, count: int) -> list[PostgresShard]:
    return PostgresSource.table(snapshot, snapshot.tables[0], TypeOptions()).shards(count)


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


def filled(database: Database, rows: int = 20_000) -> Database:
    """A table of many blocks, with rows deleted, updated (so moved) and vacuumed away."""
    database.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL, pad text) WITH (autovacuum_enabled = false)",
        f"INSERT INTO t SELECT i, 0, repeat('x', 100) FROM generate_series(1, {rows}) i",
        "DELETE FROM t WHERE id % 7 = 0",
        "VACUUM t",
        "UPDATE t SET n = 1 WHERE id % 3 = 0",
        "DELETE FROM t WHERE id BETWEEN 5000 AND 6000",
    )
    return database


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_the_shards_hold_every_row_once(database: Database, count: int) -> None:
    expected = sorted(row[0] for row in filled(database).run("SELECT id FROM t"))
    with held(database) as snapshot:
        shards = shards_of(snapshot, count)
        assert ids(rows_of(shards, snapshot.address)) == expected
    assert len({shard.name for shard in shards}) == len(shards) == count


def test_a_table_has_no_more_shards_than_blocks(database: Database) -> None:
    filled(database, 1000)
    ((blocks,),) = database.run("SELECT pg_relation_size('t') / 8192")
    with held(database) as snapshot:
        shards = shards_of(snapshot, 1_000_000)
        assert len(shards) == blocks
        assert rows_of(shards, snapshot.address).num_rows == len(database.run("SELECT id FROM t"))


def test_a_shard_gives_the_same_rows_in_the_same_order_each_time(database: Database) -> None:
    with held(filled(database)) as snapshot:
        shard = shards_of(snapshot, 3)[1]
        again = pickle.loads(pickle.dumps(shard))
        noted = shard_from_document(shard.name, shard.to_document())
        first = rows_of([shard], snapshot.address)
        assert first.num_rows > 1000
        for each in (shard, again, noted):
            assert rows_of([each], snapshot.address).equals(first)


def test_shards_read_one_instant_of_a_table_that_is_written_to(database: Database) -> None:
    """Money moves between accounts all the time; at every single instant the sum is the same."""
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, balance int NOT NULL)",
        "INSERT INTO t SELECT i, 100 FROM generate_series(1, 5000) i",
    )
    stop, moved = threading.Event(), []

    def move() -> None:
        with database.connect() as connection:
            while not stop.is_set():
                giver, taker = random.sample(range(1, 5001), 2)
                with connection.transaction():
                    connection.execute("UPDATE t SET balance = balance - 1 WHERE id = %s", [giver])
                    connection.execute("UPDATE t SET balance = balance + 1 WHERE id = %s", [taker])
                    connection.execute(f"INSERT INTO t VALUES ({10_000 + len(moved)}, 0)")
                moved.append(1)

    writer = threading.Thread(target=move)
    writer.start()
    try:
        wait_until(lambda: len(moved) > 100, Patient(), 60)
        with held(database) as snapshot:
            expected = snapshot.connection.execute("SELECT count(*), sum(balance)::int FROM t").fetchone()
            shards = shards_of(snapshot, 8)
            found = []
            for shard in shards:
                before = len(moved)
                wait_until(lambda before=before: len(moved) > before + 50, Patient(), 60)
                found.append(rows_of([shard], snapshot.address))
            rows = pa.concat_tables(found)
    finally:
        stop.set()
        writer.join()
    assert len(shards) > 3
    assert (rows.num_rows, sum(rows["balance"].to_pylist())) == expected == (expected[0], 500_000)
    assert database.run("SELECT count(*) FROM t")[0][0] > expected[0] + 100


def test_rows_that_are_deleted_and_vacuumed_after_the_instant_are_still_read(database: Database) -> None:
    expected = sorted(row[0] for row in filled(database).run("SELECT id FROM t"))
    with held(database) as snapshot:
        shards = shards_of(snapshot, 4)
        database.run("DELETE FROM t", "VACUUM t", "INSERT INTO t SELECT i, 5, '' FROM generate_series(1, 9000) i")
        assert ids(rows_of(shards, snapshot.address)) == expected


@pytest.mark.parametrize("change", ["DROP TABLE t", "TRUNCATE t", "ALTER TABLE t ALTER n TYPE bigint", "VACUUM FULL t"])
def test_what_would_take_the_rows_away_waits_for_the_last_shard(database: Database, change: str) -> None:
    filled(database)
    impatient = database.connect(options="-c lock_timeout=100")
    with held(database), impatient, pytest.raises(psycopg.errors.LockNotAvailable):
        impatient.execute(change)  # type: ignore[call-overload]
    database.run(change)


def test_partitions_are_cut_together_and_read_through_their_root(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int, day date) PARTITION BY RANGE (day)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')",
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM ('2024-02-01') TO ('2024-03-01') PARTITION BY HASH (id)",
        "CREATE TABLE t2a PARTITION OF t2 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE t2b PARTITION OF t2 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "INSERT INTO t SELECT i, '2024-01-01'::date + i % 60 FROM generate_series(1, 20000) i",
    )
    with held(database) as snapshot:
        shards = shards_of(snapshot, 4)
        assert len(shards) == 4
        assert ids(rows_of(shards, snapshot.address)) == list(range(1, 20001))


def test_inherited_rows_are_read_through_the_parent_once(database: Database) -> None:
    database.run(
        "CREATE TABLE t (id int)",
        "CREATE TABLE child (more text) INHERITS (t)",
        "INSERT INTO t SELECT generate_series(1, 100)",
        "INSERT INTO child SELECT generate_series(101, 20000)",
    )
    with held(database) as snapshot:
        shards = shards_of(snapshot, 4)
        assert len(shards) == 4
        assert ids(rows_of(shards, snapshot.address)) == list(range(1, 20001))


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_a_view_is_read_when_it_is_named(database: Database, kind: str) -> None:
    filled(database).run(f"CREATE {kind} v AS SELECT id FROM t WHERE n = 1")
    with held(database, "v") as snapshot:
        shards = shards_of(snapshot, 4)
        assert len(shards) == (1 if kind == "VIEW" else 4)
        assert ids(rows_of(shards, snapshot.address)) == sorted(row[0] for row in database.run("SELECT id FROM v"))


def test_an_empty_table_is_one_shard_without_rows(database: Database) -> None:
    database.run("CREATE TABLE t (id int)")
    with held(database) as snapshot:
        (shard,) = shards_of(snapshot, 8)
        assert list(shard.batches({})) == []


def test_names_that_need_quotes_are_quoted(database: Database) -> None:
    table = '"My ""own"""."select"'
    database.run('CREATE SCHEMA "My ""own"""', f'CREATE TABLE {table} ("Order %s" int, "a""b" text)')
    database.run(f"INSERT INTO {table} VALUES (1, 'x')")
    assert database.read('My "own".select').to_pylist() == [{"Order %s": 1, 'a"b': "x"}]


def test_columns_that_were_dropped_or_are_generated_make_no_difference(database: Database) -> None:
    database.run(
        "CREATE TABLE t (gone text, id int, twice int GENERATED ALWAYS AS (id * 2) STORED)",
        "ALTER TABLE t DROP COLUMN gone",
        "INSERT INTO t VALUES (21)",
    )
    assert database.read().to_pylist() == [{"id": 21, "twice": 42}]


def test_a_query_is_a_source_of_one_shard(database: Database) -> None:
    filled(database)
    with held_snapshot(PostgresAddress.parse(database.url), None) as snapshot:
        query = "SELECT n, count(*) AS rows, max(id)::numeric(8, 1) AS last FROM t GROUP BY n;  "
        source = PostgresSource.query(snapshot, query, TypeOptions())
        assert source.schema().field("last").type == pa.decimal128(8, 1)
        rows = rows_of(source.shards(8), snapshot.address).sort_by("n").to_pylist()
    expected = database.run("SELECT n, count(*), max(id) FROM t GROUP BY n ORDER BY n")
    assert [(row["n"], row["rows"], int(row["last"])) for row in rows] == expected


def test_patterns_find_tables_and_leave_out_what_is_marked(database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id int)",
        "CREATE TABLE order_lines (id int)",
        "CREATE TABLE log_a (id int) PARTITION BY LIST (id)",
        "CREATE TABLE log_a1 PARTITION OF log_a FOR VALUES IN (1)",
        "CREATE VIEW seen AS SELECT 1 AS id",
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id int)",
    )

    def found(patterns: str) -> list[str]:
        with database.connect() as connection:
            return [str(table) for table in find_tables(connection, patterns)]

    assert found("public.*") == ["public.log_a", "public.order_lines", "public.orders"]
    assert found("*.orders") == ["public.orders", "sales.orders"]
    assert found("public.*,!public.log_*") == ["public.order_lines", "public.orders"]
    assert found("orders, sales.orders") == ["public.orders", "sales.orders"]
    assert found("seen,log_a1") == ["public.log_a1", "public.seen"]
    for nothing in ("public.nothing", "nope.*", "orders,public.nothing", "orders,!orders"):
        with pytest.raises(SourceNotFound, match="--tables"):
            found(nothing)


def test_a_shard_says_that_its_snapshot_has_ended(database: Database) -> None:
    with held(filled(database)) as snapshot:
        (shard,) = shards_of(snapshot, 1)
    with pytest.raises(SourceUnreadable, match=r"snapshot that all shards of table public\.t share has ended"):
        list(shard.batches({}))


def test_a_connection_that_breaks_while_rows_come_is_an_error_that_another_try_may_mend(database: Database) -> None:
    filled(database, 300_000)
    with held(database) as snapshot:
        (shard,) = shards_of(snapshot, 1)
        batches = shard.batches({})
        next(batches)
        database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND state = 'active' AND query ILIKE '%copy%' AND pid <> pg_backend_pid()"
        )
        with pytest.raises(SourceInterrupted, match=r"broke while table public\.t was read"):
            list(batches)
        assert sum(batch.num_rows for batch in shard.batches({})) > 200_000


def test_a_statement_timeout_says_how_it_is_raised(database: Database) -> None:
    filled(database, 300_000).run(f"ALTER DATABASE {database.name} SET statement_timeout = '20ms'")
    with held(database) as snapshot:
        (shard,) = shards_of(snapshot, 1)
        with pytest.raises(SourceUnreadable, match="raise statement_timeout"):
            list(shard.batches({}))


@pytest.mark.parametrize(
    ("blocks", "count", "ranges"),
    [
        ([], 4, [(0, None)]),
        ([0], 4, [(0, None)]),
        ([1], 4, [(0, None)]),
        ([100], 4, [(0, 25), (25, 50), (50, 75), (75, None)]),
        ([3], 8, [(0, 1), (1, 2), (2, None)]),
        ([100, 100], 2, [(0, 50), (50, None)]),
        ([10, 190], 2, [(0, 90), (90, None)]),
    ],
)
def test_ranges_share_the_blocks_of_all_parts_evenly(
    blocks: list[int], count: int, ranges: list[tuple[int, int | None]]
) -> None:
    assert block_ranges(blocks, count) == ranges
