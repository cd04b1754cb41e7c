"""A Spark session that is quiet, starts quickly, and runs its Python workers with this interpreter."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.errors import BadInput
from frazil.spark.java_error import cause_of, gone_is_ended
from frazil.spark.recommended import RECOMMENDED_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local(?:\[(?P<cores>[^,\]]+)(?:,(?P<failures>\d+))?\])?$")
_MASTER = re.compile(r"local|spark://|k8s://|yarn$")
_TASK_TRIES = 4
# A fresh page costs a fault, some 5 % of a plain load in all (docs/performance.md): ask for large ones, give none back.
WORKER_MEMORY = {"MIMALLOC_ALLOW_LARGE_OS_PAGES": "1", "MIMALLOC_PURGE_DELAY": "-1"}


def start_session(master: str, app: str, conf: Mapping[str, str]) -> SparkSession:
    """Start Spark, or take the session that is active. `conf` wins over our defaults. BadInput if it does not start."""
    if not _MASTER.match(master):
        raise BadInput(f"{master!r} is not a Spark master; write local[*], spark://host:7077, k8s://… or yarn")
    _check_java()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = SparkConf().setMaster(with_task_retries(master)).setAppName(app)
    settings.setAll(list({**_defaults(master), **conf}.items()))
    try:
        with _signals_held():
            SparkContext._ensure_initialized(conf=settings)
        with _keeping_ctrl_c():
            session = SparkSession.builder.config(conf=settings).getOrCreate()
        _set_worker_environment(session)
        _start_workers(session)
    except Exception as error:
        raise BadInput(
            f"Spark does not start with master {master}: {cause_of(error)}; it needs Java 17 or newer, and a master that "
            "can be reached"
        ) from error
    return session


def stop_session(session: SparkSession) -> None:
    """End Spark and its worker processes."""
    with gone_is_ended():
        session.stop()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Signals wait until Java is reached: it ends with us from then on, but lives on by itself if it is left before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda came, _: held.append(came)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in held:
            signal.raise_signal(number)


@contextmanager
def _keeping_ctrl_c() -> Iterator[None]:
    """Spark takes SIGINT for itself as it starts, but what a stop means is for the run to say."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _set_worker_environment(session: SparkSession) -> None:
    """What the Python workers find in their environment, and Java's processes do not; the user's own settings win."""
    environment = session.sparkContext.environment
    for name, value in WORKER_MEMORY.items():
        environment.setdefault(name, os.environ.get(name, value))


def _start_workers(session: SparkSession) -> None:
    """Have a Python worker wait on each core: their start belongs to the session's, not to the first shards."""
    cores = session.sparkContext.defaultParallelism
    session.sparkContext.parallelize(range(cores), cores).foreach(_nothing)


def _nothing(_number: int) -> None:
    return None


def with_task_retries(master: str) -> str:
    """`local[N]` gives a failed task no second try; a killed worker process deserves one."""
    match = _LOCAL.match(master)
    if match is None or match["failures"]:
        return master
    return f"local[{match['cores'] or '1'},{_TASK_TRIES}]"


def _defaults(master: str) -> dict[str, str]:
    defaults = {
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **RECOMMENDED_SETTINGS,
        "spark.python.worker.reuse": "true",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_quiet_logging()} -XX:TieredStopAtLevel=1 -Xshare:auto",
        "spark.sql.warehouse.dir": str(Path(os.environ.get("TMPDIR", "/tmp")) / "frazil-spark-warehouse"),
    }
    if _LOCAL.match(master) or master.startswith("local-cluster"):
        defaults |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
        }
    return defaults


def _quiet_logging() -> str:
    return (Path(__file__).parent / "log4j2.properties").as_uri()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else None
    if java is not None and not java.is_file():
        raise BadInput(
            f"JAVA_HOME is {home}, but there is no bin/java in it; point it at a Java 17 or newer, or unset it"
        )
    if java is None and shutil.which("java") is None:
        raise BadInput(
            "Spark needs Java 17 or newer, and there is no java on this machine's PATH; install one "
            "(Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) and try again"
        )
