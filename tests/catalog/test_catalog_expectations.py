"""Java's CatalogTests, told to the server over HTTP: namespaces, and tables by name."""

from __future__ import annotations

import pytest

from catalog.expectations import (
    OTHER_SCHEMA,
    PROPERTIES,
    SCHEMA,
    SPEC,
    TABLE_SCHEMA,
    TABLE_SPEC,
    TABLE_WRITE_ORDER,
    WRITE_ORDER,
    client,
    column,
    db,
    ident,
    refused,
    same_fields,
    struct,
    unused,
)
from catalog.java_client import Ident, JavaClient, appending
from readers import local_path

__all__ = ["client", "db", "ident"]

ODD_NAMES = [
    "new/db",
    "new.db",
    "new db",
    "new+db",
    "new%db",
    "new%2Fdb",
    "nöw🤪",
    "a\\b",
    "new:db",
    "new?db#x",
    "new%1Fdb",
]


class TestNamespaces:
    def test_a_namespace_is_there_once_created(self, client: JavaClient) -> None:
        name = unused()
        assert not client.namespace_exists(name)
        client.create_namespace(name)
        assert (name,) in client.list_namespaces()
        assert client.namespace_exists(name)

    def test_one_that_exists_cannot_be_created(self, client: JavaClient, db: str) -> None:
        with refused("AlreadyExistsException", "Namespace already exists"):
            client.create_namespace(db)
        assert client.namespace_exists(db)

    def test_it_is_created_with_properties(self, client: JavaClient) -> None:
        name = unused()
        client.create_namespace(name, prop="val")
        assert client.load_namespace(name)["prop"] == "val"

    def test_one_that_is_missing_cannot_be_loaded(self, client: JavaClient) -> None:
        name = unused()
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            client.load_namespace(name)

    def test_properties_are_set_replaced_and_removed(self, client: JavaClient, db: str) -> None:
        reply = client.update_namespace((db,), owner="user", **{"created-at": "sometime"})
        assert (set(reply["updated"]), reply["removed"]) == ({"created-at", "owner"}, [])
        client.update_namespace((db,), owner="newuser", **{"last-modified-at": "now"})
        reply = client.update_namespace((db,), ["created-at", "nothing"])
        assert (reply["removed"], reply["missing"]) == (["created-at"], ["nothing"])
        held = client.load_namespace(db)
        assert {"owner": "newuser", "last-modified-at": "now"}.items() <= held.items()
        assert "created-at" not in held

    def test_properties_of_one_that_is_missing_cannot_change(self, client: JavaClient) -> None:
        name = unused()
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            client.update_namespace((name,), test="value")
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            client.update_namespace((name,), ["a", "b"])

    def test_it_is_dropped_and_one_that_is_missing_is_not(self, client: JavaClient, db: str) -> None:
        assert client.drop_namespace(db)
        assert not client.namespace_exists(db)
        assert not client.drop_namespace(db)

    def test_one_that_holds_a_table_cannot_be_dropped(self, client: JavaClient, db: str, ident: Ident) -> None:
        client.create_table(ident, SCHEMA)
        with refused("NamespaceNotEmptyException", "is not empty"):
            client.drop_namespace(db)
        client.drop_table(ident)
        assert client.drop_namespace(db)

    def test_one_that_holds_a_namespace_cannot_be_dropped(self, client: JavaClient, db: str) -> None:
        client.create_namespace(db, "child")
        with refused("NamespaceNotEmptyException", "is not empty"):
            client.drop_namespace(db)
        assert client.namespace_exists(db, "child")
        assert client.drop_namespace(db, "child")
        assert client.drop_namespace(db)

    def test_the_list_follows_what_is_created_and_dropped(self, client: JavaClient) -> None:
        first, second = unused(), unused()
        client.create_namespace(first)
        client.create_namespace(second)
        assert {(first,), (second,)} <= set(client.list_namespaces())
        client.drop_namespace(first)
        assert (first,) not in client.list_namespaces()
        assert (second,) in client.list_namespaces()

    def test_nested_ones_are_listed_under_their_parent_alone(self, client: JavaClient, db: str) -> None:
        assert client.list_namespaces(db) == []
        client.create_namespace(db, "child1")
        assert client.list_namespaces(db) == [(db, "child1")]
        client.create_namespace(db, "child2")
        assert set(client.list_namespaces(db)) == {(db, "child1"), (db, "child2")}
        assert all(len(levels) == 1 for levels in client.list_namespaces())
        client.drop_namespace(db, "child1")
        assert client.list_namespaces(db) == [(db, "child2")]

    def test_those_of_one_that_is_missing_cannot_be_listed(self, client: JavaClient) -> None:
        name = unused()
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            client.list_namespaces(name)

    @pytest.mark.parametrize("odd", ODD_NAMES)
    def test_a_name_may_hold_any_sign(self, client: JavaClient, odd: str) -> None:
        name = unused() + odd
        assert not client.namespace_exists(name)
        client.create_namespace(name, a="b")
        assert client.namespace_exists(name)
        assert (name,) in client.list_namespaces()
        assert client.load_namespace(name)["a"] == "b"
        assert client.list_namespaces(name) == []
        assert client.drop_namespace(name)
        assert not client.namespace_exists(name)

    @pytest.mark.parametrize("odd", ODD_NAMES)
    def test_a_nested_name_may_hold_any_sign(self, client: JavaClient, db: str, odd: str) -> None:
        client.create_namespace(db, odd)
        client.create_namespace(db, odd, odd)
        assert client.list_namespaces(db) == [(db, odd)]
        assert client.list_namespaces(db, odd) == [(db, odd, odd)]
        inner = Ident((db, odd, odd), odd)
        client.create_table(inner, SCHEMA)
        assert client.list_tables(*inner.namespace) == [inner]
        assert client.load_table(inner).columns == [(1, "id"), (2, "data")]


