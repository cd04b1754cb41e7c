"""Java's CatalogTests, told to the server over HTTP: commits to tables, one after the other and at the same time."""

from __future__ import annotations

import pytest

from catalog.expectations import (
    OTHER_SCHEMA,
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
    Document,
    Ident,
    JavaClient,
    Table,
    appending,
    requirements_for,
    set_order,
    set_properties,
    set_spec,
)
from readers import local_path

__all__ = ["client", "db", "ident"]

NEW_COLUMN = column(0, "new_col", "long", required=False)
ANOTHER_COLUMN = column(0, "another_col", "string", required=False)
SHARD = bucket(1, "shard", **{"field-id": 1000})


class TestSchemas:
    def test_a_column_is_added(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        table.commit(*table.widened(NEW_COLUMN))
        assert client.load_table(ident).columns == [(1, "id"), (2, "data"), (3, "new_col")]

    def test_a_commit_to_a_table_that_was_recreated_is_refused(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        client.drop_table(ident)
        client.create_table(ident, OTHER_SCHEMA)
        with refused("CommitFailedException", "Requirement failed: UUID does not match"):
            table.commit(*table.widened(NEW_COLUMN))
        assert same_fields(client.load_table(ident).schema, OTHER_SCHEMA)

    def test_a_stale_commit_lands_when_what_it_requires_still_holds(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        client.load_table(ident).commit(*set_spec(SHARD))
        table.commit(*table.widened(NEW_COLUMN))
        loaded = client.load_table(ident)
        assert loaded.columns == [(1, "id"), (2, "data"), (3, "new_col")]
        assert loaded.spec["fields"] == [SHARD]

    def test_a_schema_that_was_replaced_meanwhile_is_a_conflict(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        concurrent = client.load_table(ident)
        concurrent.commit(*concurrent.narrowed("data"))
        with refused("CommitFailedException", "Requirement failed: current schema changed"):
            table.commit(*table.widened(NEW_COLUMN))
        assert client.load_table(ident).columns == [(1, "id")]

    def test_a_column_id_that_was_assigned_meanwhile_is_a_conflict(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        concurrent = client.load_table(ident)
        concurrent.commit(*concurrent.widened(ANOTHER_COLUMN))
        with refused("CommitFailedException", "Requirement failed: last assigned field id changed"):
            table.commit(*table.widened(NEW_COLUMN))
        assert client.load_table(ident).columns == [(1, "id"), (2, "data"), (3, "another_col")]

    def test_a_schema_can_go_back_to_what_it_was(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        added = [column(0, name, "string", required=False) for name in ("col1", "col2", "col3")]
        table.commit(*table.widened(*added))
        table.commit(*table.narrowed("col1", "col2", "col3"))
        assert same_fields(table.schema, TABLE_SCHEMA)
        assert table.metadata["current-schema-id"] == 0

    def test_schemas_that_nothing_uses_are_removed(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA).append("a")
        table.commit(*table.widened(NEW_COLUMN))
        table.commit(*table.narrowed("new_col"))
        table.commit(*table.widened(ANOTHER_COLUMN))
        assert len(table.metadata["schemas"]) == 3
        table.commit({"action": "remove-schemas", "schema-ids": [1]})
        assert [one["schema-id"] for one in client.load_table(ident).metadata["schemas"]] == [0, 2]
        with refused("IllegalArgumentException", "Cannot remove the current schema"):
            table.commit({"action": "remove-schemas", "schema-ids": [2]})


class TestSpecs:
    def test_a_partition_field_is_added(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        table.commit(*set_spec(SHARD))
        assert client.load_table(ident).spec["fields"] == [SHARD]

    def test_a_stale_commit_lands_when_what_it_requires_still_holds(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        concurrent = client.load_table(ident)
        concurrent.commit(*concurrent.widened(ANOTHER_COLUMN))
        table.commit(*set_spec(SHARD))
        assert client.load_table(ident).spec["fields"] == [SHARD]

    def test_a_spec_that_was_replaced_meanwhile_is_a_conflict(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA, partition_spec=SPEC)
        client.load_table(ident).commit(*set_spec())
        stale = set_spec(*TABLE_SPEC["fields"], bucket(2, "shard", **{"field-id": 1001}))
        with refused("CommitFailedException", "Requirement failed: default partition spec changed"):
            table.commit(*stale)
        assert client.load_table(ident).spec["fields"] == []

    def test_a_partition_id_that_was_assigned_meanwhile_is_a_conflict(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        concurrent = {**SHARD, "transform": "truncate[100]"}
        client.load_table(ident).commit(*set_spec(concurrent))
        with refused("CommitFailedException", "Requirement failed: last assigned partition id changed"):
            table.commit(*set_spec(SHARD))
        assert client.load_table(ident).spec["fields"] == [concurrent]

    def test_a_spec_can_go_back_to_what_it_was(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA, partition_spec=SPEC, properties={"format-version": "2"})
        assert table.metadata["format-version"] == 2
        by_id = {"name": "id", "transform": "identity", "source-id": 1, "field-id": 1001}
        table.commit(*set_spec(*TABLE_SPEC["fields"], by_id))
        table.commit(*set_spec(*TABLE_SPEC["fields"]))
        assert table.spec == TABLE_SPEC

    def test_specs_that_nothing_uses_are_removed(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA, partition_spec=SPEC)
        fields = TABLE_SPEC["fields"]
        table.commit(*set_spec(*fields, bucket(2, "data_bucket", **{"field-id": 1001})))
        table.commit(*set_spec(*fields))
        table.commit(*set_spec(*fields, {"name": "data", "transform": "identity", "source-id": 2, "field-id": 1002}))
        assert len(table.metadata["partition-specs"]) == 3
        table.commit({"action": "remove-partition-specs", "spec-ids": [1]})
        assert [one["spec-id"] for one in client.load_table(ident).metadata["partition-specs"]] == [0, 2]
        with refused("IllegalArgumentException", "Cannot remove the default partition spec"):
            table.commit({"action": "remove-partition-specs", "spec-ids": [2]})


class TestSortOrders:
    def test_an_order_is_replaced(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        table.commit(*set_order(*TABLE_WRITE_ORDER["fields"]))
        assert same_fields(client.load_table(ident).order, TABLE_WRITE_ORDER)

    def test_a_stale_commit_lands_when_what_it_requires_still_holds(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA)
        concurrent = client.load_table(ident)
        concurrent.commit(*concurrent.widened(ANOTHER_COLUMN))
        table.commit(*set_order(*TABLE_WRITE_ORDER["fields"]))
        assert same_fields(client.load_table(ident).order, TABLE_WRITE_ORDER)

    def test_an_order_can_go_back_to_what_it_was(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA, write_order=WRITE_ORDER)
        table.commit(*set_order(ordered(1)))
        table.commit(*set_order(*TABLE_WRITE_ORDER["fields"]))
        assert table.order == TABLE_WRITE_ORDER


class TestAppends:
    def test_a_file_is_appended(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA, partition_spec=SPEC)
        assert table.files == []
        assert table.append("a").files == ["a"]

    @pytest.mark.parametrize("held", [[], ["c"]])
    def test_a_stale_append_is_a_conflict_and_lands_on_the_second_try(
        self, client: JavaClient, ident: Ident, held: list[str]
    ) -> None:
        table = client.create_table(ident, SCHEMA, partition_spec=SPEC)
        for file in held:
            table.append(file)
        stale = appending(table.metadata, "a")
        client.load_table(ident).append("b")
        message = "Requirement failed: branch main has changed" if held else "branch main was created concurrently"
        with refused("CommitFailedException", message):
            table.send(requirements_for(table.metadata, stale), stale)
        assert client.load_table(ident).files == sorted(["b", *held])
        table.append("a")
        assert client.load_table(ident).files == sorted(["a", "b", *held])

    @pytest.mark.parametrize("version", ["1", "2", "3"])
    def test_a_sequence_number_that_is_taken_asks_for_another_try(
        self, client: JavaClient, ident: Ident, version: str
    ) -> None:
        table = client.create_table(ident, SCHEMA, properties={"format-version": version}).append("a")
        branch = {
            "action": "set-snapshot-ref",
            "ref-name": "b",
            "type": "branch",
            "snapshot-id": table.metadata["current-snapshot-id"],
        }
        table.commit(branch)
        to_main, to_branch = appending(table.metadata, "b"), appending(table.metadata, "c")
        to_branch[1]["ref-name"] = "b"
        base = table.metadata
        table.send(requirements_for(base, to_main), to_main)
        if version == "1":
            table.send(requirements_for(base, to_branch), to_branch)
        else:
            with refused("CommitFailedException", "Validation failed, please retry: Cannot add snapshot"):
                table.send(requirements_for(base, to_branch), to_branch)


def test_several_updates_are_one_commit(client: JavaClient, ident: Ident) -> None:
    table = client.create_table(ident, SCHEMA)
    table.commit(*table.widened(NEW_COLUMN), *set_spec(SHARD))
    loaded = client.load_table(ident)
    assert loaded.columns == [(1, "id"), (2, "data"), (3, "new_col")]
    assert loaded.spec["fields"] == [SHARD]
    assert len(loaded.metadata["metadata-log"]) == 1


def test_old_metadata_files_are_removed_after_a_commit_where_the_table_asks_for_it(
    client: JavaClient, ident: Ident
) -> None:
    table = client.create_table(ident, SCHEMA)
    widen(table, "a", "b", "c")
    assert len(metadata_files(table)) == 4
    kept = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    table.commit(set_properties(**kept))
    assert len(metadata_files(table)) == 3
    for number in range(1, 6):
        widen(table, f"d{number}")
        assert len(metadata_files(table)) == 3
        assert all(local_path(file).exists() for file in metadata_files(table))
    assert len(list(folder_of(table).glob("*.metadata.json"))) == 3
    table.commit(set_properties(**{"write.metadata.previous-versions-max": "4"}))
    for number in range(1, 11):
        widen(table, f"e{number}")
    assert len(metadata_files(table)) == 5


def widen(table: Table, *names: str) -> None:
    for name in names:
        table.commit(*table.widened(column(0, name, "long", required=False)))


def metadata_files(table: Table) -> set[str]:
    """The metadata file and those of its log."""
    assert table.location is not None
    return {table.location, *(entry["metadata-file"] for entry in table.metadata["metadata-log"])}


def folder_of(table: Table):  # type: ignore[no-untyped-def]
    assert table.location is not None
    return local_path(table.location).parent


class TestRefs:
    def test_refs_of_every_kind_come_and_go(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA).append("a").append("b")
        first = table.metadata["snapshots"][0]["snapshot-id"]
        table.commit(ref("audit", "tag", first, **{"max-ref-age-ms": 1000}), ref("dev", "branch", first))
        assert table.metadata["refs"]["audit"] == {"type": "tag", "snapshot-id": first, "max-ref-age-ms": 1000}
        table.commit({"action": "remove-snapshot-ref", "ref-name": "dev"})
        assert set(table.metadata["refs"]) == {"main", "audit"}
        table.commit({"action": "remove-snapshots", "snapshot-ids": [first]})
        assert set(table.metadata["refs"]) == {"main"}
        assert client.load_table(ident).files == ["b"]

    def test_a_load_can_be_of_the_referenced_snapshots_alone(self, client: JavaClient, ident: Ident) -> None:
        table = client.create_table(ident, SCHEMA).append("a").append("b").append("c")
        first = table.metadata["snapshots"][0]["snapshot-id"]
        table.commit(ref("audit", "tag", first))
        reply = client.ask("GET", client.table_path(ident) + "?snapshots=refs")
        assert [one["summary"]["file"] for one in reply["metadata"]["snapshots"]] == ["a", "c"]
        assert len(client.ask("GET", client.table_path(ident) + "?snapshots=all")["metadata"]["snapshots"]) == 3


def ref(name: str, kind: str, snapshot_id: int, **more: int) -> Document:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot_id, **more}
