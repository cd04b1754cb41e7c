"""What a PostgreSQL database has: the tables that patterns name, and each one's columns, key, comments and blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any

from frazil.errors import BadInput, SourceNotFound
from frazil.sources.postgres_types import Column, PostgresType, TypeOptions, column, quoted

_WILD = re.compile(r"[*?\[]")
_READABLE = "rpvmf"
_BY_PATTERN = "rp"
_RANGES_SINCE = 140000

_FIND = """
SELECT n.nspname, c.relname, c.relkind::text, c.relispartition
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = ANY(%s::"char"[]) AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
ORDER BY 1, 2
"""
_COLUMNS = """
SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, coalesce(pg_catalog.col_description(a.attrelid, a.attnum), '')
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname
FROM pg_catalog.pg_index i, pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
JOIN pg_catalog.pg_attribute a ON a.attnum = k.attnum
WHERE i.indrelid = %s AND i.indisprimary AND a.attrelid = i.indrelid ORDER BY k.place
"""
_TYPES = """
SELECT t.oid, t.typname, n.nspname, t.typtype::text, t.typbasetype, t.typtypmod,
  CASE WHEN t.typlen = -1 AND EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.oid = t.typelem AND e.typarray = t.oid)
    THEN t.typelem ELSE 0 END
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = ANY(%s)
"""
# A partitioned or inherited table is read through its root, and its children's blocks are numbered from 0 each.
_STORAGE = """
WITH RECURSIVE tree(oid) AS (
  SELECT %s::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid)
SELECT c.relkind::text, coalesce(m.amname, ''), coalesce(pg_catalog.pg_relation_size(c.oid), 0),
  coalesce(pg_catalog.pg_table_size(c.oid), 0)
FROM tree JOIN pg_catalog.pg_class c USING (oid) LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
"""


@dataclass(frozen=True, order=True, slots=True)
class TableName:
    """A table's schema and name, and its kind as pg_class has it."""

    schema: str
    name: str
    kind: str = field(default="r", compare=False)

    @property
    def sql(self) -> str:
        """As SQL has it."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Storage:
    """Where rows lie. `blocks`: per part of the table; empty where rows have no place that a range could name."""

    blocks: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Description:
    """All that is needed to read something: `relation` is what stands after FROM."""

    title: str
    relation: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    storage: Storage


def is_pattern(text: str) -> bool:
    """Whether a name may stand for several tables."""
    return "," in text or bool(_WILD.search(text)) or text.startswith("!")


def find_tables(connection: Any, patterns: str) -> list[TableName]:
    """The tables that a comma list of names and globs means, in order of their names.

    A glob finds tables and partitioned tables; views, materialized views, foreign tables and single partitions have to
    be named. A part that begins with `!` takes out what it matches. A part without a schema means `public`.
    """
    rows = connection.execute(_FIND, [list(_READABLE)]).fetchall()
    there = {TableName(schema, name, kind): partition for schema, name, kind, partition in rows}
    common = [table for table, partition in there.items() if table.kind in _BY_PATTERN and not partition]
    found: set[TableName] = set()
    dropped: set[TableName] = set()
    for part in filter(None, (part.strip() for part in patterns.split(","))):
        exclude, text = part.startswith("!"), part.removeprefix("!")
        matching = _matching(text, there if exclude or not _WILD.search(text) else common)
        if not matching:
            raise SourceNotFound(
                f"--tables {part}: the database has no such table that this user can see; write schema.table, and quote "
                "globs ('public.*')"
            )
        (dropped if exclude else found).update(matching)
    if not found - dropped:
        raise SourceNotFound(f"--tables {patterns} names no table; write schema.table or a glob such as 'public.*'")
    return sorted(found - dropped)


def describe_table(connection: Any, table: TableName, options: TypeOptions) -> Description:
    """A table as it is now. The connection's transaction must hold a lock on it."""
    (oid,) = connection.execute("SELECT %s::regclass::oid", [table.sql]).fetchone()
    rows = connection.execute(_COLUMNS, [oid]).fetchall()
    if not rows:
        raise BadInput(f"table {table} has no column; leave it out with '!{table}'")
    types = _types(connection, {row[1] for row in rows})
    columns = [
        column(name, types[kind], modifier, options, required=required, comment=comment)
        for name, kind, modifier, required, comment in rows
    ]
    key = tuple(name for (name,) in connection.execute(_KEY, [oid]).fetchall())
    return Description(f"table {table}", table.sql, tuple(columns), key, _storage(connection, oid))


def describe_query(connection: Any, query: str, options: TypeOptions) -> Description:
    """A query's columns. It is not run."""
    relation = f"({query.strip().rstrip(';')}\n) AS query"
    cursor = connection.execute(f"SELECT * FROM {relation} LIMIT 0")
    result = cursor.pgresult
    types = _types(connection, {result.ftype(at) for at in range(result.nfields)})
    columns = [
        column(result.fname(at).decode(), types[result.ftype(at)], result.fmod(at), options)
        for at in range(result.nfields)
    ]
    return Description("the query", relation, tuple(columns), (), Storage((), 0))


def _matching(text: str, names: Iterable[TableName]) -> list[TableName]:
    schema, dot, name = text.rpartition(".")
    fit = re.compile(translate(schema if dot else "public")), re.compile(translate(name))
    return [each for each in names if fit[0].fullmatch(each.schema) and fit[1].fullmatch(each.name)]


def _storage(connection: Any, oid: int) -> Storage:
    """Only heaps have blocks that a scan can begin and end at, and only since PostgreSQL 14 it does."""
    parts = connection.execute(_STORAGE, [oid]).fetchall()
    (block_size,) = connection.execute("SELECT current_setting('block_size')::int").fetchone()
    size = sum(part[3] for part in parts)
    held = [part for part in parts if part[0] != "p"]
    in_heaps = all(kind in "rm" and method == "heap" for kind, method, _, _ in held)
    if not in_heaps or connection.info.server_version < _RANGES_SINCE:
        return Storage((), size)
    return Storage(tuple(main // block_size for _, _, main, _ in held), size)


def _types(connection: Any, oids: set[int]) -> dict[int, PostgresType]:
    """Every type with what it is made of."""
    rows: dict[int, Sequence[Any]] = {}
    wanted = set(oids)
    while wanted:
        for row in connection.execute(_TYPES, [list(wanted)]).fetchall():
            rows[row[0]] = row
        wanted = {part for row in rows.values() for part in (row[4], row[6]) if part} - rows.keys()
    return {oid: _assembled(oid, rows) for oid in oids}


def _assembled(oid: int, rows: dict[int, Sequence[Any]]) -> PostgresType:
    _, name, schema, kind, base, modifier, element = rows[oid]
    return PostgresType(
        name,
        schema,
        kind,
        element=_assembled(element, rows) if element else None,
        base=_assembled(base, rows) if base else None,
        modifier=modifier,
    )
