"""The tables of the database.

The first two are those of Iceberg's own JDBC catalog, so PyIceberg's `SqlCatalog` and Java's `JdbcCatalog` open the same
database. What Frazil adds stands beside them and can be dropped without harm to any table.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text

metadata = MetaData()

TABLE = "TABLE"
VIEW = "VIEW"

iceberg_tables = Table(
    "iceberg_tables",
    metadata,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)

namespace_properties = Table(
    "iceberg_namespace_properties",
    metadata,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000), nullable=False),
)

reservations = Table(
    "frazil_snapshot_reservations",
    metadata,
    Column("table_uuid", String(36), primary_key=True),
    Column("snapshot_id", BigInteger, primary_key=True, autoincrement=False),
    Column("commit_uuid", String(36), nullable=False),
    Column("state", String(10), nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
    Column("content", Text, nullable=False),
)

staged_tables = Table(
    "frazil_staged_tables",
    metadata,
    Column("table_uuid", String(36), primary_key=True),
    Column("catalog_name", String(255), nullable=False),
    Column("table_namespace", String(255), nullable=False),
    Column("table_name", String(255), nullable=False),
    Column("location", String(1000), nullable=False),
    Column("metadata_location", String(1000), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Index("frazil_staged_tables_by_name", "catalog_name", "table_namespace", "table_name"),
    Index("frazil_staged_tables_by_expiry", "expires_at_ms"),
)

idempotency_keys = Table(
    "frazil_idempotency_keys",
    metadata,
    Column("catalog_name", String(255), primary_key=True),
    Column("idempotency_key", String(36), primary_key=True),
    Column("operation", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("content", Text),
    Column("metadata_location", String(1000)),
    Column("created_at_ms", BigInteger, nullable=False),
    Index("frazil_idempotency_keys_by_age", "created_at_ms"),
)

metrics_reports = Table(
    "frazil_metrics_reports",
    metadata,
    Column("report_id", String(36), primary_key=True),
    Column("catalog_name", String(255), nullable=False),
    Column("table_namespace", String(255), nullable=False),
    Column("table_name", String(255), nullable=False),
    Column("received_at_ms", BigInteger, nullable=False),
    Column("report", Text, nullable=False),
    Index("frazil_metrics_reports_by_table", "catalog_name", "table_namespace", "table_name", "received_at_ms"),
    Index("frazil_metrics_reports_by_age", "received_at_ms"),
)

counters = Table(
    "frazil_counters",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
