"""Iceberg's own Java client against the guard: its tokens, its errors, and its files without keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from frazil.catalog.principals import Credential
from frazil.catalog.privileges import CATALOG, Place, Privilege
from guarded import GuardedCatalog, Start, guarded_catalogs
from services.java_iceberg import JavaIceberg, thrown
from services.seaweedfs import ROLE_ARN, SeaweedFS

DB = Place(("db",))
S3_FILE_IO = "smfs.shaded.org.apache.iceberg.aws.s3.S3FileIO"

Connect = Callable[..., Any]


@pytest.fixture
def connect(java_iceberg: JavaIceberg) -> Iterator[Connect]:
    """Makes Java clients; closed at the end, for they refresh their tokens until then."""
    made: list[Any] = []

    def client(catalog: GuardedCatalog, who: Credential, **properties: str) -> Any:
        settings = {"rest__auth__type": "oauth2", "credential": str(who), **properties}
        made.append(java_iceberg.catalog(catalog.uri, **settings))
        return made[-1]

    yield client
    for each in made:
        each.close()


def test_it_refreshes_its_token_before_that_ends(guarded: Start, connect: Connect, java_iceberg: JavaIceberg) -> None:
    catalog = guarded(authentication=True, token_seconds=2)
    client = connect(catalog, catalog.principal("ann", (Privilege.CREATE, CATALOG)))

    def refreshed() -> int:
        return sum(line["operation"] == "getToken" and line["status"] == 200 for line in catalog.lines)

    number = 0
    while refreshed() < 5:
        client.createNamespace(java_iceberg.namespace(f"n{number}"))
        number += 1
    assert {line["status"] for line in catalog.lines} == {200}


def test_it_knows_what_a_refusal_means(guarded: Start, connect: Connect, java_iceberg: JavaIceberg) -> None:
    catalog = guarded(authentication=True)
    catalog.make("db.t")
    reader = catalog.principal("reader", (Privilege.READ, DB))
    client = connect(catalog, reader)
    with thrown("ForbiddenException", "createNamespace needs the privilege create on the catalog"):
        client.createNamespace(java_iceberg.namespace("other"))
    with thrown("ForbiddenException", "dropTable needs the privilege drop"):
        client.dropTable(java_iceberg.identifier("db", "t"))
    with thrown("NotAuthorizedException"):
        connect(catalog, Credential(reader.client_id, "wrong"))


@pytest.fixture(scope="module")
def on_s3(seaweedfs: SeaweedFS, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCatalog]:
    """A catalog over a real store that vends and signs."""
    with guarded_catalogs(tmp_path_factory.mktemp("java")) as start:
        running = start(
            authentication=True,
            warehouse=f"s3://{seaweedfs.bucket}/java",
            storage={key: value for key, value in seaweedfs.file_io_properties().items() if key.startswith("s3.")},
            s3_role_arn=ROLE_ARN,
            remote_signing=True,
        )
        running.make("db.t", "db.u")
        yield running


@pytest.mark.parametrize("way", ["vended-credentials", "remote-signing"])
def test_its_file_io_reads_and_writes_the_table_s_files_without_a_key_and_no_others(
    on_s3: GuardedCatalog, connect: Connect, java_iceberg: JavaIceberg, way: str
) -> None:
    writer = on_s3.principal(f"writer by {way}", (Privilege.WRITE, DB))
    delegation = {"header__X-Iceberg-Access-Delegation": way, "io_impl": S3_FILE_IO}
    table, other = (
        connect(on_s3, writer, **delegation).loadTable(java_iceberg.identifier("db", name)) for name in ("t", "u")
    )
    places = [f"{table.location()}/data/by Java+{way}-{number}" for number in range(3)]
    for place in places:
        stream = table.io().newOutputFile(place).create()
        stream.write(bytearray(b"mine"))
        stream.close()
        assert table.io().newInputFile(place).getLength() == 4
    with thrown("S3Exception" if way == "vended-credentials" else "ForbiddenException"):
        table.io().newInputFile(f"{other.location()}/data/x").getLength()
    table.io().deleteFile(places[0])
    table.io().deleteFiles(places[1:])
    assert not any(table.io().newInputFile(place).exists() for place in places)
