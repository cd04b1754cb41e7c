"""Java's ViewCatalogTests, told to the server over HTTP."""

from __future__ import annotations

import pytest

from catalog.expectations import OTHER_SCHEMA, SCHEMA, client, db, ident, refused, unused
from catalog.java_client import Ident, JavaClient, Refused, View, set_properties, sql, version_of
from readers import local_path

__all__ = ["client", "db", "ident"]

SPARK = sql("spark", "select * from ns.tbl")
TRINO = sql("trino", "select * from ns.tbl using X")
MAY_DROP = {"replace.drop-dialect.allowed": "true"}


def make(client: JavaClient, ident: Ident, *queries: dict[str, object], **more: object) -> View:
    return client.create_view(ident, SCHEMA, *(queries or (SPARK,)), **more)


class TestCreating:
    def test_a_view_is_there_once_created_and_gone_once_dropped(self, client: JavaClient, ident: Ident) -> None:
        assert not client.view_exists(ident)
        view = make(client, ident)
        assert client.view_exists(ident)
        assert view.location
        loaded = client.load_view(ident)
        assert loaded.metadata == view.metadata
        assert [one["version-id"] for one in loaded.metadata["version-log"]] == [1]
        assert [(one["schema-id"], one["fields"]) for one in loaded.metadata["schemas"]] == [(0, SCHEMA["fields"])]
        assert loaded.metadata["versions"] == [loaded.current]
        assert loaded.current == version_of(ident, 1, SPARK)
        assert client.drop_view(ident)
        assert not client.view_exists(ident)
        assert not client.drop_view(ident)

    def test_everything_that_is_asked_for_is_kept(self, client: JavaClient, ident: Ident) -> None:
        location = elsewhere(client, ident)
        asked = {"properties": {"prop1": "val1", "prop2": "val2"}, "location": location}
        view = make(client, ident, SPARK, TRINO, view_version={"default-catalog": "prod"}, **asked)
        assert view.metadata["location"] == location
        assert {"prop1": "val1", "prop2": "val2"}.items() <= view.metadata["properties"].items()
        assert view.current["representations"] == [SPARK, TRINO]
        assert view.current["default-catalog"] == "prod"

    def test_its_metadata_may_lie_elsewhere(self, client: JavaClient, ident: Ident) -> None:
        custom = elsewhere(client, ident)
        view = make(client, ident, properties={"write.metadata.path": custom})
        assert view.location.startswith(custom)
        assert local_path(view.location).exists()

    def test_a_view_without_a_query_or_with_two_of_a_dialect_is_refused(self, client: JavaClient, ident: Ident) -> None:
        with refused("IllegalArgumentException", "Cannot create view without specifying a query"):
            client.create_view(ident, SCHEMA)
        message = "Invalid view version: Cannot add multiple queries for dialect trino"
        with refused("IllegalArgumentException", message):
            make(client, ident, TRINO, sql("TRINO", "select 2"))
        assert not client.view_exists(ident)

    @pytest.mark.parametrize("without", ["schema", "view-version"])
    def test_a_view_without_a_schema_or_version_is_refused(
        self, client: JavaClient, ident: Ident, without: str
    ) -> None:
        body = {"name": ident.name, "schema": SCHEMA, "view-version": version_of(ident, 1, SPARK), "properties": {}}
        del body[without]
        with refused("IllegalArgumentException", f"Cannot parse missing field: {without}"):
            client.ask("POST", f"/v1/namespaces/{ident.namespace[0]}/views", body)

    def test_a_view_without_a_default_namespace_is_refused(self, client: JavaClient, ident: Ident) -> None:
        version = version_of(ident, 1, SPARK)
        del version["default-namespace"]
        body = {"name": ident.name, "schema": SCHEMA, "view-version": version, "properties": {}}
        with refused("IllegalArgumentException", "default-namespace"):
            client.ask("POST", f"/v1/namespaces/{ident.namespace[0]}/views", body)

    def test_a_name_that_a_view_has_is_taken(self, client: JavaClient, ident: Ident) -> None:
        make(client, ident)
        with refused("AlreadyExistsException", f"View already exists: {ident}"):
            make(client, ident)

    def test_a_name_that_a_table_has_is_taken(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, SCHEMA)
        with refused("AlreadyExistsException", f"Table with same name already exists: {ident}"):
            make(client, ident)

    def test_a_table_cannot_take_the_name_of_a_view(self, client: JavaClient, ident: Ident) -> None:
        make(client, ident)
        for create in (client.create_table, client.create_transaction, client.create_or_replace_transaction):
            with refused("AlreadyExistsException", f"View with same name already exists: {ident}"):
                create(ident, SCHEMA)
        with refused("NoSuchTableException", f"Table does not exist: {ident}"):
            client.replace_transaction(ident, SCHEMA)

    def test_a_view_cannot_be_created_in_a_namespace_that_is_missing(self, client: JavaClient) -> None:
        name = unused()
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            make(client, Ident((name,), "view"))


