"""Views: their first metadata and their updates, as Iceberg's own view metadata builder makes them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pyiceberg.view.metadata import ViewMetadata

from catalog.documents import JUNK, LOCATION, NOW, TAXI, UUID, Document, field, places, schema, with_junk
from frazil.catalog.errors import CatalogError, InvalidRequest
from frazil.catalog.view_metadata import check_view_metadata, new_view_metadata
from frazil.catalog.view_updates import VIEW_UPDATES, apply_view_updates

LATER = NOW + 1_000_000
WIDER = schema(*TAXI["fields"], field(4, "fare", "double"))


def sql(dialect: str = "spark", text: str = "select * from trips") -> Document:
    return {"type": "sql", "sql": text, "dialect": dialect}


def version(number: int, *queries: Document, **more: Any) -> Document:
    return {
        "version-id": number,
        "timestamp-ms": NOW + number,
        "schema-id": 0,
        "summary": {"engine-name": "test"},
        "representations": list(queries or [sql(text=f"select {number}")]),
        "default-namespace": ["db"],
        **more,
    }


def new_view(*queries: Document, **request: Any) -> Document:
    body = {"name": "v", "schema": TAXI, "view-version": version(1, *queries), "properties": {}, **request}
    return new_view_metadata(body, view_uuid=UUID, location=LOCATION, now_ms=NOW)


def apply(metadata: Document, *updates: Any, now_ms: int = LATER) -> Document:
    return apply_view_updates(metadata, updates, now_ms=now_ms)


def replace_with(changed: Document) -> list[Document]:
    return [
        {"action": "add-view-version", "view-version": changed},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]


def test_pyiceberg_reads_what_a_new_view_says() -> None:
    view = new_view(sql("spark"), sql("trino"), properties={"comment": "x"})
    read = ViewMetadata.model_validate_json(json.dumps(view))
    assert (read.view_uuid, read.location, read.current_version_id) == (UUID, LOCATION, 1)
    assert [one.root.dialect for one in read.versions[0].representations] == ["spark", "trino"]
    assert read.version_log[0].timestamp_ms == read.versions[0].timestamp_ms == NOW + 1
    assert check_view_metadata(view) == view


def test_the_schema_id_of_the_first_version_is_that_of_the_schema_it_came_with() -> None:
    view = new_view(**{"view-version": version(7, **{"schema-id": 99})})
    assert (view["versions"][0]["version-id"], view["versions"][0]["schema-id"]) == (1, 0)


def test_replacing_a_view_adds_a_version_and_keeps_the_old() -> None:
    view = new_view()
    before = copy.deepcopy(view)
    schema_update = {"action": "add-schema", "schema": WIDER}
    after = apply(view, schema_update, *replace_with(version(1, sql(text="select 2"), **{"schema-id": -1})))
    assert view == before
    assert [one["version-id"] for one in after["versions"]] == [1, 2]
    assert (after["current-version-id"], after["versions"][1]["schema-id"]) == (2, 1)
    assert [one["version-id"] for one in after["version-log"]] == [1, 2]


def test_the_same_version_again_is_the_one_the_view_has() -> None:
    view = apply(new_view(), *replace_with(version(2)))
    back = apply(view, *replace_with(version(3, sql(text="select 1"))))
    assert (len(back["versions"]), back["current-version-id"]) == (2, 1)
    assert back["version-log"][-1] == {"version-id": 1, "timestamp-ms": LATER}


def test_updates_that_change_nothing_give_the_very_same_document() -> None:
    view = new_view()
    nothing = [
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "set-location", "location": LOCATION + "/"},
        {"action": "set-properties", "updates": {}},
        {"action": "remove-properties", "removals": []},
        {"action": "add-schema", "schema": TAXI},
        {"action": "set-current-view-version", "view-version-id": 1},
    ]
    assert apply(view, *nothing) is view


def test_properties_and_location_change() -> None:
    view = apply(
        new_view(properties={"a": "1", "b": "2"}),
        {"action": "set-properties", "updates": {"c": "3"}},
        {"action": "remove-properties", "removals": ["a", "nothing"]},
        {"action": "set-location", "location": "file:///moved/"},
    )
    assert (view["properties"], view["location"]) == ({"b": "2", "c": "3"}, "file:///moved")


def test_a_view_keeps_as_many_versions_as_its_property_says_and_always_the_current_one() -> None:
    view = new_view(properties={"version.history.num-entries": "2"})
    for number in (2, 3):
        view = apply(view, *replace_with(version(number)))
    assert [one["version-id"] for one in view["versions"]] == [2, 3]
    assert [one["version-id"] for one in view["version-log"]] == [2, 3]
    back = apply(view, {"action": "set-current-view-version", "view-version-id": 2})
    added = apply(back, {"action": "add-view-version", "view-version": version(4)})
    assert [one["version-id"] for one in added["versions"]] == [2, 4]
    assert [one["version-id"] for one in added["version-log"]] == [2]


def test_ten_versions_are_kept_by_default() -> None:
    view = new_view()
    for number in range(2, 15):
        view = apply(view, *replace_with(version(number)))
    assert [one["version-id"] for one in view["versions"]] == list(range(5, 15))


def test_an_engine_that_could_read_the_view_is_not_shut_out_unless_that_is_allowed() -> None:
    view = new_view(sql("spark"), sql("Trino"))
    only_trino = replace_with(version(2, sql("trino", "select 2")))
    with pytest.raises(InvalidRequest) as refusal:
        apply(view, *only_trino)
    assert refusal.value.message == (
        "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\n"
        "Previous dialects: [spark, trino]\nNew dialects: [trino]"
    )
    allowed = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    assert apply(view, allowed, *only_trino)["current-version-id"] == 2


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        (
            [{"action": "set-current-view-version", "view-version-id": -1}],
            "Cannot set last version id: no current version id",
        ),
        (
            [{"action": "set-current-view-version", "view-version-id": 8}],
            "Cannot set current version to unknown version: 8",
        ),
        (replace_with(version(2, **{"schema-id": -1})), "Cannot set last added schema: no schema has been added"),
        (replace_with(version(2, **{"schema-id": 5})), "Cannot add version with unknown schema: 5"),
        (
            replace_with(version(2, sql("spark"), sql("Spark"))),
            "Invalid view version: Cannot add multiple queries for dialect spark",
        ),
        (replace_with(version(2, {"type": "java"})), 'Found unsupported view representations: ["java"]'),
        ([{"action": "assign-uuid", "uuid": "other"}], "Cannot reassign uuid"),
        ([{"action": "upgrade-format-version", "format-version": 0}], "Cannot downgrade v1 view to v0"),
        ([{"action": "upgrade-format-version", "format-version": 2}], "Unsupported format version: 2"),
        ([{"action": "add-snapshot"}], 'Cannot apply update "add-snapshot" to a view'),
        (
            [{"action": "set-properties", "updates": {"version.history.num-entries": "0"}}],
            "version.history.num-entries must be positive but was 0",
        ),
    ],
)
def test_an_update_that_cannot_be_is_refused_in_one_sentence(updates: list[Document], message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        apply(new_view(), *updates)
    assert refusal.value.message.startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, "Cannot parse to a string value: name"),
        ({"schema": ...}, "Cannot parse missing field: schema"),
        ({"view-version": ...}, "Cannot parse missing field: view-version"),
        ({"view-version": version(1) | {"representations": []}}, "Cannot create view without specifying a query"),
        (
            {"view-version": version(1, sql("a"), sql("A"))},
            "Invalid view version: Cannot add multiple queries for dialect a",
        ),
        ({"properties": {"a": None}}, "Cannot parse to a string value: a: null"),
    ],
)
def test_a_request_that_makes_no_valid_view_is_refused(changes: Document, message: str) -> None:
    body = {"name": "v", "schema": TAXI, "view-version": version(1), "properties": {}, **changes}
    with pytest.raises(InvalidRequest) as refusal:
        new_view_metadata(
            {name: value for name, value in body.items() if value is not ...},
            view_uuid=UUID,
            location=LOCATION,
            now_ms=NOW,
        )
    assert refusal.value.message.startswith(message)


def test_damaged_view_metadata_is_not_taken() -> None:
    for changes in (
        {"format-version": 2},
        {"current-version-id": 9},
        {"schemas": []},
        {"versions": {}},
        {"location": 1},
    ):
        with pytest.raises(InvalidRequest):
            check_view_metadata({**new_view(), **changes})


@pytest.mark.parametrize("action", VIEW_UPDATES)
@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, [None], {"a": None}, True])
def test_junk_is_refused_and_never_breaks_anything(action: str, junk: Any) -> None:
    names = ("uuid", "format-version", "schema", "location", "updates", "removals", "view-version", "view-version-id")
    for body in ({}, dict.fromkeys(names, junk)):
        try:
            check_view_metadata(apply(new_view(), {"action": action, **body}))
        except CatalogError as refusal:
            assert refusal.status == 400


def test_metadata_that_is_damaged_anywhere_is_refused_or_can_be_worked_with() -> None:
    view = apply(new_view(properties={"a": "b"}), *replace_with(version(2)))
    updates = [
        {"action": "set-properties", "updates": {"a": "c"}},
        {"action": "add-schema", "schema": WIDER},
        *replace_with(version(3, **{"schema-id": -1})),
    ]
    for path in places(view):
        for junk in JUNK:
            try:
                apply(check_view_metadata(with_junk(view, path, junk)), *updates)
            except CatalogError as refusal:
                assert refusal.status == 400
