"""Vended credentials and remote signing, on a real object store with its own STS."""

from __future__ import annotations

import json
from typing import Any

import botocore.session
import pyarrow as pa
import pytest
import requests
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from pyiceberg.io.fsspec import S3V4RestSigner

from frazil.catalog.principals import Credential
from frazil.catalog.privileges import Place, Privilege
from guarded import SCHEMA, GuardedCatalog, Start, guarded_catalogs
from readers import duckdb_connection
from services.seaweedfs import ROLE_ARN, SeaweedFS

VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
SIGNING = {"X-Iceberg-Access-Delegation": "remote-signing"}
DB = Place(("db",))


@pytest.fixture(scope="module")
def catalog(seaweedfs: SeaweedFS, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A catalog over the store; `db.t` and `db.u` lie there with a file each."""
    with guarded_catalogs(tmp_path_factory.mktemp("delegation")) as start:
        yield _started(start, seaweedfs)


def _started(start: Start, store: SeaweedFS) -> GuardedCatalog:
    properties = {key: value for key, value in store.file_io_properties().items() if key.startswith("s3.")}
    running = start(
        authentication=True,
        warehouse=f"s3://{store.bucket}/delegation",
        storage=properties,
        s3_role_arn=ROLE_ARN,
        s3_credential_seconds=900,
        remote_signing=True,
    )
    running.make("db.t", "db.u")
    return running


@pytest.fixture(scope="module")
def reader(catalog: GuardedCatalog) -> Credential:
    return catalog.principal("reader", (Privilege.READ, DB))


@pytest.fixture(scope="module")
def writer(catalog: GuardedCatalog) -> Credential:
    return catalog.principal("writer", (Privilege.WRITE, DB))


def load(catalog: GuardedCatalog, who: Credential | None, table: str, headers: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = catalog.ask(who, "GET", f"namespaces/db/tables/{table}", **headers).json()
    return found


def s3_client(store: SeaweedFS, config: dict[str, str]) -> Any:
    return botocore.session.Session().create_client(
        "s3",
        region_name=config["client.region"],
        endpoint_url=store.s3_endpoint,
        aws_access_key_id=config["s3.access-key-id"],
        aws_secret_access_key=config["s3.secret-access-key"],
        aws_session_token=config["s3.session-token"],
        config=Config(s3={"addressing_style": "path"}),
    )


def key_in(table: dict[str, Any], name: str) -> dict[str, str]:
    bucket, _, key = table["metadata"]["location"].removeprefix("s3://").partition("/")
    return {"Bucket": bucket, "Key": f"{key}/data/{name}"}


def refused(attempt: Any, **arguments: Any) -> bool:
    """Whether the store says no."""
    try:
        attempt(**arguments)
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    return False


def test_vended_credentials_open_the_table_s_files_and_no_others(
    catalog: GuardedCatalog, seaweedfs: SeaweedFS, writer: Credential
) -> None:
    table, other = (load(catalog, writer, name, VENDED) for name in ("t", "u"))
    client = s3_client(seaweedfs, table["config"])
    client.put_object(**key_in(table, "a"), Body=b"mine")
    assert client.get_object(**key_in(table, "a"))["Body"].read() == b"mine"
    assert refused(client.put_object, **key_in(other, "a"), Body=b"")
    s3_client(seaweedfs, other["config"]).put_object(**key_in(other, "a"), Body=b"theirs")
    assert refused(client.get_object, **key_in(other, "a"))
    bucket = key_in(table, "")["Bucket"]
    listed = client.list_objects_v2(Bucket=bucket, Prefix=key_in(table, "")["Key"])
    assert key_in(table, "a")["Key"] in {each["Key"] for each in listed["Contents"]}
    assert refused(client.list_objects_v2, Bucket=bucket, Prefix=key_in(other, "")["Key"])
    assert refused(client.list_objects_v2, Bucket=bucket)
    client.delete_object(**key_in(table, "a"))


def test_whoever_may_only_read_gets_credentials_that_only_read(
    catalog: GuardedCatalog, seaweedfs: SeaweedFS, reader: Credential, writer: Credential
) -> None:
    table = load(catalog, writer, "t", VENDED)
    s3_client(seaweedfs, table["config"]).put_object(**key_in(table, "b"), Body=b"mine")
    client = s3_client(seaweedfs, load(catalog, reader, "t", VENDED)["config"])
    assert client.get_object(**key_in(table, "b"))["Body"].read() == b"mine"
    assert refused(client.put_object, **key_in(table, "b"), Body=b"")
    assert refused(client.delete_object, **key_in(table, "b"))


def test_credentials_come_only_to_who_asks_and_say_where_they_count_and_until_when(
    catalog: GuardedCatalog, reader: Credential
) -> None:
    assert load(catalog, reader, "t", {})["config"] == {}
    table = load(catalog, reader, "t", VENDED)
    (given,) = table["storage-credentials"]
    assert given["prefix"] == table["metadata"]["location"]
    assert given["config"].items() <= table["config"].items()
    left = int(given["config"]["s3.session-token-expires-at-ms"]) - catalog.backend.clock_ms()
    assert 300_000 < left <= 910_000
    path = given["config"]["client.refresh-credentials-endpoint"].removeprefix("v1/frazil/")
    again = catalog.ask(reader, "GET", path).json()["storage-credentials"]
    assert again == [given]


def test_whoever_may_drop_a_table_but_not_read_it_gets_no_credentials_by_unregistering(catalog: GuardedCatalog) -> None:
    catalog.ask(catalog.root, "POST", "namespaces/db/tables", {"name": "gone", "schema": SCHEMA}).raise_for_status()
    dropper = catalog.principal("dropper", (Privilege.DROP, DB))
    assert catalog.ask(dropper, "POST", "namespaces/db/tables/gone/unregister", **VENDED).status_code == 403


def test_a_staged_create_gives_its_creator_credentials_to_write(catalog: GuardedCatalog, seaweedfs: SeaweedFS) -> None:
    creator = catalog.principal("creator", (Privilege.CREATE, DB))
    request = {"name": "staged", "schema": SCHEMA, "stage-create": True}
    table = catalog.ask(creator, "POST", "namespaces/db/tables", request, **VENDED).json()
    s3_client(seaweedfs, table["config"]).put_object(**key_in(table, "a"), Body=b"first")


def test_sts_that_refuses_is_an_outage_of_the_server_s_own(seaweedfs: SeaweedFS, guarded: Start) -> None:
    catalog = guarded(
        warehouse=f"s3://{seaweedfs.bucket}/no-sts",
        storage={key: value for key, value in seaweedfs.file_io_properties().items() if key.startswith("s3.")},
        s3_role_arn="arn:aws:iam::000000000000:role/unknown",
    )
    catalog.make("db.t")
    error = load(catalog, None, "t", VENDED)["error"]
    assert (error["code"], error["type"]) == (503, "ServiceUnavailableException")
    assert "STS said" in error["message"] and seaweedfs.secret_key not in error["message"]
    create = {"name": "new", "schema": SCHEMA}
    assert catalog.ask(None, "POST", "namespaces/db/tables", create, **VENDED).status_code == 503
    assert catalog.ask(None, "HEAD", "namespaces/db/tables/new").status_code == 404


def test_duckdb_reads_a_table_with_vended_credentials_and_no_key(catalog: GuardedCatalog, reader: Credential) -> None:
    client = catalog.client(catalog.root, **{"header.X-Iceberg-Access-Delegation": "vended-credentials"})
    table = client.create_table("db.rows", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))
    with duckdb_connection().cursor() as connection:
        connection.execute(
            f"CREATE SECRET who (TYPE iceberg, CLIENT_ID '{reader.client_id}', CLIENT_SECRET '{reader.secret}', "
            f"OAUTH2_SERVER_URI '{catalog.uri}/v1/oauth/tokens')"
        )
        connection.execute(f"ATTACH 'frazil' AS lake (TYPE iceberg, ENDPOINT '{catalog.uri}', SECRET who)")
        try:
            assert connection.sql("SELECT sum(id), count(*) FROM lake.db.rows").fetchall() == [(6, 3)]
        finally:
            connection.execute("DETACH lake")
            connection.execute("DROP SECRET who")


def signing_client(catalog: GuardedCatalog, store: SeaweedFS, who: Credential, config: dict[str, str]) -> Any:
    """An S3 client without any key, whose requests PyIceberg's signer has signed by the catalog."""
    signer = S3V4RestSigner({**config, "uri": catalog.uri, "token": catalog.token(who)})
    unsigned = Config(signature_version=UNSIGNED, s3={"addressing_style": "path"})
    client = botocore.session.Session().create_client(
        "s3", region_name=config["client.region"], endpoint_url=store.s3_endpoint, config=unsigned
    )
    client.meta.events.register_last("before-sign.s3", signer)
    return client


def test_pyiceberg_s_signer_writes_and_reads_without_a_key(
    catalog: GuardedCatalog, seaweedfs: SeaweedFS, writer: Credential
) -> None:
    table = load(catalog, writer, "t", SIGNING)
    client = signing_client(catalog, seaweedfs, writer, table["config"])
    client.put_object(**key_in(table, "a b+c=d%/é"), Body=b"signed")
    assert client.get_object(**key_in(table, "a b+c=d%/é"))["Body"].read() == b"signed"
    assert client.head_object(**key_in(table, "a b+c=d%/é"))["ContentLength"] == 6
    upload = client.create_multipart_upload(**key_in(table, "parts"))["UploadId"]
    part = client.upload_part(**key_in(table, "parts"), UploadId=upload, PartNumber=1, Body=b"part")
    done = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
    client.complete_multipart_upload(**key_in(table, "parts"), UploadId=upload, MultipartUpload=done)
    assert client.get_object(**key_in(table, "parts"))["Body"].read() == b"part"
    client.delete_object(**key_in(table, "parts"))


def sign(catalog: GuardedCatalog, who: Credential, table: str, method: str, name: str) -> int:
    """The status of a request to have something signed."""
    place = key_in(load(catalog, catalog.root, table, {}), name)
    uri = f"{catalog.backend.settings.storage['s3.endpoint']}/{place['Bucket']}/{place['Key']}"
    body = {"method": method, "uri": uri, "region": "us-east-1", "headers": {}}
    return catalog.ask(who, "POST", "namespaces/db/tables/t/sign", body).status_code


def test_only_the_methods_of_the_privilege_are_signed_and_only_for_the_table_s_own_files(
    catalog: GuardedCatalog, reader: Credential, writer: Credential
) -> None:
    stranger = catalog.principal("stranger", (Privilege.READ, Place(("db",), "u")))
    assert [sign(catalog, who, "t", "GET", "a") for who in (writer, reader, stranger)] == [200, 200, 403]
    for method in ("PUT", "DELETE", "POST"):
        assert [sign(catalog, who, "t", method, "a") for who in (writer, reader)] == [200, 403]
    assert sign(catalog, writer, "u", "GET", "a") == 403


def test_the_files_of_a_staged_table_are_signed_for_who_may_create_it(
    catalog: GuardedCatalog, seaweedfs: SeaweedFS
) -> None:
    creator = catalog.principal("stager", (Privilege.CREATE, DB))
    request = {"name": "to be", "schema": SCHEMA, "stage-create": True}
    staged = catalog.ask(creator, "POST", "namespaces/db/tables", request, **SIGNING).json()
    client = signing_client(catalog, seaweedfs, creator, staged["config"])
    client.put_object(**key_in(staged, "a"), Body=b"first")
    place = key_in(staged, "a")
    assert s3_client(seaweedfs, _of_the_server(catalog)).get_object(**place)["Body"].read() == b"first"
    assert sign(catalog, creator, "u", "PUT", "a") == 403


def _of_the_server(catalog: GuardedCatalog) -> dict[str, Any]:
    return {**catalog.backend.settings.storage, "client.region": "us-east-1", "s3.session-token": None}


def test_who_asks_for_credentials_gets_them_though_the_metadata_is_the_same(
    catalog: GuardedCatalog, reader: Credential
) -> None:
    first = catalog.ask(reader, "GET", "namespaces/db/tables/t", **VENDED)
    again = {"If-None-Match": first.headers["etag"]}
    assert catalog.ask(reader, "GET", "namespaces/db/tables/t", **VENDED, **again).json()["storage-credentials"]
    assert catalog.ask(reader, "GET", "namespaces/db/tables/t", **again).status_code == 304


def test_the_endpoints_are_announced_where_they_work_and_nowhere_else(catalog: GuardedCatalog, guarded: Start) -> None:
    table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    wanted = {f"GET {table}/credentials", f"POST {table}/sign"}
    bearer = {"Authorization": f"Bearer {catalog.token(catalog.root)}"} if catalog.root else {}
    assert wanted <= set(_announced(catalog, bearer))
    assert not wanted & set(_announced(guarded(), {}))


def _announced(catalog: GuardedCatalog, headers: dict[str, str]) -> list[str]:
    found: list[str] = requests.get(f"{catalog.uri}/v1/config", headers=headers, timeout=10).json()["endpoints"]
    return found


def test_no_key_stands_in_the_log(catalog: GuardedCatalog, writer: Credential) -> None:
    given = load(catalog, writer, "t", VENDED)["config"]
    told = json.dumps(catalog.lines)
    for name in ("s3.secret-access-key", "s3.session-token"):
        assert given[name] not in told
