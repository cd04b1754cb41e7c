"""Who may do what: principals, roles, grants, and the keys that sign tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "frazil_principals",
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("client_id", sa.String(64), unique=True),
        sa.Column("secret_hash", sa.String(255)),
        sa.Column("secret_version", sa.Integer, nullable=False),
        sa.Column("subject", sa.String(255), unique=True),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table("frazil_roles", sa.Column("name", sa.String(255), primary_key=True))
    op.create_table(
        "frazil_principal_roles",
        sa.Column("principal", sa.String(255), sa.ForeignKey("frazil_principals.name"), primary_key=True),
        sa.Column("role", sa.String(255), sa.ForeignKey("frazil_roles.name"), primary_key=True),
    )
    op.create_table(
        "frazil_grants",
        sa.Column("role", sa.String(255), sa.ForeignKey("frazil_roles.name"), primary_key=True),
        sa.Column("catalog_name", sa.String(255), primary_key=True),
        sa.Column("privilege", sa.String(16), primary_key=True),
        sa.Column("namespace", sa.String(255), primary_key=True),
        sa.Column("object_name", sa.String(255), primary_key=True),
    )
    op.create_table(
        "frazil_signing_keys",
        sa.Column("key_id", sa.String(36), primary_key=True),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
