"""The same write on Spark Connect: the client has no JVM, and what is planned runs in a server's Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from frames import FrameLake

_CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from frazil.spark import distribute

root = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect")
df = spark.range(0, 1000, 1, 3).select("id", (F.col("id") % 4).cast("string").alias("city"))
by = "city, bucket(2, id)"
rows = distribute(df, "db.t", "hash", root=root, partition_by=by, partitions=2)
rows.write.format("frazil").mode("append").option("root", root).option("partition-by", by).save("db.t")
new = df.where("city = '3' and id < 500")
new.write.format("frazil").mode("overwrite").options(root=root, overwrite="city = '3'").save("db.t")
errors = []
for options in ({"nope": "1"}, {"if-exists": "error"}, {"overwrite": "partitions"}):
    try:
        df.write.format("frazil").mode("append").options(root=root, **options).save("db.t")
    except Exception as error:
        errors.append(str(error))
broken = df.select(F.expr("if(id = 999, raise_error('a row that nobody foresaw'), id)").alias("id"))
try:
    broken.write.format("frazil").mode("append").option("root", root).save("db.t")
except Exception as error:
    errors.append(str(error))
print(json.dumps(errors))
spark.stop()
"""


def test_frames_are_written_over_spark_connect(tmp_path: Path) -> None:
    lake = FrameLake(tmp_path / "lake")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(tmp_path)}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("FRAZIL_STATE", None)
    client = subprocess.run(
        [sys.executable, "-c", _CLIENT, str(lake.root)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert client.returncode == 0, client.stderr
    errors = json.loads(client.stdout.splitlines()[-1])
    said = [
        "no option 'nope' is known",
        "db.t exists already",
        'it needs .mode("overwrite")',
        "a row that nobody foresaw",
    ]
    assert len(errors) == 4 and all(text in error for text, error in zip(said, errors, strict=True))
    assert lake.ids() == [each for each in range(1000) if each % 4 != 3 or each < 500]
    assert lake.leftovers() == set()