class TestLoading:
    def test_one_that_is_missing_cannot_be_loaded(self, client: JavaClient, ident: Ident) -> None:
        for missing in (ident, Ident((unused(),), "view")):
            assert not client.view_exists(missing)
            with refused("NoSuchViewException", f"View does not exist: {missing}"):
                client.load_view(missing)

    def test_a_table_is_no_view_and_a_view_is_no_table(self, client: JavaClient, ident: Ident) -> None:
        view = Ident(ident.namespace, "view")
        client.create_table(ident, SCHEMA)
        make(client, view)
        assert not client.view_exists(ident)
        assert not client.table_exists(view)
        with refused("NoSuchViewException", f"View does not exist: {ident}"):
            client.load_view(ident)
        with refused("NoSuchTableException", f"Table does not exist: {view}"):
            client.load_table(view)
        assert not client.drop_view(ident)
        assert not client.drop_table(view)
        assert client.list_tables(*ident.namespace) == [ident]
        assert client.list_views(*ident.namespace) == [view]

    def test_the_list_follows_what_is_created_and_dropped(self, client: JavaClient, db: str) -> None:
        client.create_namespace(db, "other")
        first, second, third = Ident((db,), "view_1"), Ident((db,), "view_2"), Ident((db, "other"), "view_1")
        assert client.list_views(db) == []
        for one in (first, second, third):
            make(client, one)
        assert set(client.list_views(db)) == {first, second}
        assert client.list_views(db, "other") == [third]
        client.drop_view(first)
        assert client.list_views(db) == [second]
        with refused("NoSuchNamespaceException", "Namespace does not exist"):
            client.list_views(unused())

    @pytest.mark.parametrize("odd", ["vi/ew", "vi.ew", "vi ew", "vi+ew", "vi%2Few", "vï🤪"])
    def test_a_name_may_hold_any_sign(self, client: JavaClient, db: str, odd: str) -> None:
        ident = Ident((db,), odd)
        make(client, ident)
        assert client.list_views(db) == [ident]
        client.load_view(ident).commit(set_properties(a="b"))
        assert client.load_view(ident).metadata["properties"]["a"] == "b"
        assert client.drop_view(ident)

    def test_a_namespace_that_holds_a_view_cannot_be_dropped(self, client: JavaClient, db: str, ident: Ident) -> None:
        make(client, ident)
        with refused("NamespaceNotEmptyException", "is not empty"):
            client.drop_namespace(db)
        client.drop_view(ident)
        assert client.drop_namespace(db)


