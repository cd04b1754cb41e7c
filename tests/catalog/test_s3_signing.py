"""What the server signs for a table, and what it refuses to."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.catalog.errors import CatalogError, Forbidden, InvalidRequest
from frazil.catalog.s3_credentials import S3Store
from frazil.catalog.s3_places import S3Endpoint, S3Place, folders_of
from frazil.catalog.s3_signing import Signer, SignRequest

STORE = S3Store("http://store:9000", "eu-west-1", "AKIAEXAMPLE", "secret-key")
TABLE = "http://store:9000/bucket/wh/db/t"
FOLDERS = (S3Place("bucket", "wh/db/t"),)


def request(method: str, uri: str, body: str | None = None, **headers: str) -> SignRequest:
    named = {name.replace("_", "-"): [value] for name, value in headers.items()}
    document: dict[str, Any] = {"method": method, "uri": uri, "region": "eu-west-1", "headers": named}
    return SignRequest.parse(document | ({"body": body} if body is not None else {}))


def sign(asked: SignRequest, store: S3Store = STORE) -> dict[str, Any]:
    return Signer(store).sign(asked, FOLDERS)


def delete_body(*keys: str) -> str:
    named = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{named}</Delete>'


@pytest.mark.parametrize(
    "asked",
    [
        request("GET", f"{TABLE}/data/a.parquet"),
        request("HEAD", f"{TABLE}/data/a%20b.parquet"),
        request("PUT", f"{TABLE}/data/a.parquet?partNumber=1&uploadId=x"),
        request("POST", f"{TABLE}/data/a.parquet?uploads="),
        request("DELETE", f"{TABLE}/data/a.parquet?x-id=DeleteObject"),
        request("GET", "http://store:9000/bucket?list-type=2&prefix=wh%2Fdb%2Ft%2Fdata%2F"),
        request("GET", "http://bucket.store:9000/?list-type=2&prefix=wh/db/t/"),
        request("GET", "http://bucket.store:9000/wh/db/t/data/a.parquet"),
        request("POST", "http://store:9000/bucket?delete", delete_body("wh/db/t/a", "wh/db/t/b")),
        request("PUT", f"{TABLE}/copy", x_amz_copy_source="/bucket/wh/db/t/a"),
    ],
    ids=lambda asked: f"{asked.method} {asked.uri}",
)
def test_a_request_about_the_table_s_files_is_signed(asked: SignRequest) -> None:
    signed = sign(asked)
    assert signed["uri"] == asked.uri
    assert signed["headers"]["Authorization"][0].startswith("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/")
    assert "secret-key" not in str(signed)


@pytest.mark.parametrize(
    "asked",
    [
        request("GET", "http://store:9000/bucket/wh/db/other/a"),
        request("GET", "http://store:9000/bucket/wh/db/t"),
        request("GET", "http://store:9000/bucket/wh/db/t2/a"),
        request("GET", "http://store:9000/another/wh/db/t/a"),
        request("GET", f"{TABLE}/../other/a"),
        request("GET", f"{TABLE}/%2e%2e/other/a"),
        request("GET", f"{TABLE}/%252e%252e/other/a"),
        request("GET", f"{TABLE}/..%2fother/a"),
        request("GET", f"{TABLE}/..%5cother"),
        request("GET", "http://evil.example/bucket/wh/db/t/a"),
        request("GET", "http://another.store:9000/bucket/wh/db/t/a"),
        request("GET", f"{TABLE}/a?acl"),
        request("PUT", f"{TABLE}/a?tagging"),
        request("PUT", f"{TABLE}/a", x_amz_acl="public-read"),
        request("PUT", f"{TABLE}/a", X_Amz_Grant_Read="uri=all"),
        request("PUT", f"{TABLE}/a", x_amz_copy_source="/bucket/wh/db/other/a"),
        request("PUT", f"{TABLE}/a", x_amz_copy_source="bucket%2Fwh%2Fdb%2Ft%2F..%2Fother"),
        request("GET", "http://store:9000/bucket?list-type=2&prefix=wh/db/t"),
        request("GET", "http://store:9000/bucket?list-type=2"),
        request("GET", "http://store:9000/bucket?policy&prefix=wh/db/t/"),
        request("GET", "http://store:9000/"),
        request("HEAD", "http://store:9000/bucket"),
        request("DELETE", "http://store:9000/bucket"),
        request("POST", "http://store:9000/bucket?delete", delete_body("wh/db/t/a", "wh/db/other/b")),
        request("POST", "http://store:9000/bucket?delete", delete_body("wh/db/t/../other/b")),
        request("PATCH", f"{TABLE}/a"),
    ],
    ids=lambda asked: f"{asked.method} {asked.uri}",
)
def test_a_request_about_anything_else_is_refused(asked: SignRequest) -> None:
    with pytest.raises(Forbidden, match="Cannot sign the request"):
        sign(asked)


@pytest.mark.parametrize(
    "asked",
    [
        request("POST", "http://store:9000/bucket?delete"),
        request("POST", "http://store:9000/bucket?delete", "<Delete>"),
        request("POST", "http://store:9000/bucket?delete", '<!DOCTYPE x [<!ENTITY a "b">]><Delete/>'),
        request("POST", "http://store:9000/bucket?delete", "<Delete></Delete>"),
        request("GET", "ftp://store:9000/bucket/wh/db/t/a"),
        request("GET", "http://user@store:9000/bucket/wh/db/t/a"),
        request("GET", f"{TABLE}/a?x-id=1&x-id=2"),
    ],
    ids=lambda asked: f"{asked.method} {asked.uri}",
)
def test_a_request_that_cannot_be_understood_for_sure_is_refused(asked: SignRequest) -> None:
    with pytest.raises(InvalidRequest, match="Cannot sign the request"):
        sign(asked)


@pytest.mark.parametrize(
    "document",
    [{}, {"method": "GET", "uri": TABLE, "region": "x", "headers": {"a": "b"}},
     {"method": "GET", "uri": TABLE, "region": "x", "headers": {}, "provider": "gcs"}],
)  # fmt: skip
def test_a_document_that_is_no_sign_request_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(CatalogError) as refused:
        SignRequest.parse(document)
    assert refused.value.status == 400


def test_a_host_that_the_client_names_is_not_what_is_signed() -> None:
    signed = sign(request("GET", f"{TABLE}/a", host="evil.store:9000"))
    assert "host" not in {name.lower() for name in signed["headers"]}


def test_what_is_deleted_together_is_bound_to_the_signature() -> None:
    hashes = {
        sign(request("POST", "http://store:9000/bucket?delete", delete_body(key), x_amz_content_sha256="UNSIGNED-PAYLOAD"))
        ["headers"]["X-Amz-Content-SHA256"][0] for key in ("wh/db/t/a", "wh/db/t/b")
    }  # fmt: skip
    assert len(hashes) == 2 and all(len(each) == 64 for each in hashes)


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("https://bucket.s3.eu-west-1.amazonaws.com/a/b", S3Place("bucket", "a/b")),
        ("https://my.bucket.s3.amazonaws.com/a", S3Place("my.bucket", "a")),
        ("https://bucket.s3.dualstack.eu-west-1.amazonaws.com/a", S3Place("bucket", "a")),
        ("https://s3.eu-west-1.amazonaws.com/bucket/a", S3Place("bucket", "a")),
    ],
)
def test_the_addresses_of_amazon_are_understood(uri: str, place: S3Place) -> None:
    assert S3Endpoint().place_of(uri) == place


@pytest.mark.parametrize(
    "uri",
    ["https://bucket.s3.evil.com/a", "https://amazonaws.com/bucket/a", "https://bucket.s3-accesspoint.amazonaws.com/a",
     "https://ec2.amazonaws.com/bucket/a"],
)  # fmt: skip
def test_an_address_that_is_not_surely_amazon_s_is_refused(uri: str) -> None:
    with pytest.raises(Forbidden):
        S3Endpoint().place_of(uri)


@given(st.lists(st.sampled_from(["..", ".", "a", "%2e%2e", "%252e", "%2f", "%5c", "\\", "", "t", "t2"]), max_size=6))
def test_no_spelling_of_a_path_is_signed_that_a_store_could_take_for_another_folder(parts: list[str]) -> None:
    uri = f"{TABLE}/{'/'.join(parts)}"
    try:
        sign(request("GET", uri))
    except CatalogError:
        return
    walked = unquote(unquote(urlsplit(uri).path)).replace("\\", "/")
    assert posixpath.normpath(walked).startswith("/bucket/wh/db/t")
    assert posixpath.normpath(walked).removeprefix("/bucket/wh/db/t")[:1] in ("", "/")


def test_the_folders_of_a_table_are_its_location_and_those_its_properties_name() -> None:
    metadata = {
        "location": "s3://bucket/wh/t/",
        "properties": {
            "write.data.path": "s3a://other/d",
            "write.metadata.path": "s3://bucket/wh/t/metadata",
            "x": "s3://y/z",
        },
    }
    assert folders_of(metadata) == (S3Place("bucket", "wh/t"), S3Place("other", "d"))
    assert folders_of({"location": "file:///wh/t"}) == ()
    assert folders_of({"location": "s3://bucket"}) == ()
