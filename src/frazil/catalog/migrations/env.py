"""Alembic's entry: run the migrations on the connection that `frazil.catalog.migrate` holds locked."""

from __future__ import annotations

from alembic import context

from frazil.catalog.database_tables import metadata
from frazil.catalog.migrate import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSION_TABLE
)
context.run_migrations()