class TestRenaming:
    def test_a_renamed_view_is_as_it_was(self, client: JavaClient, ident: Ident, db: str) -> None:
        client.create_namespace(db, "other")
        original = make(client, ident)
        for target in (Ident((db,), "renamed"), Ident((db, "other"), "renamed")):
            client.rename_view(ident, target)
            assert not client.view_exists(ident)
            assert client.load_view(target).metadata == original.metadata
            ident = target

    def test_it_cannot_be_renamed_into_a_namespace_that_is_missing(self, client: JavaClient, ident: Ident) -> None:
        make(client, ident)
        name = unused()
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            client.rename_view(ident, Ident((name,), "renamed"))

    def test_one_that_is_missing_cannot_be_renamed(self, client: JavaClient, ident: Ident) -> None:
        with refused("NoSuchViewException", "View does not exist"):
            client.rename_view(ident, Ident(ident.namespace, "renamed"))

    def test_it_cannot_take_the_name_of_a_view_or_a_table(self, client: JavaClient, ident: Ident) -> None:
        view, table = Ident(ident.namespace, "viewTwo"), Ident(ident.namespace, "table")
        make(client, ident)
        make(client, view)
        client.create_table(table, SCHEMA)
        with refused("AlreadyExistsException", f"Cannot rename {ident} to {view}. View already exists"):
            client.rename_view(ident, view)
        with refused("AlreadyExistsException", f"Cannot rename {ident} to {table}. Table already exists"):
            client.rename_view(ident, table)
        with refused("AlreadyExistsException", f"Cannot rename {table} to {view}. View already exists"):
            client.rename_table(table, view)
        assert client.view_exists(ident)


class TestReplacing:
    def test_a_replaced_view_keeps_its_versions(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident, SPARK, TRINO, properties=MAY_DROP)
        first = view.current
        view.replace(OTHER_SCHEMA, TRINO, default_catalog="default")
        loaded = client.load_view(ident)
        assert [one["version-id"] for one in loaded.metadata["version-log"]] == [1, 2]
        assert [one["schema-id"] for one in loaded.metadata["schemas"]] == [0, 1]
        assert loaded.metadata["versions"] == [first, loaded.current]
        assert loaded.current["version-id"] == 2
        assert loaded.current["representations"] == [TRINO]
        assert loaded.current["schema-id"] == 1
        assert loaded.current["default-catalog"] == "default"
        assert loaded.current["default-namespace"] == list(ident.namespace)

    def test_the_query_of_one_dialect_is_replaced(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident, SPARK)
        updated = sql("spark", "select * from ns.updated_tbl")
        view.replace(SCHEMA, updated)
        loaded = client.load_view(ident)
        assert loaded.current["representations"] == [updated]
        assert len(loaded.metadata["schemas"]) == 1
        assert [one["version-id"] for one in loaded.metadata["versions"]] == [1, 2]

    def test_a_dialect_is_not_lost_unless_that_is_allowed(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident, SPARK, TRINO)
        with refused("ValidationException", "Cannot replace view due to loss of view dialects"):
            view.replace(SCHEMA, TRINO)
        view.commit(set_properties(**MAY_DROP), *view.replacing(SCHEMA, TRINO))
        assert client.load_view(ident).current["representations"] == [TRINO]

    def test_two_queries_of_a_dialect_are_refused(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident, TRINO)
        message = "Invalid view version: Cannot add multiple queries for dialect trino"
        with refused("IllegalArgumentException", message):
            view.replace(SCHEMA, TRINO, sql("trino", "select 2"))

    def test_two_that_replace_at_the_same_time_both_land(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident, sql("trino", "select * from ns.tbl"), properties=MAY_DROP)
        one = view.replacing(SCHEMA, sql("trino", "select count(id) from ns.tbl"))
        two = view.replacing(OTHER_SCHEMA, sql("spark", "select count(some_id) from ns.tbl"))
        client.load_view(ident).commit(*two)
        view.commit(*one)
        loaded = client.load_view(ident)
        assert loaded.current["version-id"] == 3
        told = [
            (v["version-id"], v["schema-id"], v["representations"][0]["dialect"]) for v in loaded.metadata["versions"]
        ]
        assert told == [(1, 0, "trino"), (2, 1, "spark"), (3, 0, "trino")]

    def test_one_that_is_missing_or_a_table_cannot_be_replaced(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident)
        client.drop_view(ident)
        replacing = view.replacing(SCHEMA, SPARK)
        with refused("NoSuchViewException", f"View does not exist: {ident}"):
            view.commit(*replacing)
        client.create_table(ident, SCHEMA)
        with pytest.raises(Refused) as refusal:
            view.commit(*replacing)
        assert refusal.value.kind in ("NoSuchViewException", "AlreadyExistsException")

    def test_one_that_was_recreated_meanwhile_cannot_be_replaced(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident)
        client.drop_view(ident)
        make(client, ident)
        with refused("CommitFailedException", "Requirement failed: view UUID does not match"):
            view.replace(SCHEMA, sql("spark", "select 2"))


