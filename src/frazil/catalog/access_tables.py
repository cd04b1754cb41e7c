"""The tables of who may do what: principals, roles, grants and the keys that sign tokens.

They stand beside the catalog's own and hold no secret that opens a principal's account: of a client secret only a slow
hash is kept. A signing key, however, makes tokens, so whoever reads the database can pass for anybody.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, LargeBinary, MetaData, String, Table

metadata = MetaData()

principals = Table(
    "frazil_principals",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("client_id", String(64), unique=True),
    Column("secret_hash", String(255)),
    Column("secret_version", Integer, nullable=False),
    Column("subject", String(255), unique=True),
    Column("created_at_ms", BigInteger, nullable=False),
)

roles = Table("frazil_roles", metadata, Column("name", String(255), primary_key=True))

principal_roles = Table(
    "frazil_principal_roles",
    metadata,
    Column("principal", String(255), ForeignKey("frazil_principals.name"), primary_key=True),
    Column("role", String(255), ForeignKey("frazil_roles.name"), primary_key=True),
)

grants = Table(
    "frazil_grants",
    metadata,
    Column("role", String(255), ForeignKey("frazil_roles.name"), primary_key=True),
    Column("catalog_name", String(255), primary_key=True),
    Column("privilege", String(16), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("object_name", String(255), primary_key=True),
)

signing_keys = Table(
    "frazil_signing_keys",
    metadata,
    Column("key_id", String(36), primary_key=True),
    Column("secret", LargeBinary, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)
