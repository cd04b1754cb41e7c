"""Bring a database to the newest schema; safe to call from many processes at once."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

VERSION_TABLE = "frazil_schema_version"
_LOCK = 0x66_72_61_7A_69_6C  # "frazil"


def upgrade(engine: Engine) -> None:
    """Apply what is missing, in one transaction. SQLite's write lock or an advisory lock lets one process at a time."""
    config = Config()
    config.set_main_option("script_location", "frazil.catalog:migrations")
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if _revision(connection) != ScriptDirectory.from_config(config).get_current_head():
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()
