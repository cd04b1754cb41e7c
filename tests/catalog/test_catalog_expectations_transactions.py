"""Java's CatalogTests, told to the server over HTTP: tables created and replaced in a transaction."""

from __future__ import annotations

import pytest

from catalog.expectations import (
    OTHER_SCHEMA,
    PROPERTIES,
    REPLACE_SCHEMA,
    REVERSED_ORDER,
    SCHEMA,
    SPEC,
    TABLE_SCHEMA,
    TABLE_SPEC,
    TABLE_WRITE_ORDER,
    WRITE_ORDER,
    bucket,
    client,
    column,
    db,
    ident,
    ordered,
    refused,
    same_fields,
)
from catalog.java_client import (
    Creation,
    Ident,
    JavaClient,
    Replacement,
    Table,
    appending,
    set_order,
    set_properties,
    set_schema,
    set_spec,
)

__all__ = ["client", "db", "ident"]

EVERYTHING = {"partition_spec": SPEC, "write_order": WRITE_ORDER, "properties": PROPERTIES}
KINDS = ["create", "create or replace"]


def begin(client: JavaClient, kind: str, ident: Ident, **request: object) -> Creation:
    begun = {"create": client.create_transaction, "create or replace": client.create_or_replace_transaction}[kind]
    creation = begun(ident, SCHEMA, **request)
    assert isinstance(creation, Creation)
    return creation


