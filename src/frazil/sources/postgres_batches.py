"""The rows of one SELECT under a shared snapshot, as Arrow batches in the types that were planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import BadInput, SourceUnreadable
from frazil.sources.postgres_address import PostgresAddress
from frazil.sources.postgres_error import connection_refused, reading_failed

# Small enough that the memory of one batch is used again for the next, not fetched from the system each time.
_BATCH_BYTES = 2 * 1024 * 1024
# Text forms must not depend on who asks or from where. The same rows must come in the same order each time, and without
# helpers: the shards share the server's cores already.
_SETTINGS = {
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
}
# The driver adds the years from 2000 to 1970 without looking: infinity, and what no Arrow value can hold, wraps around
# to long before the year 4713 BC, at which PostgreSQL's calendar begins.
_FIRST_DAY = -2_440_588
_FIRST_MICROSECOND = _FIRST_DAY * 86_400_000_000
_DAY_MICROSECONDS = 86_400_000_000


def read_select(
    address: PostgresAddress, snapshot: str, select: str, title: str, schema: pa.Schema, *, null_not_finite: bool
) -> Iterator[pa.RecordBatch]:
    """Run a SELECT within an exported snapshot. Memory holds about one batch. Errors are ours, and name `title`."""
    dbapi = _driver()
    conversions = [_conversion(field.type, f"column {field.name!r} of {title}", null_not_finite) for field in schema]
    # No error is chained below: the driver's own may carry the parameters of the connection, secrets too.
    try:
        connection = dbapi.connect(address.connection_string())
    except dbapi.Error as error:
        raise connection_refused(address, error) from None
    try:
        with connection, connection.cursor() as cursor:
            _join_snapshot(cursor, snapshot)
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)})
            cursor.execute(select)
            for batch in cursor.fetch_record_batch():
                columns = [convert(batch.column(at)) for at, convert in enumerate(conversions)]
                yield pa.RecordBatch.from_arrays(columns, names=schema.names)
    except (dbapi.Error, OSError) as error:
        raise reading_failed(title, address, error) from None


def _join_snapshot(cursor: Any, snapshot: str) -> None:
    """The driver has begun a transaction; its snapshot can be set only before its first query."""
    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
    settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
    cursor.execute(f"SELECT {settings}")
    cursor.fetchall()


def _driver() -> Any:
    """ADBC's driver. BadInput says how to install it."""
    try:
        import adbc_driver_postgresql.dbapi as dbapi
    except ImportError as error:
        raise BadInput(
            f"PostgreSQL sources need more than is installed on this host ({error}); pip install 'frazil[postgres]'"
        ) from error
    return dbapi


_Convert = Callable[[Any], Any]


def _conversion(kind: pa.DataType, where: str, null_not_finite: bool) -> _Convert:
    """From what the driver gives for a column to the planned type."""
    types = pa.types
    if types.is_list(kind):
        return _list_conversion(kind, where, null_not_finite)
    if isinstance(kind, pa.UuidType):
        return lambda array: pa.ExtensionArray.from_storage(kind, _storage(array))
    if types.is_date32(kind):
        return _finite(pa.int32(), _FIRST_DAY, where, null_not_finite)
    if types.is_timestamp(kind):
        return _finite(pa.int64(), _FIRST_MICROSECOND, where, null_not_finite)
    if types.is_time(kind):
        return _within_a_day(where)
    return lambda array: _cast(_storage(array), kind, where)


def _storage(array: Any) -> Any:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _list_conversion(kind: Any, where: str, null_not_finite: bool) -> _Convert:
    element = _conversion(kind.value_type, where, null_not_finite)

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


def _finite(whole: pa.DataType, first: int, where: str, null_not_finite: bool) -> _Convert:
    def convert(array: Any) -> Any:
        numbers = array.view(whole)
        least = pc.min(numbers).as_py()
        if least is None or least >= first:
            return array
        if null_not_finite:
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
