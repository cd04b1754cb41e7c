"""A server that is killed at any step leaves the old table or the new one, and a marker that a janitor finishes with."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from catalog.test_staged_creates import CREATE, counters, creation, stage
from frazil.steps import CRASH_AT, STEPS
from readers import local_path
from services.frazil_catalog import FrazilCatalog, running_catalog

TO_A_TABLE = ["catalog:metadata-written", "catalog:pointer-moved", "catalog:committed"]
OF_A_STAGED_CREATE = [*TO_A_TABLE, "catalog:finalised"]
STAGING = ["catalog:staged-written", "catalog:staged"]
CLEANING = ["catalog:cleaned"]
VISIBLE_SINCE = "catalog:committed"


def killed(root: Path, step: str, *options: str, do: Callable[[FrazilCatalog], Any] | None) -> None:
    """Run a server that ends itself at the step, and do what makes it pass there."""
    with running_catalog(root, *options, environment={CRASH_AT: step}) as server:
        if do is not None:
            with pytest.raises((OSError, HTTPException)):
                do(server)
        assert server.process.wait(30) == -signal.SIGKILL


def independent(server: FrazilCatalog) -> SqlCatalog:
    return SqlCatalog("frazil", uri=server.database, warehouse=f"file://{server.root}/warehouse")


def test_every_step_of_the_catalog_is_tried() -> None:
    tried = {*TO_A_TABLE, *OF_A_STAGED_CREATE, *STAGING, *CLEANING}
    assert {step for step in STEPS if step.startswith("catalog:")} == tried


@pytest.mark.parametrize("step", TO_A_TABLE)
def test_a_commit_that_is_killed_is_there_as_a_whole_or_not_at_all(tmp_path: Path, step: str) -> None:
    root, update = tmp_path / "lake", {"action": "set-properties", "updates": {"a": "1"}}
    with running_catalog(root) as server:
        place = server.new_namespace()
        before = server.new_table(place)
    killed(root, step, do=lambda server: server.commit(place, "t", [], [update]))
    with running_catalog(root) as server:
        after = server.ask("GET", f"/v1/namespaces/{place}/tables/t").document
        assert (after["metadata"]["properties"].get("a") == "1") == (step == VISIBLE_SINCE)
        assert (after["metadata-location"] != before["metadata-location"]) == (step == VISIBLE_SINCE)
        assert independent(server).load_table((place, "t")).metadata_location == after["metadata-location"]
        again = server.commit(place, "t", [], [{"action": "set-properties", "updates": {"b": "2"}}])
        assert again.document["metadata"]["properties"]["b"] == "2"


@pytest.mark.parametrize("staging", ["internal", "table"])
@pytest.mark.parametrize("step", OF_A_STAGED_CREATE)
def test_a_finalise_that_is_killed_makes_the_whole_table_or_none(tmp_path: Path, step: str, staging: str) -> None:
    root, options = tmp_path / "lake", ("--staging", staging)
    with running_catalog(root, *options) as server:
        place = server.new_namespace()
        updates = creation(stage(server, place)["metadata"], a="1")
    killed(root, step, *options, do=lambda server: server.commit(place, "t", CREATE, updates))
    with running_catalog(root, *options) as server:
        found = server.ask("GET", f"/v1/namespaces/{place}/tables/t")
        assert found.status == (200 if step == VISIBLE_SINCE else 404)
        assert counters(server)["finalised"] == int(step == VISIBLE_SINCE)
        again = server.commit(place, "t", CREATE, updates)
        assert again.status == (409 if step == VISIBLE_SINCE else 200)
        table = independent(server).load_table((place, "t"))
        assert table.properties["a"] == "1"
        assert str(table.metadata.table_uuid) == updates[0]["uuid"]


@pytest.mark.parametrize("step", STAGING)
def test_a_staging_that_is_killed_leaves_nothing_that_anybody_sees(tmp_path: Path, step: str) -> None:
    root = tmp_path / "lake"
    with running_catalog(root) as server:
        place = server.new_namespace()
    killed(root, step, do=lambda server: stage(server, place))
    with running_catalog(root) as server:
        assert server.ask("GET", f"/v1/namespaces/{place}/tables").document["identifiers"] == []
        assert counters(server)["staged"] == int(step == "catalog:staged")
        assert server.new_table(place)["metadata"]["last-column-id"] == 1


def test_a_janitor_that_is_killed_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    root, options = tmp_path / "lake", ("--staged-for", "0.2", "--janitor-every", "0.1")
    with running_catalog(root, "--staged-for", "0.2", "--janitor-every", "3600") as server:
        staged = stage(server, server.new_namespace())
    killed(root, "catalog:cleaned", *options, do=None)
    assert not local_path(staged["metadata-location"]).exists()
    with running_catalog(root, *options) as server:
        while counters(server)["cleaned"] == 0:
            os.sched_yield()
        assert counters(server)["cleanup_failures"] == 0
