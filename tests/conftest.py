"""Fixtures for every test: real services where one is asked for, and lakes in temporary folders."""

pytest_plugins = [
    "services.seaweedfs",
    "services.postgres",
    "services.frazil_catalog",
    "services.java_iceberg",
    "lakes",
    "commands",
    "databases",
    "guards",
    "guarded",
]
