"""`frazil catalog principal`, `role`, `grant` and `revoke`, and the server's own options about access."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError

from commands import Frazil, Ran
from frazil.cli.main import frazil as frazil_command
from services.processes import free_ports, stop, wait_until


def run(root: Path, *arguments: str, environment: dict[str, str] | None = None) -> Ran:
    """The command in this process."""
    done = CliRunner().invoke(frazil_command, ["catalog", "--root", str(root), *arguments], env=environment)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Ran(done.exit_code, done.stdout, done.stderr)


def test_a_principal_made_by_command_works_with_what_its_role_is_granted(frazil: Frazil) -> None:
    root = frazil.root
    assert run(root, "role", "add", "analysts").code == 0
    made = run(root, "principal", "add", "ann", "--role", "analysts", "--json").document
    assert run(root, "grant", "see", "analysts", "--catalog").out == "analysts may see on the catalog\n"
    assert run(root, "grant", "create", "analysts", "--namespace", "db").code == 0
    (port,) = free_ports(1)
    process = frazil.start("catalog", "--root", str(root), "--port", str(port), "--authentication")
    try:
        uri = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(uri), process)
        assert requests.get(f"{uri}/v1/config", timeout=5).status_code == 401
        client = RestCatalog("ann", uri=uri, credential=f"{made['client_id']}:{made['client_secret']}")
        with pytest.raises(ForbiddenError, match="createNamespace needs the privilege create on the catalog"):
            client.create_namespace("db")
        assert run(root, "grant", "create", "analysts", "--catalog").code == 0
        wait_until(lambda: _creates(client), process)
        assert client.list_namespaces() == [("db",)]
    finally:
        stop(process)
    assert made["client_secret"] not in (frazil.home / "out").read_text() + frazil.said()
    lines = [json.loads(line) for line in (frazil.home / "out").read_text().splitlines() if line.startswith("{")]
    assert {"access", "audit"} == {line["log"] for line in lines}


def _answers(uri: str) -> bool:
    try:
        return requests.get(f"{uri}/health", timeout=5).ok
    except requests.ConnectionError:
        return False


def _creates(client: RestCatalog) -> bool:
    """A grant counts within a second."""
    try:
        client.create_namespace_if_not_exists("db")
    except ForbiddenError:
        return False
    return True


def test_what_was_made_is_listed_and_what_was_removed_is_not(frazil: Frazil) -> None:
    root = frazil.root
    for words in (
        "role add writers", "grant write writers --table db%2Ex.inner.t", "principal add etl", "role assign writers etl",
        "principal add okta --subject 00u1", "principal rotate etl",
    ):  # fmt: skip
        assert run(root, *words.split()).code == 0, words
    roles = run(root, "role", "list", "--json").document["roles"]
    granted = ["write on the table or view db.x.inner.t"]
    assert roles == [{"role": "writers", "principals": ["etl"], "grants": granted}]
    listed = {each["principal"]: each for each in run(root, "principal", "list", "--json").document["principals"]}
    assert (listed["etl"]["roles"], listed["okta"]["subject"]) == (["writers"], "00u1")
    assert "roles: writers" in run(root, "principal", "list").out and "held by: etl" in run(root, "role", "list").out
    for words in (
        "revoke write writers --table db%2Ex.inner.t", "role withdraw writers etl", "role remove writers",
        "principal remove etl", "principal remove okta",
    ):  # fmt: skip
        assert run(root, *words.split()).code == 0, words
    assert run(root, "role", "list", "--json").document == {"roles": []}
    assert run(root, "principal", "list", "--json").document == {"principals": []}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("grant read ghosts --catalog", "there is no role ghosts; make it with `frazil catalog role add ghosts`"),
        ("grant read ghosts", "say on what: one of --catalog, --namespace NS or --table NS.NAME"),
        ("grant read ghosts --catalog --namespace db", "say on what"),
        ("grant read ghosts --table trips", "write the namespace before the name, as db.trips"),
        ("revoke read ghosts --catalog", "the role ghosts is not granted read on the catalog"),
        ("principal rotate ghost", "there is no principal ghost"),
        ("principal add x --role ghosts", "there is no role ghosts"),
        ("--host 0.0.0.0", "turn it on with --authentication"),
        ("--authentication --oidc-issuer https://issuer", "oidc_issuer and oidc_audience go together"),
        ("--oidc-issuer https://issuer --oidc-audience us", "authentication is off"),
        ("--max-nesting 0", "max_nesting is 0; it must be more than 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(tmp_path: Path, words: str, sentence: str) -> None:
    told = run(tmp_path / "lake", *words.split())
    assert (told.code, told.out) == (2, "")
    assert sentence in told.err and told.err.startswith("frazil: ") and told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("FRAZIL_CATALOG_MAX_NESTNG", "3", "FRAZIL_CATALOG_MAX_NESTNG: there is no such setting"),
        ("FRAZIL_CATALOG_MAX_NESTING", "deep", "FRAZIL_CATALOG_MAX_NESTING=deep: it is a whole number"),
        ("FRAZIL_CATALOG_AUTHENTICATION", "maybe", "FRAZIL_CATALOG_AUTHENTICATION=maybe: it is on or off"),
    ],
)
def test_a_setting_in_the_environment_that_cannot_be_is_refused_by_name(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    told = run(tmp_path / "lake", environment={name: value})
    assert told.code == 2 and sentence in told.err