class TestPropertiesAndLocation:
    def test_properties_are_set_and_removed(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident)
        versions = view.metadata["versions"]
        view.commit(
            set_properties(key1="val1", key2="val2"), {"action": "remove-properties", "removals": ["non-existing"]}
        )
        view.commit({"action": "remove-properties", "removals": ["key1"]})
        loaded = client.load_view(ident)
        assert loaded.metadata["properties"] == {"key2": "val2"}
        assert (loaded.metadata["versions"], len(loaded.metadata["version-log"])) == (versions, 1)

    def test_the_location_moves(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident)
        updated = elsewhere(client, ident)
        view.commit({"action": "set-location", "location": updated})
        loaded = client.load_view(ident)
        assert loaded.metadata["location"] == updated
        assert loaded.metadata["versions"] == view.metadata["versions"]
        assert loaded.location.startswith(updated)

    def test_one_that_was_dropped_meanwhile_cannot_change(self, client: JavaClient, ident: Ident) -> None:
        view = make(client, ident)
        client.drop_view(ident)
        for update in (set_properties(key1="val1"), {"action": "set-location", "location": view.metadata["location"]}):
            with refused("NoSuchViewException", f"View does not exist: {ident}"):
                view.commit(update)


class TestRegistering:
    def test_a_dropped_view_is_registered_as_it_was(self, client: JavaClient, ident: Ident) -> None:
        original = make(client, ident, SPARK, TRINO, properties={"key": "value"})
        client.drop_view(ident)
        registered = client.register_view(ident, original.location)
        assert (registered.metadata, registered.location) == (original.metadata, original.location)
        assert client.load_view(ident).metadata == original.metadata
        assert client.drop_view(ident)

    def test_a_name_that_is_taken_cannot_be_registered(self, client: JavaClient, ident: Ident) -> None:
        view, table = Ident(ident.namespace, "view"), Ident(ident.namespace, "table")
        location = make(client, view).location
        metadata_location = client.create_table(table, SCHEMA).location
        with refused("AlreadyExistsException", f"View already exists: {view}"):
            client.register_view(view, location)
        with refused("AlreadyExistsException", f"Table with same name already exists: {table}"):
            client.register_view(table, location)
        with refused("AlreadyExistsException", f"View with same name already exists: {view}"):
            client.register_table(view, metadata_location)

    def test_a_tables_metadata_is_no_views(self, client: JavaClient, ident: Ident) -> None:
        metadata_location = client.create_table(Ident(ident.namespace, "table"), SCHEMA).location
        assert metadata_location is not None
        with refused("IllegalArgumentException", ""):
            client.register_view(ident, metadata_location)


def elsewhere(client: JavaClient, ident: Ident) -> str:
    """A location in the warehouse that nothing has."""
    beside = Ident(ident.namespace, "beside")
    location: str = client.create_table(beside, SCHEMA).metadata["location"]
    client.drop_table(beside)
    return location + "-elsewhere"
