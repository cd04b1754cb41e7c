"""`frazil ingest postgresql://…`: tables of a real database land whole, as of one instant, and nothing secret stays."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from commands import Frazil, Patient, Ran, said_once
from databases import Database
from frazil.testing import crash_environment
from lakes import referenced
from readers import read_with_duckdb, read_with_pyiceberg
from services.processes import wait_until


def test_a_table_lands_with_every_row_and_its_schema(frazil: Frazil, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, price numeric(12, 2) NOT NULL, note text)",
        "COMMENT ON COLUMN orders.note IS 'what the customer said'",
        "INSERT INTO orders SELECT i, i * 1.25, CASE WHEN i % 3 > 0 THEN 'note ' || i END FROM generate_series(1, 20000) i",
    )
    ran = frazil.here("ingest", database.url, "--tables", "public.orders", "db.orders", "--root", frazil.root, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert (ran.document["outcome"], ran.document["rows"]) == ("landed", 20000)
    table = frazil.table("db.orders")
    schema = table.schema()
    assert schema.identifier_field_names() == {"id"}
    assert [(field.name, field.required, field.doc) for field in schema.fields] == [
        ("id", True, None),
        ("price", True, None),
        ("note", False, "what the customer said"),
    ]
    expected = sorted(database.run("SELECT id, price, note FROM orders"))
    for read in (read_with_duckdb, read_with_pyiceberg):
        found = read(table).sort_by("id")
        assert list(zip(*(found[name].to_pylist() for name in ("id", "price", "note")), strict=True)) == expected


def test_tables_of_a_schema_land_in_one_run_each_under_its_own_name(frazil: Frazil, database: Database) -> None:
    database.run(
        "CREATE TABLE a (id int PRIMARY KEY)",
        "CREATE TABLE b (id int PRIMARY KEY)",
        "CREATE TABLE empty (id int PRIMARY KEY)",
        "CREATE VIEW not_a_table AS SELECT * FROM a",
        "INSERT INTO a SELECT generate_series(1, 10)",
        "INSERT INTO b SELECT generate_series(1, 20)",
    )
    ran = frazil.here("ingest", database.url, "--tables", "public.*", "lake", "--root", frazil.root)
    assert ran.code == 0, ran.err
    assert (frazil.rows("lake.a"), frazil.rows("lake.b"), frazil.rows("lake.empty")) == (10, 20, 0)
    assert not frazil.catalog.table_exists("lake.not_a_table")
    assert "table by table: this catalog has no commit over several tables" in ran.out


def three_tables(database: Database) -> Database:
    database.run(
        "CREATE TABLE a (id int PRIMARY KEY, pad text)",
        "CREATE TABLE b (id int PRIMARY KEY, pad text)",
        "CREATE TABLE c (id int PRIMARY KEY, pad text)",
        *(f"INSERT INTO {name} SELECT i, repeat('x', 500) FROM generate_series(1, 3000) i" for name in "abc"),
    )
    return database


def add_to_each(database: Database) -> None:
    database.run(*(f"INSERT INTO {name} SELECT i, '' FROM generate_series(3001, 3010) i" for name in "abc"))


def begin(frazil: Frazil, url: str, step: str, nth: int, **environment: str) -> Ran:
    options = ["--root", frazil.root, "--master", "local[2]", "--shard-size", "300000"]
    return frazil.run(
        "ingest",
        url,
        "--tables",
        "public.*",
        "lake",
        *options,
        environment={**crash_environment(step, nth=nth), **environment},
    )


def counts(frazil: Frazil) -> list[int]:
    return [frazil.rows(f"lake.{name}") for name in "abc"]


def clean(frazil: Frazil) -> bool:
    """Whether every file belongs to a table, and no table holds a reservation."""
    known = set().union(*(referenced(frazil.table(f"lake.{name}")) for name in "abc"))
    return frazil.stored() == known and not any(frazil.reserved(f"lake.{name}") for name in "abc")


def run_of(frazil: Frazil) -> str:
    """The run that the newest job belongs to."""
    return frazil.job().partition(".")[0]


@pytest.mark.slow
def test_a_run_killed_while_writing_reads_everything_anew_at_one_later_instant(
    frazil: Frazil, database: Database
) -> None:
    killed = begin(frazil, three_tables(database).url, "job:report-stored", 3)
    assert (killed.code, counts(frazil)) == (-signal.SIGKILL, [0, 0, 0])
    add_to_each(database)
    resumed = frazil.run("ingest", "--resume", run_of(frazil), "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.document["started_over"] is True
    assert counts(frazil) == [3010, 3010, 3010]
    assert clean(frazil)
    again = frazil.here("ingest", "--resume", run_of(frazil), "--json")
    assert (again.code, again.document["rows"], counts(frazil)) == (0, 9030, [3010, 3010, 3010])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "nth", "landed"), [("job:finished", 1, 0), ("publish:list-written", 2, 1), ("publish:committed", 2, 2)]
)
def test_a_run_killed_while_publishing_publishes_the_rest_of_the_same_instant(
    frazil: Frazil, database: Database, step: str, nth: int, landed: int
) -> None:
    killed = begin(frazil, three_tables(database).url, step, nth)
    assert killed.code == -signal.SIGKILL
    assert counts(frazil) == [3000] * landed + [0] * (3 - landed)
    add_to_each(database)
    resumed = frazil.here("ingest", "--resume", frazil.job(), "--json")  # of one table, for all
    assert resumed.code == 0, resumed.err
    assert resumed.document["started_over"] is False
    assert (counts(frazil), clean(frazil)) == ([3000, 3000, 3000], True)
    assert all(len(frazil.table(f"lake.{name}").metadata.snapshots) == 1 for name in "abc")


PASSWORD = "correct-horse-battery"


@pytest.fixture
def guarded(database: Database) -> Iterator[str]:
    """The address, without its password, of a database that asks this role for one."""
    ((path,),) = database.run("SHOW hba_file")
    hba = Path(path)
    before, role = hba.read_text(), f"reader_{database.name}"
    hba.write_text(f"local all {role} scram-sha-256\nhost all {role} all scram-sha-256\n{before}")
    database.run(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'", "SELECT pg_reload_conf()")
    three_tables(database).run(f"GRANT pg_read_all_data TO {role}")
    wait_until(lambda: not lets_in_without_password(database, role), Patient(), 30)
    yield database.url.replace("postgres:@", f"{role}@")
    hba.write_text(before)
    database.run("SELECT pg_reload_conf()", f"DROP ROLE {role}")


def lets_in_without_password(database: Database, role: str) -> bool:
    try:
        database.connect(user=role).close()
    except psycopg.OperationalError:
        return False
    return True


def files_with(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_password_is_in_no_file_and_no_message_whatever_becomes_of_the_run(frazil: Frazil, guarded: str) -> None:
    scratch = frazil.home / "scratch"
    scratch.mkdir()
    with_password = guarded.replace("@", f":{PASSWORD}@", 1)
    killed = begin(frazil, with_password, "job:report-stored", 2, TMPDIR=str(scratch))
    assert killed.code == -signal.SIGKILL
    assert files_with(frazil.home, PASSWORD) == []
    refused = frazil.here("ingest", "--resume", run_of(frazil), "--json")
    assert refused.code == 2
    assert "PGPASSWORD" in refused.document["message"]
    wrong = frazil.here("ingest", "--resume", run_of(frazil), guarded.replace("@", ":not-the-one@", 1), "--json")
    assert wrong.code == 2
    assert "not-the-one" not in wrong.err + wrong.out
    resumed = frazil.run("ingest", "--resume", run_of(frazil), environment={"PGPASSWORD": PASSWORD})
    assert resumed.code == 0, resumed.err
    assert counts(frazil) == [3000, 3000, 3000]
    assert files_with(frazil.home, PASSWORD) == files_with(frazil.home, "not-the-one") == []


BAD: dict[str, tuple[list[str], int, str]] = {
    "no tables": (["db.t"], 2, "--tables"),
    "tables and a query": (["--tables", "a", "--query", "SELECT 1", "db.t"], 2, "either"),
    "a table that is not there": (["--tables", "public.nothing", "db.t"], 2, "--tables public.nothing"),
    "an option that is not known": (["--tables", "a", "--option", "fetch=1", "db.t"], 2, "has no option fetch"),
    "a query that is none": (["--query", "SELECT FROM nowhere", "db.t"], 1, '"nowhere" does not exist'),
    "two columns of one name": (["--query", "SELECT 1 AS x, 2 AS x", "db.t"], 2, "'x'"),
    "two tables of one name": (["--tables", "public.a,other.a", "db"], 2, "public.a would both become db.a"),
    "a column that no decimal holds": (["--query", "SELECT 'NaN'::numeric(5,2) AS x", "db.t"], 1, "holds NaN"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_ingested_is_told_in_one_sentence_and_leaves_nothing(
    frazil: Frazil, database: Database, case: str
) -> None:
    options, code, words = BAD[case]
    three_tables(database).run("CREATE SCHEMA other", "CREATE TABLE other.a (id int)")
    ran = frazil.here("ingest", database.url, *options, "--root", frazil.root, "--json")
    assert ran.code == code, ran.err
    assert words in said_once(ran)
    assert frazil.stored() == set()


def test_a_table_that_may_not_be_read_is_named_before_anything_is_written(frazil: Frazil, database: Database) -> None:
    role = f"limited_{database.name}"
    three_tables(database).run(f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON a, c TO {role}")
    url = database.url.replace("postgres:@", f"{role}@")
    try:
        ran = frazil.here("ingest", url, "--tables", "public.*", "lake", "--root", frazil.root, "--json")
        assert ran.code == 1
        assert "permission denied for table b" in said_once(ran)
        assert frazil.stored() == set()
        spared = frazil.here("ingest", url, "--tables", "public.*,!public.b", "lake", "--root", frazil.root, "--json")
        assert (spared.code, list(spared.document["tables"])) == (0, ["public.a", "public.c"])
    finally:
        database.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_server_that_is_not_there_is_told_in_one_sentence(frazil: Frazil) -> None:
    url = f"postgresql://reader@/shop?host={frazil.home}"
    ran = frazil.here("ingest", url, "--tables", "a", "db.t", "--root", frazil.root, "--json")
    assert ran.code == 2
    assert "cannot be reached" in said_once(ran)


def test_an_instant_that_ends_while_tables_are_read_leaves_none_of_them(frazil: Frazil, database: Database) -> None:
    """Reading the first of them ends the session that holds the snapshot, as a restart of the server would."""
    three_tables(database).run(
        "CREATE FUNCTION end_the_instant() RETURNS boolean LANGUAGE sql AS $$ SELECT bool_or(pg_terminate_backend(pid, 5000)) "
        "FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction' $$",
        "CREATE VIEW a0 AS SELECT end_the_instant() AS ended",
    )
    ran = frazil.here("ingest", database.url, "--tables", "a0,b,c", "lake", "--root", frazil.root, "--json")
    assert (ran.code, ran.document["outcome"]) == (1, "not landed")
    assert "the PostgreSQL snapshot that all shards of table public.b share has ended" in said_once(ran)
    assert frazil.stored() == set()
    again = frazil.here("ingest", "--resume", run_of(frazil), "--json")
    assert again.code == 2
    assert "is over (failed" in again.document["message"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the server, which runs as another user, can write to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_a_task_whose_connection_breaks_is_tried_again_at_the_same_instant(
    frazil: Frazil, database: Database, open_folder: Path
) -> None:
    mark = open_folder / "broken-once"
    database.run(
        "CREATE FUNCTION break_once() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
        f"IF pg_stat_file('{mark}', true) IS NULL THEN COPY (SELECT 1) TO '{mark}'; "
        "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); END IF; RETURN 1; END $$",
        "CREATE VIEW fragile AS SELECT break_once() AS id",
    )
    ran = frazil.here("ingest", database.url, "--tables", "fragile", "lake.t", "--root", frazil.root, "--json")
    assert (ran.code, mark.exists()) == (0, True), ran.err
    assert (frazil.rows("lake.t"), frazil.orphans("lake.t")) == (1, set())


def test_a_connection_that_breaks_every_time_is_told_in_one_sentence(frazil: Frazil, database: Database) -> None:
    database.run(
        "CREATE FUNCTION break() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN true; END $$",
        "CREATE VIEW broken AS SELECT break()",
    )
    ran = frazil.here("ingest", database.url, "--tables", "broken", "lake.t", "--root", frazil.root, "--json")
    assert ran.code == 1
    assert "the connection to PostgreSQL broke while table public.broken was read" in ran.document["message"]
    assert frazil.stored() == set()


def test_a_query_lands_in_the_table_that_is_named(frazil: Frazil, database: Database) -> None:
    query = "SELECT id % 10 AS digit, count(*) AS many FROM a GROUP BY 1"
    ran = frazil.here(
        "ingest", three_tables(database).url, "--query", query, "db.digits", "--root", frazil.root, "--json"
    )
    assert (ran.code, ran.document["rows"]) == (0, 10), ran.err
    assert sum(read_with_duckdb(frazil.table("db.digits"))["many"].to_pylist()) == 3000


def test_an_overwrite_replaces_the_rows_by_those_of_the_instant(frazil: Frazil, database: Database) -> None:
    arguments = ["ingest", three_tables(database).url, "--tables", "a,b", "lake", "--root", frazil.root]
    assert frazil.here(*arguments).code == 0
    add_to_each(database)
    assert frazil.here(*arguments, "--mode", "overwrite").code == 0
    assert [frazil.rows("lake.a"), frazil.rows("lake.b")] == [3010, 3010]


@pytest.mark.slow
def test_on_a_catalog_that_can_all_tables_become_visible_at_one_instant(
    frazil: Frazil, database: Database, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("services.frazil_catalog", reason="the catalog server is a part of its own")
    server = request.getfixturevalue("frazil_catalog")
    environment = {"PYICEBERG_CATALOG__SERVER__URI": server.uri, "PYICEBERG_CATALOG__SERVER__WAREHOUSE": "frazil"}
    namespace = server.new_namespace()
    arguments = ["ingest", three_tables(database).url, "--tables", "public.*", namespace, "--catalog", "server"]
    ran = frazil.run(*arguments, environment=environment)
    assert ran.code == 0, ran.err
    assert "all tables became visible at one instant" in ran.out
    client = server.catalog()
    tables = [client.load_table(f"{namespace}.{name}") for name in "abc"]
    assert [table.scan().to_arrow().num_rows for table in tables] == [3000] * 3


@pytest.mark.slow
def test_ctrl_c_while_the_database_is_slow_leaves_nothing(frazil: Frazil, database: Database) -> None:
    database.run("CREATE VIEW slow AS SELECT pg_sleep(30)::text AS nothing")
    process = frazil.start("ingest", database.url, "--tables", "slow", "lake.t", "--root", frazil.root)
    wait_until(lambda: "writing public.slow" in frazil.said(), process, 120)
    os.kill(process.pid, signal.SIGINT)
    ran = frazil.ended(process)
    assert ran.code == 1
    assert "frazil: the run was stopped; nothing was published" in ran.err
    assert (frazil.stored(), frazil.catalog.table_exists("lake.t")) == (set(), False)
