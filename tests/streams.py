"""A stream from files that come in, to a table; run as a program it has its own Spark, and says which processes it is.

`home/in` holds the files, `home/lake` the table, `home/checkpoint` what Spark remembers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stream(
    session: SparkSession,
    home: Path,
    *,
    made: Callable[[DataFrame], DataFrame] | None = None,
    mode: str = "append",
    table: str = "db.t",
    **options: Any,
) -> Any:
    """Take all files that are there, one in each batch, and end."""
    events = session.readStream.schema("id bigint, text string").option("maxFilesPerTrigger", 1).parquet(f"{home}/in")
    writer = (made(events) if made else events).writeStream.format("frazil").outputMode(mode)
    writer = writer.option("root", f"{home}/lake").option("checkpointLocation", f"{home}/checkpoint")
    for name, value in options.items():
        writer = writer.option(name.replace("_", "-"), value)
    query = writer.trigger(availableNow=True).start(table)
    query.awaitTermination()
    return query


def main(home: Path) -> None:
    """For tests that kill the driver."""
    from frazil.spark.session import start_session

    session = start_session("local[2]", "a stream to be killed", {})
    jvm = session.sparkContext._gateway.proc.pid
    (home / "companions").write_text(f"{jvm} {os.getpid()}")
    stream(session, home)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
