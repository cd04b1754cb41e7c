"""Spark's daemon of Python workers for a run over PostgreSQL: the database's driver is imported as well before it forks."""

from contextlib import suppress

from frazil.spark.daemon import serve

with suppress(ImportError):  # a host without it says so, and what to do, when it is to read something
    import adbc_driver_postgresql.dbapi  # noqa: F401

if __name__ == "__main__":
    serve()
