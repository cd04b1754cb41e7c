"""The rows of one SELECT under a shared snapshot, as Arrow batches in the types that were planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import BadInput, SourceUnreadable
from frazil.sources.postgres_address import PostgresAddress
from frazil.sources.postgres_error import connection_refused, reading_failed

_BATCH_BYTES = 8 * 1024 * 1024
# Text forms must not depend on who asks or from where; a snapshot can be set only before the first query.
_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET TRANSACTION SNAPSHOT '{snapshot}'",
    "SET LOCAL datestyle = 'ISO, YMD'",
    "SET LOCAL intervalstyle = 'iso_8601'",
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL bytea_output = 'hex'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL xmloption = 'content'",
    # The same rows in the same order each time, and no helpers: the shards share the server's cores already.
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL jit = off",
)
# The driver adds the years from 2000 to 1970 without looking: infinity, and what no Arrow value can hold, wraps around
# to long before the year 4713 BC, at which PostgreSQL's calendar begins.
_FIRST_DAY = -2_440_588
_FIRST_MICROSECOND = _FIRST_DAY * 86_400_000_000
_DAY_MICROSECONDS = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Care:
    """What is to be looked after in values that the driver hands over as they come."""

    null_not_finite: bool = False
    check_utf8: bool = False


def read_select(
    address: PostgresAddress, snapshot: str, select: str, title: str, schema: pa.Schema, care: Care
) -> Iterator[pa.RecordBatch]:
    """Run a SELECT within an exported snapshot. Memory holds about one batch. Errors are ours, and name `title`."""
    dbapi, decimals = _driver(), _decimals(schema)
    try:
        connection = dbapi.connect(address.connection_string())
    except dbapi.Error as error:
        raise connection_refused(address, error) from None
    conversions = [_conversion(field.type, f"column {field.name!r} of {title}", care) for field in schema]
    try:
        with connection, connection.cursor() as cursor:
            for statement in _SESSION:
                cursor.execute(statement.format(snapshot=snapshot))
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)})
            cursor.execute(select)
            for batch in cursor.fetch_record_batch():
                columns = [convert(batch.column(at)) for at, convert in enumerate(conversions)]
                yield pa.RecordBatch.from_arrays(columns, names=schema.names)
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        raise reading_failed(title, address, error, decimals) from None


def _driver() -> Any:
    """ADBC's driver. BadInput says how to install it."""
    try:
        import adbc_driver_postgresql.dbapi as dbapi
    except ImportError as error:
        raise BadInput(
            f"PostgreSQL sources need more than is installed on this host ({error}); pip install 'frazil[postgres]'"
        ) from error
    return dbapi


def _decimals(schema: pa.Schema) -> tuple[str, ...]:
    return tuple(field.name for field in schema if pa.types.is_decimal(field.type))


_Convert = Callable[[Any], Any]


def _conversion(kind: pa.DataType, where: str, care: Care) -> _Convert:
    """From what the driver gives for a column to the planned type."""
    types = pa.types
    if types.is_list(kind):
        return _list_conversion(kind, where, care)
    if isinstance(kind, pa.UuidType):
        return lambda array: pa.ExtensionArray.from_storage(kind, _storage(array))
    if types.is_date32(kind):
        return _finite(pa.int32(), _FIRST_DAY, where, care)
    if types.is_timestamp(kind):
        return _finite(pa.int64(), _FIRST_MICROSECOND, where, care)
    if types.is_time(kind):
        return _within_a_day(where)
    if types.is_string(kind) and care.check_utf8:
        return _valid_utf8(where)
    return lambda array: _cast(_storage(array), kind, where)


def _storage(array: Any) -> Any:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _list_conversion(kind: Any, where: str, care: Care) -> _Convert:
    element = _conversion(kind.value_type, where, care)

    def convert(array: Any) -> Any:
        mask = pc.is_null(array) if array.null_count else None
        values = element(array.values)
        return pa.ListArray.from_arrays(array.offsets, values, type=pa.list_(values.type), mask=mask)

    return convert


def _cast(array: Any, target: Any, where: str) -> Any:
    if array.type.equals(target):
        return array
    if pa.types.is_decimal(target) and pa.types.is_int64(array.type):
        return _scaled(array, target)
    try:
        return array.cast(target)
    except pa.ArrowInvalid as error:
        raise SourceUnreadable(
            f"{where} holds a value that does not fit {target} ({error}); --option numeric=string takes numerics of any "
            "size, and --option not-finite=null takes NaN and infinity as null"
        ) from error


def _scaled(array: Any, target: Any) -> Any:
    """Whole numbers as the decimals whose digits they are: the same bytes under another name."""
    validity, values = array.buffers()
    digits = pa.decimal64(target.precision, target.scale)
    return pa.Array.from_buffers(digits, len(array), [validity, values], array.null_count, array.offset)


def _finite(whole: pa.DataType, first: int, where: str, care: Care) -> _Convert:
    def convert(array: Any) -> Any:
        numbers = array.view(whole)
        least = pc.min(numbers).as_py()
        if least is None or least >= first:
            return array
        if care.null_not_finite:
            return pc.if_else(pc.less(numbers, first), pa.scalar(None, array.type), array)
        raise SourceUnreadable(
            f"{where} holds infinity, or a time that no Iceberg {array.type} reaches; mend the rows, or take such values "
            "as null: --option not-finite=null"
        )

    return convert


def _within_a_day(where: str) -> _Convert:
    def convert(array: Any) -> Any:
        most = pc.max(array.view(pa.int64())).as_py()
        if most is not None and most >= _DAY_MICROSECONDS:
            raise SourceUnreadable(
                f"{where} holds 24:00:00, which Iceberg's time does not; mend the rows, or cast the column to text with "
                "--query or a view"
            )
        return array

    return convert


def _valid_utf8(where: str) -> _Convert:
    def convert(array: Any) -> Any:
        plain = _storage(array)
        try:
            plain.validate(full=True)
        except pa.ArrowInvalid as error:
            raise SourceUnreadable(
                f"{where} holds text that is not UTF-8, in a database whose encoding is SQL_ASCII; mend the rows, or cast "
                "the column to bytea with --query or a view"
            ) from error
        return plain

    return convert