class TestCreation:
    @pytest.mark.parametrize("kind", KINDS)
    def test_nobody_sees_the_table_before_it_is_committed(self, client: JavaClient, ident: Ident, kind: str) -> None:
        create = begin(client, kind, ident)
        assert not client.table_exists(ident)
        assert client.list_tables(*ident.namespace) == []
        create.append("a")
        assert not client.table_exists(ident)
        create.commit()
        table = client.load_table(ident)
        assert table.files == ["a"]
        assert table.metadata["metadata-log"] == []

    @pytest.mark.parametrize("version", ["1", "2", "3"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_everything_that_was_staged_is_kept(
        self, client: JavaClient, ident: Ident, kind: str, version: str
    ) -> None:
        location = elsewhere(client, ident)
        asked = {**EVERYTHING, "properties": {**PROPERTIES, "format-version": version}, "location": location}
        create = begin(client, kind, ident, **asked)
        create.append("a")
        create.commit()
        table = client.load_table(ident)
        assert same_fields(table.schema, TABLE_SCHEMA)
        assert (table.spec, table.order) == (TABLE_SPEC, TABLE_WRITE_ORDER)
        assert PROPERTIES.items() <= table.metadata["properties"].items()
        assert "format-version" not in table.metadata["properties"]
        assert table.metadata["format-version"] == int(version)
        assert table.metadata["location"] == location
        assert table.metadata["table-uuid"] == create.table.metadata["table-uuid"]
        assert table.files == ["a"]
        assert table.metadata["metadata-log"] == []
        if version != "1":
            assert table.metadata["snapshots"][0]["sequence-number"] == 1

    def test_a_table_may_evolve_before_it_is_committed(self, client: JavaClient, ident: Ident) -> None:
        create = client.create_transaction(ident, SCHEMA, **EVERYTHING)
        create.append("a")
        wider = {**TABLE_SCHEMA, "fields": [*TABLE_SCHEMA["fields"], column(3, "new_col", "long", required=False)]}
        by_new = {"name": "new_col", "transform": "identity", "source-id": 3, "field-id": 1001}
        create.later += [*set_schema(wider), *set_spec(*TABLE_SPEC["fields"], by_new), *set_order(ordered(3))]
        first = create.later[0]["snapshot"]
        base = {**create.table.metadata, "last-sequence-number": 1, "current-schema-id": 1}
        create.later += appending(base, "b", parent=first["snapshot-id"])
        create.commit()
        table = client.load_table(ident)
        assert table.columns == [(1, "id"), (2, "data"), (3, "new_col")]
        assert table.schema["schema-id"] == 1
        assert (table.spec["spec-id"], len(table.spec["fields"])) == (1, 2)
        assert (table.order["order-id"], table.order["fields"]) == (2, [ordered(3)])
        assert table.files == ["a", "b"]
        assert len(table.metadata["snapshot-log"]) == 1
        assert table.metadata["metadata-log"] == []

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_table_that_was_created_meanwhile_stays_as_it_is(
        self, client: JavaClient, ident: Ident, kind: str
    ) -> None:
        create = begin(client, kind, ident)
        create.append("a")
        client.create_table(ident, OTHER_SCHEMA)
        with refused("CommitFailedException", "Requirement failed: table already exists"):
            create.commit()
        table = client.load_table(ident)
        assert same_fields(table.schema, OTHER_SCHEMA)
        assert table.files == []

    def test_of_two_that_staged_one_name_one_gets_it(self, client: JavaClient, ident: Ident) -> None:
        first, second = (client.create_transaction(ident, SCHEMA) for _ in range(2))
        first.append("a")
        second.append("b")
        second.commit()
        with refused("CommitFailedException", "Requirement failed: table already exists"):
            first.commit()
        assert client.load_table(ident).files == ["b"]
        assert client.load_table(ident).metadata["table-uuid"] == second.table.metadata["table-uuid"]

    def test_a_name_that_is_taken_cannot_be_staged(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, OTHER_SCHEMA)
        with refused("AlreadyExistsException", f"Table already exists: {ident}"):
            client.create_transaction(ident, SCHEMA)

    def test_a_commit_to_nothing_is_refused_unless_it_creates(self, client: JavaClient, ident: Ident) -> None:
        create = client.create_transaction(ident, SCHEMA)
        with refused("NoSuchTableException", f"Table does not exist: {ident}"):
            create.table.commit(set_properties(a="b"))
        assert not client.table_exists(ident)


class TestReplacement:
    def test_a_missing_table_cannot_be_replaced(self, client: JavaClient, ident: Ident) -> None:
        with refused("NoSuchTableException", f"Table does not exist: {ident}"):
            client.replace_transaction(ident, SCHEMA)

    @pytest.mark.parametrize("kind", ["replace", "create or replace"])
    @pytest.mark.parametrize("complete", [False, True])
    def test_a_replaced_table_is_new_but_for_its_uuid_and_its_history(
        self, client: JavaClient, ident: Ident, kind: str, complete: bool
    ) -> None:
        original = client.create_table(ident, OTHER_SCHEMA)
        request = {**EVERYTHING, "location": elsewhere(client, ident)} if complete else {}
        begun = client.replace_transaction if kind == "replace" else client.create_or_replace_transaction
        replace = begun(ident, SCHEMA, **request)
        replace.append("a")
        assert client.load_table(ident).metadata == original.metadata
        replace.commit()
        loaded = client.load_table(ident)
        assert same_fields(loaded.schema, REPLACE_SCHEMA)
        assert loaded.metadata["table-uuid"] == original.metadata["table-uuid"]
        assert loaded.files == ["a"]
        assert len(loaded.metadata["metadata-log"]) == 1
        if complete:
            assert loaded.spec == {"spec-id": 1, "fields": [bucket(2, **{"field-id": 1000})]}
            assert loaded.order == {"order-id": 1, "fields": [ordered(2, "bucket[16]"), ordered(2)]}
            assert PROPERTIES.items() <= loaded.metadata["properties"].items()
            assert loaded.metadata["location"] == request["location"]

    def test_the_snapshot_log_is_kept(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA).append("a")
        before = table.metadata["snapshot-log"]
        replace = client.replace_transaction(ident, SCHEMA)
        replace.append("a")
        replace.commit()
        after = client.load_table(ident).metadata["snapshot-log"]
        assert (after[:1], len(after)) == (before, 2)
        assert after[0] != after[1]

    @pytest.mark.parametrize("version", ["2", "3"])
    def test_a_replacement_may_raise_the_format_version(self, client: JavaClient, ident: Ident, version: str) -> None:
        client.create_table(ident, SCHEMA, properties={"format-version": "1"})
        client.replace_transaction(ident, SCHEMA, properties={"format-version": version}).commit()
        assert client.load_table(ident).metadata["format-version"] == int(version)

    def test_default_and_own_properties_are_kept(self, client: JavaClient, ident: Ident) -> None:
        client.create_table(ident, SCHEMA, properties={"kept": "1", "changed": "1"})
        client.replace_transaction(ident, OTHER_SCHEMA, properties={"changed": "2"}).commit()
        held = client.load_table(ident).metadata["properties"]
        assert (held["kept"], held["changed"]) == ("1", "2")


class TestConcurrentReplacements:
    """The second replacement began before the first was committed; it wins unless both assigned the same ids."""

    def race(
        self, client: JavaClient, ident: Ident, schema: dict[str, object], first: Begun, second: Begun
    ) -> tuple[Table, Replacement]:
        create = client.create_transaction(ident, schema)
        create.append("a")
        original = create.commit()
        later, sooner = (client.replace_transaction(ident, one.schema, **one.request) for one in (second, first))
        later.append("c")
        sooner.append("b")
        after = sooner.commit().refresh()
        assert after.files == ["b"]
        assert after.metadata["table-uuid"] == original.metadata["table-uuid"]
        return after, later

    def won(self, client: JavaClient, ident: Ident, later: Replacement) -> Table:
        later.commit()
        after = client.load_table(ident)
        assert after.files == ["c"]
        return after

    def test_of_equal_ones_the_later_wins(self, client: JavaClient, ident: Ident) -> None:
        after, later = self.race(client, ident, SCHEMA, Begun(SCHEMA), Begun(SCHEMA))
        for table in (after, self.won(client, ident, later)):
            assert same_fields(table.schema, TABLE_SCHEMA)
            assert (table.spec["fields"], table.order["fields"]) == ([], [])

    def test_of_one_that_changes_the_schema_and_one_that_does_not_the_later_wins(
        self, client: JavaClient, ident: Ident
    ) -> None:
        after, later = self.race(client, ident, OTHER_SCHEMA, Begun(SCHEMA), Begun(OTHER_SCHEMA))
        assert same_fields(after.schema, REPLACE_SCHEMA)
        assert same_fields(self.won(client, ident, later).schema, OTHER_SCHEMA)

    def test_of_one_that_does_not_change_the_schema_and_one_that_does_the_later_wins(
        self, client: JavaClient, ident: Ident
    ) -> None:
        after, later = self.race(client, ident, OTHER_SCHEMA, Begun(OTHER_SCHEMA), Begun(SCHEMA))
        assert same_fields(after.schema, OTHER_SCHEMA)
        assert same_fields(self.won(client, ident, later).schema, REPLACE_SCHEMA)

    def test_two_that_assign_column_ids_are_a_conflict(self, client: JavaClient, ident: Ident) -> None:
        _, later = self.race(client, ident, OTHER_SCHEMA, Begun(SCHEMA), Begun(SCHEMA))
        with refused("CommitFailedException", "Requirement failed: last assigned field id changed"):
            later.commit()

    def test_of_one_that_changes_the_spec_and_one_that_does_not_the_later_wins(
        self, client: JavaClient, ident: Ident
    ) -> None:
        after, later = self.race(client, ident, SCHEMA, Begun(SCHEMA, partition_spec=SPEC), Begun(SCHEMA))
        assert same_fields(after.spec, TABLE_SPEC)
        assert self.won(client, ident, later).spec["fields"] == []

    def test_of_one_that_does_not_change_the_spec_and_one_that_does_the_later_wins(
        self, client: JavaClient, ident: Ident
    ) -> None:
        after, later = self.race(client, ident, SCHEMA, Begun(SCHEMA), Begun(SCHEMA, partition_spec=SPEC))
        assert after.spec["fields"] == []
        assert same_fields(self.won(client, ident, later).spec, TABLE_SPEC)

    def test_two_that_assign_partition_ids_are_a_conflict(self, client: JavaClient, ident: Ident) -> None:
        both = Begun(SCHEMA, partition_spec=SPEC), Begun(SCHEMA, partition_spec=SPEC)
        _, later = self.race(client, ident, SCHEMA, *both)
        with refused("CommitFailedException", "Requirement failed: last assigned partition id changed"):
            later.commit()

    def test_of_two_that_sort_differently_the_later_wins(self, client: JavaClient, ident: Ident) -> None:
        both = Begun(SCHEMA, write_order=REVERSED_ORDER), Begun(SCHEMA, write_order=WRITE_ORDER)
        after, later = self.race(client, ident, SCHEMA, *both)
        assert after.order["fields"]
        assert same_fields(self.won(client, ident, later).order, TABLE_WRITE_ORDER)

    def test_of_one_that_sorts_and_one_that_does_not_the_later_wins(self, client: JavaClient, ident: Ident) -> None:
        after, later = self.race(client, ident, SCHEMA, Begun(SCHEMA, write_order=WRITE_ORDER), Begun(SCHEMA))
        assert same_fields(after.order, TABLE_WRITE_ORDER)
        assert self.won(client, ident, later).order["fields"] == []


class Begun:
    """A replacement to begin."""

    def __init__(self, schema: dict[str, object], **request: object) -> None:
        self.schema, self.request = schema, request


class TestTransactionsOverTables:
    def test_all_tables_change_or_none(self, client: JavaClient, ident: Ident) -> None:
        other = Ident(ident.namespace, "other")
        tables = [client.create_table(one, SCHEMA) for one in (ident, other)]
        client.ask("POST", "/v1/transactions/commit", {"table-changes": [change(one, "a") for one in tables]})
        assert [client.load_table(one).files for one in (ident, other)] == [["a"], ["a"]]
        fresh, stale = client.load_table(ident), tables[1]
        with refused("CommitFailedException", "Requirement failed: branch main was created concurrently"):
            client.ask("POST", "/v1/transactions/commit", {"table-changes": [change(fresh, "b"), change(stale, "b")]})
        assert [client.load_table(one).files for one in (ident, other)] == [["a"], ["a"]]

    def test_a_table_that_is_missing_stops_it(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        gone = client.create_table(Ident(ident.namespace, "gone"), SCHEMA)
        client.drop_table(gone.ident)
        with refused("NoSuchTableException", f"Table does not exist: {gone.ident}"):
            client.ask("POST", "/v1/transactions/commit", {"table-changes": [change(table, "a"), change(gone, "a")]})
        assert client.load_table(ident).files == []


def change(table: Table, file: str) -> dict[str, object]:
    from catalog.java_client import requirements_for

    updates = appending(table.metadata, file)
    return {
        "identifier": table.ident.document,
        "requirements": requirements_for(table.metadata, updates),
        "updates": updates,
    }


def elsewhere(client: JavaClient, ident: Ident) -> str:
    """A location in the warehouse that no table has."""
    beside = Ident(ident.namespace, "beside")
    location: str = client.create_table(beside, SCHEMA).metadata["location"]
    client.drop_table(beside)
    return location + "-elsewhere"
