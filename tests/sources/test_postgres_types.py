"""Each PostgreSQL type arrives as the type that the documents name, value for value; what cannot is refused by column."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from databases import Database
from frazil.errors import BadInput, SourceUnreadable
from frazil.sources.postgres_types import TypeOptions, numeric_type

UTC = dt.UTC
ID = uuid.UUID("11111111-2222-3333-4444-555555555555")

EXACT: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "boolean": ("true, false", pa.bool_(), [True, False]),
    "smallint": ("-32768, 32767", pa.int32(), [-32768, 32767]),
    "integer": ("-2147483648, 2147483647", pa.int32(), [-(2**31), 2**31 - 1]),
    "bigint": ("-9223372036854775808, 9223372036854775807", pa.int64(), [-(2**63), 2**63 - 1]),
    "real": ("1.1, 'Infinity'", pa.float32(), [pa.scalar(1.1, pa.float32()).as_py(), float("inf")]),
    "double precision": ("0.1, '-Infinity', 5e-324", pa.float64(), [0.1, float("-inf"), 5e-324]),
    "numeric(12,2)": ("-9999999999.99, 0.01", pa.decimal128(12, 2), [Decimal("-9999999999.99"), Decimal("0.01")]),
    "numeric(18)": ("999999999999999999, -1", pa.decimal128(18, 0), [Decimal(10**18 - 1), Decimal(-1)]),
    "numeric(19,3)": ("9999999999999999.999", pa.decimal128(19, 3), [Decimal("9999999999999999.999")]),
    "numeric(38,38)": ("-0." + "9" * 38, pa.decimal128(38, 38), [Decimal("-0." + "9" * 38)]),
    "numeric(3,-2)": ("99900, -100", pa.decimal128(5, 0), [Decimal(99900), Decimal(-100)]),
    "numeric(2,4)": ("0.0099", pa.decimal128(4, 4), [Decimal("0.0099")]),
    "numeric": ("1e50, 'NaN', 'Infinity', 1.50", pa.string(), ["1" + "0" * 50, "NaN", "Infinity", "1.50"]),
    "numeric(60,1)": ("12.5", pa.string(), ["12.5"]),
    "text": ("'', 'grüß 🧊', repeat('x',100000)", pa.string(), ["", "grüß 🧊", "x" * 100000]),
    "varchar(5)": ("'abc'", pa.string(), ["abc"]),
    "char(4)": ("'ab'", pa.string(), ["ab  "]),
    '"char"': ("'x'", pa.string(), ["x"]),
    "name": ("'a name'", pa.string(), ["a name"]),
    "bytea": ("'\\x00ff10', ''", pa.binary(), [b"\x00\xff\x10", b""]),
    "uuid": (f"'{ID}'", pa.uuid(), [ID]),
    "date": (
        "'0001-01-01', '9999-12-31', '1969-12-31'",
        pa.date32(),
        [dt.date.min, dt.date.max, dt.date(1969, 12, 31)],
    ),
    "time": ("'00:00', '23:59:59.999999'", pa.time64("us"), [dt.time.min, dt.time.max]),
    "time with time zone": ("'12:00:00.5+05:30'", pa.string(), ["12:00:00.5+05:30"]),
    "timestamp": (
        "'1969-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999'",
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime.max],
    ),
    "timestamptz": (
        "'2024-06-01 12:00:00+02', '1883-11-18 12:03:57.000001-05'",
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 6, 1, 10, tzinfo=UTC), dt.datetime(1883, 11, 18, 17, 3, 57, 1, tzinfo=UTC)],
    ),
    "interval": ("'1 year 2 mons 3 days 04:05:06.5'", pa.string(), ["P1Y2M3DT4H5M6.5S"]),
    "json": ("""'{"b" : 1, "a":2}'""", pa.string(), ['{"b" : 1, "a":2}']),
    "jsonb": ("""'{"b" : 1.50}'""", pa.string(), ['{"b": 1.50}']),
    "mood": ("'sad', 'ok'", pa.string(), ["sad", "ok"]),
    "pair": ("row(1, 'x')", pa.string(), ['{"a":1,"b":"x"}']),
    "positive": ("5", pa.int32(), [5]),
    "price": ("7.25", pa.decimal128(10, 2), [Decimal("7.25")]),
    "oid": ("4294967295", pa.int64(), [2**32 - 1]),
    "inet": ("'1.2.3.4', '10.0.0.1/8', '::1'", pa.string(), ["1.2.3.4", "10.0.0.1/8", "::1"]),
    "cidr": ("'10.0.0.0/8'", pa.string(), ["10.0.0.0/8"]),
    "macaddr": ("'08:00:2b:01:02:03'", pa.string(), ["08:00:2b:01:02:03"]),
    "bit(3)": ("B'101'", pa.string(), ["101"]),
    "int4range": ("'[1,5)'", pa.string(), ["[1,5)"]),
    "tstzrange": (
        "'[2024-01-01 00:00+01,)'",
        pa.string(),
        ['["2023-12-31 23:00:00+00",)'],
    ),
    "integer[]": ("'{1,NULL,3}', '{}'", pa.list_(pa.int32()), [[1, None, 3], []]),
    "text[]": ("""'{a,NULL,"","NULL"}'""", pa.list_(pa.string()), [["a", None, "", "NULL"]]),
    "numeric(10,2)[]": ("'{1.25,NULL}'", pa.list_(pa.decimal128(10, 2)), [[Decimal("1.25"), None]]),
    "timestamptz[]": (
        "'{2024-01-01 00:00+01}'",
        pa.list_(pa.timestamp("us", "UTC")),
        [[dt.datetime(2023, 12, 31, 23, tzinfo=UTC)]],
    ),
    "uuid[]": (f"array['{ID}'::uuid, NULL]", pa.list_(pa.uuid()), [[ID, None]]),
    "bytea[]": ("array['\\x01'::bytea]", pa.list_(pa.binary()), [[b"\x01"]]),
    "mood[]": ("'{ok,NULL}'", pa.list_(pa.string()), [["ok", None]]),
    "pair[]": ("array[row(1, 'x')::pair, NULL]", pa.list_(pa.string()), [['{"a":1,"b":"x"}', None]]),
    "positive[]": ("'{3}'", pa.list_(pa.int32()), [[3]]),
    "inet[]": ("'{1.2.3.4}'", pa.list_(pa.string()), [["1.2.3.4"]]),
    "numbers": ("'{1,2}'", pa.list_(pa.int32()), [[1, 2]]),
}
"""A declared type, literals of it, the Arrow type and the values that arrive."""


TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN price AS numeric(10, 2)",
    "CREATE DOMAIN numbers AS int[]",
)


@pytest.mark.parametrize("declared", EXACT)
def test_a_type_arrives_value_for_value_and_null_stays_null(database: Database, declared: str) -> None:
    literals, kind, values = EXACT[declared]
    database.run(*TYPES, f"CREATE TABLE t (v {declared})", "INSERT INTO t VALUES (NULL)")
    rows = ", ".join(f"({literal})" for literal in literals.split(", ")) if len(values) > 1 else f"({literals})"
    database.run(f"INSERT INTO t VALUES {rows}")
    assert plain(database.source_schema().field("v").type) == plain(kind)
    assert database.read()["v"].to_pylist() == [None, *values]


def test_a_table_of_every_type_is_read_in_one_select(database: Database) -> None:
    names = {declared: f"c{number}" for number, declared in enumerate(EXACT)}
    database.run(*TYPES, f"CREATE TABLE t ({', '.join(f'{name} {declared}' for declared, name in names.items())})")
    literals = [f"({EXACT[each][0].split(', ')[0] if len(EXACT[each][2]) > 1 else EXACT[each][0]})" for each in names]
    database.run(f"INSERT INTO t VALUES ({', '.join(literals)})")
    (row,) = database.read().to_pylist()
    assert row == {name: EXACT[declared][2][0] for declared, name in names.items()}


def plain(kind: pa.DataType) -> pa.DataType:
    """The type, whatever a list calls its elements."""
    return pa.list_(kind.value_type) if pa.types.is_list(kind) else kind


REFUSED = {
    "NaN in a decimal of 18 digits": ("numeric(5,2)", "'NaN'", "a numeric column holds NaN"),
    "NaN in a decimal of 38 digits": ("numeric(38,2)", "'NaN'", "column 'v'"),
    "NaN in a list of decimals": ("numeric(5,2)[]", "'{NaN}'", "column 'v'"),
    "a date without end": ("date", "'infinity'", "column 'v' of table public.t holds infinity"),
    "a date without beginning": ("date", "'-infinity'", "column 'v' of table public.t holds infinity"),
    "a timestamp without end": ("timestamp", "'infinity'", "column 'v' of table public.t holds infinity"),
    "a timestamptz without beginning": ("timestamptz", "'-infinity'", "column 'v' of table public.t holds infinity"),
    "a timestamp later than 64 bits reach": ("timestamp", "'294250-01-01'", "column 'v' of table public.t holds"),
    "an infinite date in a list": ("date[]", "'{infinity}'", "column 'v' of table public.t holds infinity"),
    "the end of the day": ("time", "'24:00:00'", "column 'v' of table public.t holds 24:00:00"),
    "an array of two dimensions": ("int[]", "'{{1,2},{3,4}}'", "more than one dimension"),
    "texts in two dimensions": ("text[]", "'{{a},{b}}'", "more than one dimension"),
    "decimals in two dimensions": ("numeric(5,2)[]", "'{{1},{2}}'", "more than one dimension"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_value_that_no_table_holds_is_refused_by_column(database: Database, case: str) -> None:
    declared, literal, words = REFUSED[case]
    database.run(f"CREATE TABLE t (v {declared})", f"INSERT INTO t VALUES ({literal})")
    with pytest.raises(SourceUnreadable) as refused:
        database.read()
    assert words in str(refused.value)
    assert "public.t" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("declared", "literals"),
    [
        ("numeric(5,2)", ("'NaN'", "1.5")),
        ("numeric(38,2)", ("'NaN'", "1.5")),
        ("date", ("'infinity'", "'2024-01-01'")),
        ("timestamptz", ("'-infinity'", "'2024-01-01'")),
    ],
)
def test_what_is_not_finite_is_null_if_the_user_says_so(
    database: Database, declared: str, literals: tuple[str, str]
) -> None:
    database.run(f"CREATE TABLE t (v {declared} NOT NULL)", f"INSERT INTO t VALUES ({literals[0]}), ({literals[1]})")
    values = database.read(null_not_finite=True)["v"].to_pylist()
    assert (values[0], values[1] is not None) == (None, True)
    assert database.source_schema(null_not_finite=True).field("v").nullable


def test_elements_that_are_not_finite_become_null_too(database: Database) -> None:
    database.run(
        "CREATE TABLE t (n numeric(5,2)[], d date[])", "INSERT INTO t VALUES ('{NaN,1}', '{infinity,2024-01-01}')"
    )
    assert database.read(null_not_finite=True).to_pylist() == [
        {"n": [None, Decimal("1.00")], "d": [None, dt.date(2024, 1, 1)]}
    ]


def test_a_numeric_without_precision_is_the_decimal_that_the_user_chose(database: Database) -> None:
    database.run("CREATE TABLE t (v numeric)", "INSERT INTO t VALUES (1.5), (-1234567.123)")
    assert database.read(numeric=(20, 3))["v"].to_pylist() == [Decimal("1.500"), Decimal("-1234567.123")]


def test_a_numeric_that_does_not_fit_the_chosen_decimal_is_refused_with_its_column(database: Database) -> None:
    database.run("CREATE TABLE t (v numeric)", "INSERT INTO t VALUES (1.2345)")
    with pytest.raises(SourceUnreadable, match=r"column 'v' of table public\.t .*--option numeric=string"):
        database.read(numeric=(20, 3))


def test_texts_do_not_depend_on_how_the_role_is_set_up(database: Database) -> None:
    database.run(
        "CREATE TABLE t (i interval, r daterange, s tstzrange)",
        "INSERT INTO t VALUES ('1 day', '[2024-02-01,)', '[2024-02-01 00:00+00,)')",
    )
    plain_texts = database.read().to_pylist()
    for setting in ("datestyle = 'German'", "intervalstyle = 'sql_standard'", "timezone = 'Asia/Tokyo'"):
        database.run(f"ALTER DATABASE {database.name} SET {setting}")
    assert database.read().to_pylist() == plain_texts


def test_a_database_in_another_encoding_gives_the_same_text(database: Database) -> None:
    database.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    latin = Database(database.server, "latin")
    try:
        latin.run("CREATE TABLE t (v text)", "INSERT INTO t VALUES ('grüß')")
        assert latin.read()["v"].to_pylist() == ["grüß"]
    finally:
        database.run("DROP DATABASE latin WITH (FORCE)")


def test_bytes_that_are_no_text_are_refused_where_the_database_does_not_check_them(database: Database) -> None:
    database.run("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    unchecked = Database(database.server, "ascii")
    try:
        unchecked.run("CREATE TABLE t (v text)", "INSERT INTO t VALUES (E'\\xff')")
        with pytest.raises(SourceUnreadable, match=r"public\.t .* does not check its texts"):
            unchecked.read()
    finally:
        database.run("DROP DATABASE ascii WITH (FORCE)")


@pytest.mark.parametrize(
    "text", ["numeric=decimal", "numeric=decimal(39,0)", "numeric=decimal(3,4)", "not-finite=zero"]
)
def test_an_option_that_says_nothing_known_is_refused(text: str) -> None:
    key, _, value = text.partition("=")
    with pytest.raises(BadInput, match=key):
        TypeOptions.parse({key: value})


def test_a_numeric_s_precision_and_scale_are_in_its_modifier() -> None:
    assert [numeric_type(each) for each in (-1, ((12 << 16) | 2) + 4, ((3 << 16) | 2046) + 4)] == [
        None,
        (12, 2),
        (5, 0),
    ]
