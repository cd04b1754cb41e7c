"""Spark with Iceberg's Java runtime lives in the catalog: it creates, writes, evolves, replaces, renames and drops."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services import spark35
from services.frazil_catalog import FrazilCatalog

# Each statement with what it answers, None where that does not matter. DB is the test's own namespace.
STORY: list[tuple[str, object]] = [
    ("CREATE NAMESPACE lake.DB.nested", []),
    ("SHOW NAMESPACES IN lake.DB", [["DB.nested"]]),
    ("CREATE TABLE lake.DB.t (id bigint, city string, at timestamp) PARTITIONED BY (days(at), bucket(4, id))", []),
    ("INSERT INTO lake.DB.t VALUES (1, 'Oslo', timestamp'2026-01-01 10:00:00'), (2, 'Rome', NULL)", []),
    ("ALTER TABLE lake.DB.t ADD COLUMN fare double", []),
    ("ALTER TABLE lake.DB.t RENAME COLUMN city TO town", []),
    ("ALTER TABLE lake.DB.t ADD PARTITION FIELD truncate(town, 1)", []),
    ("ALTER TABLE lake.DB.t WRITE ORDERED BY id", []),
    ("INSERT INTO lake.DB.t VALUES (3, 'Riga', NULL, 1.5)", []),
    ("UPDATE lake.DB.t SET fare = 2.5 WHERE id = 1", []),
    ("DELETE FROM lake.DB.t WHERE id = 2", []),
    ("MERGE INTO lake.DB.t USING (SELECT 9 id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (9)", []),
    ("SELECT id, town, fare FROM lake.DB.t ORDER BY id", [[1, "Oslo", 2.5], [3, "Riga", 1.5], [9, None, None]]),
    # A table made of a query is staged: nobody sees it before its rows.
    ("CREATE TABLE lake.DB.made AS SELECT id, town FROM lake.DB.t WHERE id < 9", []),
    ("SELECT * FROM lake.DB.made ORDER BY id", [[1, "Oslo"], [3, "Riga"]]),
    ("REPLACE TABLE lake.DB.made PARTITIONED BY (town) AS SELECT town, count(*) n FROM lake.DB.made GROUP BY town", []),
    ("SELECT * FROM lake.DB.made ORDER BY town", [["Oslo", 1], ["Riga", 1]]),
    ("CREATE OR REPLACE TABLE lake.DB.new AS SELECT 1 AS one", []),
    ("CREATE OR REPLACE TABLE lake.DB.new AS SELECT 2 AS two", []),
    ("SELECT * FROM lake.DB.new", [[2]]),
    ("SELECT count(*) FROM lake.DB.new.snapshots", [[2]]),
    ("ALTER TABLE lake.DB.made RENAME TO DB.renamed", []),
    ("SHOW TABLES IN lake.DB", [["DB", "new", False], ["DB", "renamed", False], ["DB", "t", False]]),
    ("CREATE VIEW lake.DB.v AS SELECT town FROM lake.DB.t WHERE fare > 2", []),
    ("SELECT * FROM lake.DB.v", [["Oslo"]]),
    ("CREATE OR REPLACE VIEW lake.DB.v AS SELECT town, fare FROM lake.DB.t WHERE fare < 2", []),
    ("SELECT * FROM lake.DB.v", [["Riga", 1.5]]),
    ("SHOW VIEWS IN lake.DB", [["DB", "v", False]]),
    ("ALTER TABLE lake.DB.t CREATE BRANCH audit", []),
    ("INSERT INTO lake.DB.t.branch_audit VALUES (10, 'Kyiv', NULL, NULL)", []),
    ("SELECT count(*) FROM lake.DB.t VERSION AS OF 'audit'", [[4]]),
    ("CALL lake.system.expire_snapshots(table => 'DB.t', older_than => timestamp'2100-01-01 00:00:00')", None),
    ("SELECT count(*) FROM lake.DB.t", [[3]]),
    ("DROP VIEW lake.DB.v", []),
    ("DROP TABLE lake.DB.t PURGE", []),
    ("DROP TABLE lake.DB.renamed", []),
    ("DROP TABLE lake.DB.new", []),
    ("DROP NAMESPACE lake.DB.nested", []),
    ("DROP NAMESPACE lake.DB", []),
    ("SHOW NAMESPACES IN lake", None),
]


@pytest.mark.slow
@pytest.mark.skipif(not spark35.PYTHON.exists(), reason="PySpark 3.5 is not installed: `make bench` sets it up")
def test_spark_lives_in_the_catalog(frazil_catalog: FrazilCatalog, namespace: str) -> None:
    story: list[list[Any]] = json.loads(json.dumps(STORY).replace("DB", namespace))
    answers = spark35.answers(frazil_catalog.uri, [statement for statement, _ in story])
    for (statement, wanted), answer in zip(story, answers, strict=True):
        assert wanted in (None, answer), statement
    assert frazil_catalog.ask("HEAD", f"/v1/namespaces/{namespace}").status == 404
