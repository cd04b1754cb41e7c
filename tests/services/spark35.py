"""PySpark 3.5 with Iceberg's Java runtime, in the environment that `make bench` sets up: SQL in, rows out.

Run as a program by that environment's Python it reads statements as JSON from standard input and answers one line for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PYTHON = Path(__file__).parents[2] / ".venv-spark35/bin/python"
_ICEBERG = "smfs.shaded.org.apache.iceberg"
_MARK = "answer: "


def answers(uri: str, statements: list[str]) -> list[object]:
    """What Spark answers to each statement, run one after the other with the REST catalog at `uri` as `lake`."""
    done = subprocess.run(
        [PYTHON, __file__, uri],
        input=json.dumps(statements),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = [json.loads(line.removeprefix(_MARK)) for line in done.stdout.splitlines() if line.startswith(_MARK)]
    assert len(found) == len(statements), done.stderr[-3000:]
    return found


def main() -> None:
    """Answer the statements."""
    import feature_store_pyspark
    from pyspark.sql import SparkSession

    jar = Path(feature_store_pyspark.__file__).parent / "jars" / "sagemaker-feature-store-spark-sdk-3.5.jar"
    settings = {
        "spark.jars": str(jar),
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": f"{_ICEBERG}.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": f"{_ICEBERG}.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.uri": sys.argv[1],
        "spark.sql.catalog.lake.warehouse": "frazil",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for statement in json.load(sys.stdin):
        rows = [list(row) for row in spark.sql(statement).collect()]
        print(_MARK + json.dumps(rows, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
