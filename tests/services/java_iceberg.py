"""Iceberg's own Java client in a JVM of its own, driven from Python.

It comes with the wheel that the benchmark's Spark 3.5 contender uses (`.venv-spark35`, which `make bench` sets up), under the
package prefix `smfs.shaded.`. Tests that need it are skipped where that is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

_SITE = Path(__file__).parents[2] / ".venv-spark35/lib"
_JAR = "feature_store_pyspark/jars/sagemaker-feature-store-spark-sdk-3.5.jar"


@dataclass(frozen=True)
class JavaIceberg:
    """The JVM, and shorthands for what the tests make of Iceberg's classes."""

    gateway: JavaGateway

    @property
    def iceberg(self) -> Any:
        """The package `org.apache.iceberg`."""
        return self.gateway.jvm.smfs.shaded.org.apache.iceberg

    @property
    def types(self) -> Any:
        """Iceberg's types."""
        return self.iceberg.types.Types

    @property
    def expressions(self) -> Any:
        """Iceberg's expressions."""
        return self.iceberg.expressions.Expressions

    def catalog(self, uri: str, **properties: str) -> Any:
        """A client of its own, closed by nobody: the JVM ends with the tests."""
        catalog = self.iceberg.rest.RESTCatalog()
        catalog.setConf(self.gateway.jvm.org.apache.hadoop.conf.Configuration())
        named = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
        catalog.initialize("frazil", {"uri": uri, "warehouse": "frazil", **named})
        return catalog

    def array(self, kind: Any, *values: Any) -> Any:
        """A Java array."""
        made = self.gateway.new_array(kind, len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    def strings(self, *values: str) -> Any:
        """An array of strings."""
        return self.array(self.gateway.jvm.java.lang.String, *values)

    def namespace(self, *levels: str) -> Any:
        """A namespace."""
        return self.iceberg.catalog.Namespace.of(self.strings(*levels))

    def identifier(self, *names: str) -> Any:
        """A table's or view's name with its namespace."""
        return self.iceberg.catalog.TableIdentifier.of(self.namespace(*names[:-1]), names[-1])

    def schema(self, *fields: Any) -> Any:
        """A schema of these columns."""
        listed = self.gateway.jvm.java.util.ArrayList()
        for field in fields:
            listed.add(field)
        return self.iceberg.Schema(listed)

    def data_file(self, spec: Any, path: str, partition: str | None = None, rows: int = 2) -> Any:
        """A data file's description; nobody reads the file."""
        builder = self.iceberg.DataFiles.builder(spec).withPath(path).withFileSizeInBytes(10).withRecordCount(rows)
        return builder.withPartitionPath(partition).build() if partition else builder.build()

    def ascending(self, order: Any, column: str) -> Any:
        """Sort by a column. (Java's shorthand for it is a default method, which py4j does not find.)"""
        return order.asc(self.expressions.ref(column), self.iceberg.NullOrder.NULLS_FIRST)

    def files(self, table: Any) -> list[str]:
        """The paths that a scan of the table reads."""
        planned = table.newScan().planFiles()
        tasks, found = planned.iterator(), []
        while tasks.hasNext():
            found.append(tasks.next().file().location())
        planned.close()
        return sorted(found)


@contextmanager
def thrown(name: str, message: str = "") -> Iterator[None]:
    """The block ends in that Java exception, whose message has that text."""
    with pytest.raises(Py4JJavaError) as failure:
        yield
    exception = failure.value.java_exception
    assert exception.getClass().getSimpleName() == name, str(exception)
    assert message in (exception.getMessage() or "")


@pytest.fixture(scope="session")
def java_iceberg() -> Iterator[JavaIceberg]:
    """The JVM."""
    site = next(_SITE.glob("python*/site-packages"), None)
    if site is None or not (site / _JAR).exists():
        pytest.skip(
            "Iceberg's Java client is not installed: run `make bench ARGS=--quick` once, which sets up .venv-spark35"
        )
    jars = [site / _JAR, *sorted((site / "pyspark/jars").glob("*.jar"))]
    port = launch_gateway(classpath=":".join(map(str, jars)), die_on_exit=True, javaopts=["-Xmx512m"])
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield JavaIceberg(gateway)
    finally:
        gateway.shutdown()
