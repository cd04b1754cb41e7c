"""`frazil ingest postgresql://…`: tables of a real database land whole, as of one instant, and nothing secret stays."""

from __future__ import annotations

from commands import Frazil
from databases import Database
from readers import read_with_duckdb, read_with_pyiceberg


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
