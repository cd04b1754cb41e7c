"""The same write on a standalone master, whose executors get Frazil itself shipped as a zip and have only its requirements."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pyspark
import pytest

import frazil
from frames import FrameLake
from services.processes import wait_until

JARS = Path(pyspark.__file__).parent / "jars" / "*"
_PROGRAM = """
import sys
from pyspark.sql import SparkSession

root, master = sys.argv[1:]
spark = SparkSession.builder.master(master).getOrCreate()
df = spark.range(0, 10_000, 1, 2).selectExpr("id", "string(id % 3) AS city")
df.write.format("frazil").mode("append").options(**{"root": root, "partition-by": "city"}).save("db.t")
spark.stop()
"""


@contextmanager
def running(folder: Path, name: str, *command: str) -> Iterator[Path]:
    """A Java process of Spark with what it says in a file."""
    log = folder / f"{name}.log"
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    environment["SPARK_SCALA_VERSION"] = "2.13"  # else the worker looks for a source tree to ask
    environment.pop("PYTHONPATH", None)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [java, "-Xmx256m", "-cp", str(JARS), *command], stdout=out, stderr=out, cwd=folder, env=environment
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master with one worker of two cores. No script starts them: the wheel has none."""
    deploy, local = "org.apache.spark.deploy", ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with running(tmp_path, "master", f"{deploy}.master.Master", *local) as log:
        wait_until(lambda: re.search(r"spark://127\.0\.0\.1:\d+", log.read_text()) is not None, _Alive(), 60)
        found = re.search(r"spark://127\.0\.0\.1:\d+", log.read_text())
        assert found is not None
        size = ("--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work"))
        with running(tmp_path, "worker", f"{deploy}.worker.Worker", *local, *size, found[0]) as worker:
            wait_until(lambda: "registered with master" in worker.read_text(), _Alive(), 60)
            yield found[0]


class _Alive:
    args = "Spark's master or worker"

    def poll(self) -> None:
        return None


def test_a_frame_is_written_by_executors_that_get_frazil_as_a_zip(tmp_path: Path, master: str) -> None:
    package = Path(frazil.__file__).parent
    shipped = tmp_path / "frazil.zip"
    with zipfile.ZipFile(shipped, "w") as archive:
        for file in [*package.rglob("*.py"), *(package.parent / "pyspark_frazil").glob("*.py")]:
            archive.write(file, file.relative_to(package.parent))
    bare = tmp_path / "bare"  # a Python with Frazil's requirements, but without Frazil
    venv.create(bare, symlinks=True)
    (site,) = bare.glob("lib/python*/site-packages")
    (site / "shared.pth").write_text(str(Path(pyarrow.__file__).parent.parent))
    python = str(bare / "bin" / "python")
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    assert subprocess.run([python, "-c", "import pyiceberg, pyspark"], cwd=tmp_path, check=False).returncode == 0
    missing = subprocess.run([python, "-c", "import frazil"], cwd=tmp_path, check=False, capture_output=True)
    assert missing.returncode == 1 and b"No module named 'frazil'" in missing.stderr

    lake = FrameLake(tmp_path / "lake")
    submit = shutil.which("spark-submit", path=str(Path(pyspark.__file__).parent / "bin"))
    environment = {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    environment |= {"PYTHONPATH": str(shipped)}  # Spark looks for data sources without a look at --py-files
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    options = ["--master", master, "--py-files", str(shipped), "--conf", "spark.executor.memory=512m"]
    options += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    done = subprocess.run(
        [str(submit), *options, str(program), str(lake.root), master],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if " INFO " not in line)
    assert lake.ids() == list(range(10_000)) and lake.leftovers() == set()
    assert sys.executable != python
