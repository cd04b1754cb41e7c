"""PyIceberg's `add_files`: prints its seconds."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog


def main(lake: str, folder: str) -> None:
    catalog = SqlCatalog("frazil", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}/warehouse")
    table = catalog.load_table("db.t")
    files = sorted(str(path) for path in Path(folder).iterdir())
    began = time.monotonic()
    table.add_files(files, check_duplicate_files=True)
    print(time.monotonic() - began)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
