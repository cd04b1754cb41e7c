"""The JDBC catalog's tables, where they are not there yet, and Frazil's own beside them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_COUNTERS = (
    "staged_creates",
    "staged_creates_finalised",
    "staged_creates_failed",
    "staged_creates_cleaned",
    "staged_creates_cleanup_failures",
)


def upgrade() -> None:
    """Make what is missing. A database of PyIceberg or Java may be there already, in its first layout or its second."""
    present = sa.inspect(op.get_bind())
    if not present.has_table("iceberg_tables"):
        _create_iceberg_tables()
    elif "iceberg_type" not in {column["name"] for column in present.get_columns("iceberg_tables")}:
        op.add_column("iceberg_tables", sa.Column("iceberg_type", sa.String(5)))
    if not present.has_table("iceberg_namespace_properties"):
        _create_namespace_properties()
    _create_reservations()
    _create_staged_tables()
    _create_idempotency_keys()
    _create_metrics_reports()
    counters = op.create_table(
        "frazil_counters",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in _COUNTERS])


def _create_iceberg_tables() -> None:
    op.create_table(
        "iceberg_tables",
        sa.Column("catalog_name", sa.String(255), primary_key=True),
        sa.Column("table_namespace", sa.String(255), primary_key=True),
        sa.Column("table_name", sa.String(255), primary_key=True),
        sa.Column("metadata_location", sa.String(1000)),
        sa.Column("previous_metadata_location", sa.String(1000)),
        sa.Column("iceberg_type", sa.String(5)),
    )


def _create_namespace_properties() -> None:
    op.create_table(
        "iceberg_namespace_properties",
        sa.Column("catalog_name", sa.String(255), primary_key=True),
        sa.Column("namespace", sa.String(255), primary_key=True),
        sa.Column("property_key", sa.String(255), primary_key=True),
        sa.Column("property_value", sa.String(1000), nullable=False),
    )


def _create_reservations() -> None:
    op.create_table(
        "frazil_snapshot_reservations",
        sa.Column("table_uuid", sa.String(36), primary_key=True),
        sa.Column("snapshot_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("commit_uuid", sa.String(36), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )


def _create_staged_tables() -> None:
    op.create_table(
        "frazil_staged_tables",
        sa.Column("table_uuid", sa.String(36), primary_key=True),
        sa.Column("catalog_name", sa.String(255), nullable=False),
        sa.Column("table_namespace", sa.String(255), nullable=False),
        sa.Column("table_name", sa.String(255), nullable=False),
        sa.Column("location", sa.String(1000), nullable=False),
        sa.Column("metadata_location", sa.String(1000), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Index("frazil_staged_tables_by_name", "catalog_name", "table_namespace", "table_name"),
        sa.Index("frazil_staged_tables_by_expiry", "expires_at_ms"),
    )


def _create_idempotency_keys() -> None:
    op.create_table(
        "frazil_idempotency_keys",
        sa.Column("catalog_name", sa.String(255), primary_key=True),
        sa.Column("idempotency_key", sa.String(36), primary_key=True),
        sa.Column("operation", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("content", sa.Text),
        sa.Column("metadata_location", sa.String(1000)),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Index("frazil_idempotency_keys_by_age", "created_at_ms"),
    )


def _create_metrics_reports() -> None:
    op.create_table(
        "frazil_metrics_reports",
        sa.Column("report_id", sa.String(36), primary_key=True),
        sa.Column("catalog_name", sa.String(255), nullable=False),
        sa.Column("table_namespace", sa.String(255), nullable=False),
        sa.Column("table_name", sa.String(255), nullable=False),
        sa.Column("received_at_ms", sa.BigInteger, nullable=False),
        sa.Column("report", sa.Text, nullable=False),
        sa.Index("frazil_metrics_reports_by_table", "catalog_name", "table_namespace", "table_name", "received_at_ms"),
        sa.Index("frazil_metrics_reports_by_age", "received_at_ms"),
    )