class TestTablesByName:
    def test_a_table_has_what_every_table_has(self, client: JavaClient, ident: Ident) -> None:
        assert not client.table_exists(ident)
        client.create_table(ident, SCHEMA)
        assert client.table_exists(ident)
        table = client.load_table(ident)
        assert same_fields(table.schema, TABLE_SCHEMA)
        assert table.metadata["location"]
        assert table.spec["fields"] == []
        assert table.order["fields"] == []
        assert isinstance(table.metadata["properties"], dict)

    @pytest.mark.parametrize("odd", ["tab/le", "ta.ble", *ODD_NAMES])
    def test_a_name_may_hold_any_sign(self, client: JavaClient, db: str, odd: str) -> None:
        ident = Ident((db,), odd)
        assert not client.table_exists(ident)
        client.create_table(ident, SCHEMA)
        assert client.table_exists(ident)
        assert client.list_tables(db) == [ident]
        table = client.load_table(ident)
        assert same_fields(table.schema, TABLE_SCHEMA)
        table.append("a")
        assert client.load_table(ident).files == ["a"]
        other = Ident((db,), odd + "2")
        client.rename_table(ident, other)
        assert client.list_tables(db) == [other]
        assert client.drop_table(other)
        assert not client.table_exists(other)

    def test_one_that_exists_cannot_be_created(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, SCHEMA)
        with refused("AlreadyExistsException", f"Table already exists: {ident}"):
            client.create_table(ident, OTHER_SCHEMA)
        assert same_fields(client.load_table(ident).schema, TABLE_SCHEMA)

    def test_everything_that_is_asked_for_at_creation_is_kept(self, client: JavaClient, ident: Ident) -> None:
        asked = {"partition_spec": SPEC, "write_order": WRITE_ORDER, "properties": PROPERTIES}
        location = client.create_table(Ident(ident.namespace, "where"), SCHEMA).metadata["location"] + "-elsewhere"
        made = client.create_table(ident, SCHEMA, location=location, **asked)
        for table in (made, client.load_table(ident)):
            assert same_fields(table.schema, TABLE_SCHEMA)
            assert table.metadata["location"] == location
            assert table.spec == TABLE_SPEC
            assert table.order == TABLE_WRITE_ORDER
            assert PROPERTIES.items() <= table.metadata["properties"].items()
            assert table.metadata["table-uuid"] == made.metadata["table-uuid"]

    def test_a_column_may_have_defaults_in_v3(self, client: JavaClient, ident: Ident) -> None:
        with_default = struct(column(1, "colWithDefault", "int", **{"write-default": 10, "initial-default": 12}))
        client.create_table(ident, with_default, properties={"format-version": "3"})
        assert same_fields(client.load_table(ident).schema, with_default)

    def test_variants_come_back_as_they_went_in(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, variants(10), properties={"format-version": "3"})
        table = client.load_table(ident)
        assert same_fields(table.schema, variants(1, nested_from=6))
        assert table.metadata["format-version"] == 3

    def test_variants_are_not_for_v2(self, client: JavaClient, ident: Ident) -> None:
        plain = struct(column(1, "id", "long"), column(2, "data", "variant", required=False))
        with refused("ValidationException", "variant is not supported until v3"):
            client.create_table(ident, plain, properties={"format-version": "2"})
        assert not client.table_exists(ident)

    def test_a_variant_column_can_be_added(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, struct(column(1, "id", "long")), properties={"format-version": "3"})
        table.commit(*table.widened(column(0, "data", "variant", required=False)))
        expected = struct(column(1, "id", "long"), column(2, "data", "variant", required=False))
        assert same_fields(client.load_table(ident).schema, expected)

    def test_one_that_is_missing_cannot_be_loaded(self, client: JavaClient, ident: Ident) -> None:
        for missing in (ident, Ident((unused(),), "tbl")):
            assert not client.table_exists(missing)
            with refused("NoSuchTableException", f"Table does not exist: {missing}"):
                client.load_table(missing)

    def test_a_metadata_table_is_made_by_the_client(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, SCHEMA)
        files = Ident((*ident.namespace, ident.name), "files")
        with refused("NoSuchTableException", f"Table does not exist: {files}"):
            client.load_table(files)

    def test_one_whose_metadata_file_is_gone_says_so(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        gone = Ident(ident.namespace, "gone")
        assert table.location is not None
        file = local_path(table.location)
        copy = file.with_name(f"00000-{unused()}.metadata.json")
        copy.write_bytes(file.read_bytes())
        location = f"{table.location.rsplit('/', 1)[0]}/{copy.name}"
        client.register_table(gone, location)
        copy.unlink()
        with refused("NotFoundException", f"Failed to open input stream for file: {location}"):
            client.load_table(gone)

    def test_a_table_cannot_be_created_in_a_namespace_that_is_missing(self, client: JavaClient) -> None:
        name = unused()
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            client.create_table(Ident((name,), "table"), SCHEMA)

    def test_a_table_is_dropped_and_one_that_is_missing_is_not(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        assert client.drop_table(ident)
        assert not client.table_exists(ident)
        assert not client.drop_table(ident)
        assert table.location is not None
        assert local_path(table.location).exists()

    def test_a_table_is_dropped_with_its_files(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, SCHEMA)
        assert client.drop_table(ident, purge=True)
        assert not client.table_exists(ident)

    def test_the_list_follows_what_is_created_and_dropped(self, client: JavaClient, db: str) -> None:
        client.create_namespace(db, "other")
        first, second, third = Ident((db,), "table_1"), Ident((db,), "table_2"), Ident((db, "other"), "table_1")
        assert client.list_tables(db) == client.list_tables(db, "other") == []
        client.create_table(first, SCHEMA)
        client.create_table(third, SCHEMA)
        assert client.list_tables(db) == [first]
        assert client.list_tables(db, "other") == [third]
        client.create_table(second, SCHEMA)
        assert set(client.list_tables(db)) == {first, second}
        client.drop_table(first)
        assert client.list_tables(db) == [second]
        client.drop_table(second)
        assert client.list_tables(db) == []
        assert client.list_tables(db, "other") == [third]

    def test_tables_of_a_namespace_that_is_missing_cannot_be_listed(self, client: JavaClient) -> None:
        with refused("NoSuchNamespaceException", "Namespace does not exist"):
            client.list_tables(unused())


def variants(first: int, nested_from: int | None = None) -> dict[str, object]:
    """The columns of Java's test of variants: with ids in writing order, or each level counted before what is in it."""
    if nested_from is None:
        a, b, c, d, e, inner = (
            first,
            first + 1,
            first + 2,
            first + 4,
            first + 7,
            (first + 3, first + 5, first + 6, first + 8),
        )
    else:
        a, b, c, d, e, inner = *range(first, first + 5), tuple(range(nested_from, nested_from + 4))  # type: ignore[assignment]
    item, key, value, part = inner
    listed = {"type": "list", "element-id": item, "element": "variant", "element-required": False}
    mapped = {
        "type": "map",
        "key-id": key,
        "key": "string",
        "value-id": value,
        "value": "variant",
        "value-required": False,
    }
    nested = {"type": "struct", "fields": [column(part, "v", "variant", required=False)]}
    return struct(
        column(a, "id", "long"),
        column(b, "data", "variant", required=False),
        column(c, "list_data", listed, required=False),
        column(d, "map_data", mapped, required=False),
        column(e, "struct_data", nested, required=False),
    )


class TestRenamingAndRegistering:
    def test_a_renamed_table_has_its_new_name_alone(self, client: JavaClient, ident: Ident) -> None:
        renamed = Ident(ident.namespace, "table_renamed")
        client.create_table(ident, SCHEMA)
        client.rename_table(ident, renamed)
        assert client.table_exists(renamed)
        assert not client.table_exists(ident)
        client.drop_table(renamed)
        assert client.list_tables(*ident.namespace) == []

    def test_a_table_made_where_a_renamed_one_was_lies_elsewhere(self, client: JavaClient, ident: Ident) -> None:
        renamed = Ident(ident.namespace, "table_renamed")
        client.create_table(ident, SCHEMA)
        client.rename_table(ident, renamed)
        client.create_table(ident, SCHEMA)
        locations = [client.load_table(one).metadata["location"] for one in (ident, renamed)]
        assert locations[0] != locations[1]

    def test_purging_a_renamed_table_leaves_the_one_that_took_its_name(self, client: JavaClient, ident: Ident) -> None:
        renamed = Ident(ident.namespace, "table_renamed")
        client.create_table(ident, SCHEMA)
        client.rename_table(ident, renamed)
        recreated = client.create_table(ident, SCHEMA)
        data = local_path(recreated.metadata["location"]) / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "data-b.parquet").write_bytes(b"rows")
        client.drop_table(renamed, purge=True)
        assert not client.table_exists(renamed)
        assert client.load_table(ident).metadata["table-uuid"] == recreated.metadata["table-uuid"]
        assert (data / "data-b.parquet").exists()

    def test_one_that_is_missing_cannot_be_renamed(self, client: JavaClient, ident: Ident) -> None:
        with refused("NoSuchTableException", "Table does not exist"):
            client.rename_table(ident, Ident(ident.namespace, "table_renamed"))
        assert client.list_tables(*ident.namespace) == []

    def test_it_cannot_be_renamed_into_a_namespace_that_is_missing(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, SCHEMA)
        name = unused()
        with refused("NoSuchNamespaceException", f"Namespace does not exist: {name}"):
            client.rename_table(ident, Ident((name,), "renamedTable"))

    def test_it_cannot_take_a_name_that_is_taken(self, client: JavaClient, ident: Ident) -> None:
        taken = Ident(ident.namespace, "table_renamed")
        client.create_table(ident, SCHEMA)
        client.create_table(taken, SCHEMA)
        with refused("AlreadyExistsException", "Table already exists"):
            client.rename_table(ident, taken)
        uuids = {client.load_table(one).metadata["table-uuid"] for one in (ident, taken)}
        assert len(uuids) == 2

    def test_a_dropped_table_is_registered_as_it_was(self, client: JavaClient, ident: Ident) -> None:
        asked = {"partition_spec": SPEC, "write_order": WRITE_ORDER, "properties": PROPERTIES}
        original = client.create_table(ident, SCHEMA, **asked)
        for file in ("a", "b", "c"):
            original.append(file)
        client.drop_table(ident)
        registered = client.register_table(ident, original.location)
        assert registered.metadata == original.metadata
        assert registered.location == original.location
        registered.append("d")
        assert client.load_table(ident).files == ["a", "b", "c", "d"]
        assert client.drop_table(ident)
        assert not client.table_exists(ident)

    def test_one_that_exists_cannot_be_registered(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        with refused("AlreadyExistsException", f"Table already exists: {ident}"):
            client.register_table(ident, table.location)

    def test_one_that_exists_is_registered_anew_when_that_is_asked_for(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        before = table.location
        table.append("a")
        client.register_table(ident, before, overwrite=True)
        assert client.load_table(ident).files == []

    def test_what_is_no_metadata_cannot_be_registered(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(Ident(ident.namespace, "other"), SCHEMA)
        assert table.location is not None
        local_path(table.location).with_name("junk.metadata.json").write_text("{}")
        for junk in ("junk", "missing"):
            with refused("BadRequestException", "") if junk == "missing" else refused("IllegalArgumentException", ""):
                client.register_table(ident, f"{table.location.rsplit('/', 1)[0]}/{junk}.metadata.json")
        assert not client.table_exists(ident)


def test_a_commit_answers_what_a_load_then_answers(client: JavaClient, ident: Ident) -> None:
    table = client.create_table(ident, SCHEMA)
    table.commit(*appending(table.metadata, "a"))
    loaded = client.load_table(ident)
    assert (loaded.metadata, loaded.location) == (table.metadata, table.location)
