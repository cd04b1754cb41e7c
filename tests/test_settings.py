"""Settings are parsed once, and what makes no sense is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil.errors import BadInput
from frazil.settings import CatalogSettings, IngestSettings, RejectLimit, state_folder


@pytest.fixture(autouse=True)
def no_pyiceberg_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_with_nothing_said_the_lake_is_in_the_working_folder(tmp_path: Path) -> None:
    assert CatalogSettings.choose(None, None, {}) == CatalogSettings(root=str(tmp_path / "lake"))


def test_a_default_catalog_of_pyiceberg_goes_before_the_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", "http://127.0.0.1:1")
    assert CatalogSettings.choose(None, None, {}) == CatalogSettings(name="default")


def test_an_option_wins_over_the_environment(tmp_path: Path) -> None:
    environment = {"FRAZIL_ROOT": str(tmp_path / "a"), "FRAZIL_CATALOG": ""}
    assert CatalogSettings.choose(None, None, environment).root == str(tmp_path / "a")
    assert CatalogSettings.choose(str(tmp_path / "b"), None, environment).root == str(tmp_path / "b")
    assert CatalogSettings.choose(None, "prod", environment) == CatalogSettings(name="prod")


@pytest.mark.parametrize(
    ("root", "name", "environment", "words"),
    [
        ("a", "b", {}, "--root or --catalog"),
        (None, None, {"FRAZIL_ROOT": "a", "FRAZIL_CATALOG": "b"}, "FRAZIL_ROOT and FRAZIL_CATALOG"),
        ("s3://bucket", None, {}, "not a local folder"),
    ],
)
def test_two_catalogs_or_a_remote_lake_are_refused(
    root: str | None, name: str | None, environment: dict[str, str], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        CatalogSettings.choose(root, name, environment)


def test_a_file_address_is_a_local_folder() -> None:
    assert CatalogSettings.choose("file:///a/b", None, {}).root == "/a/b"


def test_settings_survive_the_jobs_log_but_secrets_do_not_enter_it() -> None:
    settings = IngestSettings(
        sources=("a", "b"),
        table="db.t",
        catalog=CatalogSettings(root="/lake"),
        partition_by="day(ts)",
        summary={"batch": "7"},
        spark_conf={"spark.executor.memory": "2g"},
        shard_bytes=5,
        format="csv",
        options={"delimiter": ";", "schema": "id bigint"},
    )
    assert IngestSettings.from_document(json.loads(json.dumps(settings.to_document()))) == settings
    secret = IngestSettings(
        ("a",),
        "db.t",
        CatalogSettings(name="c"),
        spark_conf={"spark.hadoop.fs.s3a.secret.key": "hush"},
        options={"password": "hush"},
    )
    assert "hush" not in json.dumps(secret.to_document())


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (None, RejectLimit()),
        ("0", RejectLimit(rows=0)),
        ("1000", RejectLimit(rows=1000)),
        (" 0.5 %", RejectLimit(None, 0.5)),
    ],
)
def test_a_limit_of_rejected_rows_is_a_number_or_a_share(text: str | None, limit: RejectLimit) -> None:
    assert RejectLimit.parse(text) == limit


@pytest.mark.parametrize("text", ["", "%", "many", "-1", "1.5", "101%", "-1%", "nan%"])
def test_any_other_limit_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--max-rejected"):
        RejectLimit.parse(text)


@pytest.mark.parametrize(
    ("limit", "rejected", "rows", "passed"),
    [
        (RejectLimit(), 10**9, 10**9, False),
        (RejectLimit(rows=2), 2, None, False),
        (RejectLimit(rows=2), 3, None, True),
        (RejectLimit(percent=10), 1, 10, False),
        (RejectLimit(percent=10), 2, 19, True),
        (RejectLimit(percent=10), 2, None, False),
        (RejectLimit(percent=0), 1, 10**9, True),
    ],
)
def test_a_share_is_of_all_rows_and_told_when_they_are_known(
    limit: RejectLimit, rejected: int, rows: int | None, passed: bool
) -> None:
    assert limit.is_passed(rejected, rows) is passed


def test_jobs_are_kept_where_the_environment_says() -> None:
    assert state_folder({"FRAZIL_STATE": "/a"}) == Path("/a")
    assert state_folder({"XDG_STATE_HOME": "/b"}) == Path("/b/frazil")
    assert state_folder({}) == Path.home() / ".local/state/frazil"
