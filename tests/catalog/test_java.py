"""Iceberg's own Java client works with the catalog: what its CatalogTests and ViewCatalogTests expect, through Java itself.

Each test says what one or several of them expect. The client's options are at their defaults.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from readers import local_path
from services.frazil_catalog import FrazilCatalog
from services.java_iceberg import JavaIceberg, thrown
from services.processes import wait_until

ODD_NAMES = ["tab/le", "ta.ble", "ta ble", "ta+ble", "ta%ble", "ta%2Fble", "täble🤪", "ta:ble", "ta?b#le", "ta&b=le"]


@pytest.fixture(scope="module")
def catalog(java_iceberg: JavaIceberg, frazil_catalog: FrazilCatalog) -> Any:
    return java_iceberg.catalog(frazil_catalog.uri)


class World:
    """The schemas, specs and orders of Java's CatalogTests, and a namespace of the test's own."""

    def __init__(self, java: JavaIceberg, catalog: Any) -> None:
        self.java, self.catalog = java, catalog
        self.db = f"db{uuid.uuid4().hex[:12]}"
        self.namespace = java.namespace(self.db)
        catalog.createNamespace(self.namespace)
        self.table = self.named("newtable")
        field, types = java.types.NestedField, java.types
        self.schema = java.schema(
            field.required(3, "id", types.IntegerType.get(), "unique ID 🤪"),
            field.required(4, "data", types.StringType.get()),
        )
        self.other_schema = java.schema(field.required(1, "some_id", types.IntegerType.get()))
        bucket = java.expressions.bucket("id", 16)
        self.spec = java.iceberg.PartitionSpec.builderFor(self.schema).bucket("id", 16).build()
        self.order = java.iceberg.SortOrder.builderFor(self.schema).asc(bucket).asc("id").build()
        self.files = [
            java.data_file(self.spec, f"/path/to/data-{letter}.parquet", f"id_bucket={place}")
            for place, letter in enumerate("abc")
        ]

    def named(self, name: str) -> Any:
        return self.java.identifier(self.db, name)

    def columns(self, table: Any) -> list[tuple[int, str]]:
        return [(column.fieldId(), column.name()) for column in table.schema().columns()]

    def load(self) -> Any:
        return self.catalog.loadTable(self.table)

    def create(self, schema: Any = None, **properties: str) -> Any:
        builder = self.catalog.buildTable(self.table, schema or self.schema)
        return with_properties(builder, properties).create()

    def append(self, target: Any, place: int = 0) -> None:
        target.newFastAppend().appendFile(self.files[place]).commit()


def with_properties(builder: Any, properties: dict[str, str]) -> Any:
    for name, value in properties.items():
        builder = builder.withProperty(name, value)
    return builder


@pytest.fixture
def world(java_iceberg: JavaIceberg, catalog: Any) -> World:
    return World(java_iceberg, catalog)


class TestNamespaces:
    def test_they_are_created_listed_described_and_dropped(self, world: World, java_iceberg: JavaIceberg) -> None:
        catalog, child = world.catalog, java_iceberg.namespace(world.db, "child")
        assert catalog.namespaceExists(world.namespace)
        with thrown("AlreadyExistsException", f"Namespace already exists: {world.db}"):
            catalog.createNamespace(world.namespace)
        catalog.createNamespace(child, {"owner": "user", "gone": "soon"})
        assert [str(one) for one in catalog.listNamespaces(world.namespace)] == [f"{world.db}.child"]
        assert catalog.setProperties(child, {"owner": "new"})
        catalog.removeProperties(child, {"gone"})
        held = catalog.loadNamespaceMetadata(child)
        assert (held["owner"], "gone" in held) == ("new", False)
        with thrown("NamespaceNotEmptyException", "is not empty"):
            catalog.dropNamespace(world.namespace)
        assert catalog.dropNamespace(child)
        assert not catalog.dropNamespace(child)
        with thrown("NoSuchNamespaceException", f"Namespace does not exist: {world.db}.child"):
            catalog.loadNamespaceMetadata(child)
        with thrown("NoSuchNamespaceException", "Namespace does not exist: non-existing"):
            catalog.listNamespaces(java_iceberg.namespace("non-existing"))

    @pytest.mark.parametrize("odd", ODD_NAMES)
    def test_a_name_may_hold_any_sign(self, world: World, java_iceberg: JavaIceberg, odd: str) -> None:
        catalog, outer = world.catalog, java_iceberg.namespace(world.db, odd)
        inner = java_iceberg.namespace(world.db, odd, odd)
        catalog.createNamespace(outer)
        catalog.createNamespace(inner)
        assert list(catalog.listNamespaces(outer)) == [inner]
        table = java_iceberg.identifier(world.db, odd, odd, odd)
        catalog.buildTable(table, world.schema).create()
        assert list(catalog.listTables(inner)) == [table]
        assert catalog.dropTable(table)
        assert catalog.dropNamespace(inner)
        assert catalog.dropNamespace(outer)


class TestTables:
    @pytest.mark.parametrize("odd", ODD_NAMES)
    def test_a_name_may_hold_any_sign(self, world: World, odd: str) -> None:
        catalog, table = world.catalog, world.named(odd)
        assert not catalog.tableExists(table)
        catalog.buildTable(table, world.schema).create()
        assert catalog.tableExists(table)
        assert list(catalog.listTables(world.namespace)) == [table]
        assert world.columns(catalog.loadTable(table)) == [(1, "id"), (2, "data")]
        renamed = world.named(odd + "2")
        catalog.renameTable(table, renamed)
        assert list(catalog.listTables(world.namespace)) == [renamed]
        assert catalog.dropTable(renamed, True)
        assert not catalog.tableExists(renamed)

    def test_everything_that_is_asked_for_at_creation_is_kept(self, world: World) -> None:
        location = world.create().location() + "-elsewhere"
        world.catalog.dropTable(world.table)
        builder = world.catalog.buildTable(world.table, world.schema).withLocation(location)
        builder = builder.withPartitionSpec(world.spec).withSortOrder(world.order)
        made = with_properties(builder, {"user": "someone", "format-version": "3"}).create()
        for table in (made, world.load()):
            assert world.columns(table) == [(1, "id"), (2, "data")]
            assert table.location() == location
            assert str(table.spec()) == "[\n  1000: id_bucket: bucket[16](1)\n]"
            assert [one.sourceId() for one in table.sortOrder().fields()] == [1, 1]
            assert table.properties()["user"] == "someone"
            assert table.operations().current().formatVersion() == 3
            assert str(table.uuid()) == table.operations().current().uuid()

    def test_errors_have_the_names_and_the_words_that_java_expects(
        self, world: World, java_iceberg: JavaIceberg
    ) -> None:
        catalog, missing = world.catalog, java_iceberg.identifier("non_existing", "t")
        with thrown("NoSuchTableException", f"Table does not exist: {world.table}"):
            world.load()
        with thrown("NoSuchTableException", "Table does not exist: non_existing.t"):
            catalog.loadTable(missing)
        with thrown("NoSuchNamespaceException", "Namespace does not exist: non_existing"):
            catalog.buildTable(missing, world.schema).create()
        with thrown("NoSuchTableException", "Table does not exist"):
            catalog.renameTable(world.table, world.named("renamed"))
        world.create()
        with thrown("AlreadyExistsException", f"Table already exists: {world.table}"):
            world.create(world.other_schema)
        with thrown("NoSuchNamespaceException", "Namespace does not exist: non_existing"):
            catalog.renameTable(world.table, missing)
        catalog.buildTable(world.named("taken"), world.schema).create()
        with thrown("AlreadyExistsException", "Table already exists"):
            catalog.renameTable(world.table, world.named("taken"))
        with thrown("AlreadyExistsException", f"Table already exists: {world.table}"):
            catalog.registerTable(world.table, world.load().operations().current().metadataFileLocation())
        assert not catalog.dropTable(world.named("missing"))

    def test_a_metadata_table_is_loaded_beside_its_table(self, world: World, java_iceberg: JavaIceberg) -> None:
        world.create()
        files = world.catalog.loadTable(java_iceberg.identifier(world.db, "newtable", "files"))
        assert files.getClass().getSimpleName() == "FilesTable"
        files.refresh()

    def test_a_metadata_file_that_is_gone_is_not_found(self, world: World) -> None:
        table = world.create()
        file = local_path(table.operations().current().metadataFileLocation())
        copy = file.with_name(f"00000-{uuid.uuid4()}.metadata.json")
        copy.write_bytes(file.read_bytes())
        world.catalog.registerTable(world.named("gone"), f"file://{copy}")
        copy.unlink()
        # Clients since 1.10 call it NotFoundException.
        with thrown("NoSuchTableException", f"Failed to open input stream for file: file://{copy}"):
            world.catalog.loadTable(world.named("gone"))

    def test_a_dropped_table_is_registered_as_it_was(self, world: World, java_iceberg: JavaIceberg) -> None:
        builder = world.catalog.buildTable(world.table, world.schema).withPartitionSpec(world.spec)
        original = builder.withSortOrder(world.order).create()
        world.append(original, 0)
        world.append(original, 1)
        original.newDelete().deleteFile(world.files[0]).commit()
        world.append(original, 2)
        location = original.operations().current().metadataFileLocation()
        world.catalog.dropTable(world.table, False)
        registered = world.catalog.registerTable(world.table, location)
        assert registered.currentSnapshot() == original.currentSnapshot()
        assert list(registered.history()) == list(original.history())
        assert java_iceberg.files(registered) == ["/path/to/data-b.parquet", "/path/to/data-c.parquet"]
        world.append(registered, 0)
        assert len(java_iceberg.files(world.load())) == 3

    def test_purging_a_renamed_table_leaves_the_one_that_took_its_name(self, world: World) -> None:
        world.append(world.create(), 0)
        renamed = world.named("renamed")
        world.catalog.renameTable(world.table, renamed)
        recreated = world.create()
        world.append(recreated, 1)
        assert world.catalog.dropTable(renamed, True)
        assert not world.catalog.tableExists(renamed)
        assert world.load().currentSnapshot() == recreated.currentSnapshot()

    @pytest.mark.parametrize("mode", ["ALL", "REFS"])
    def test_snapshots_are_loaded_all_at_once_or_when_they_are_needed(
        self, world: World, java_iceberg: JavaIceberg, frazil_catalog: FrazilCatalog, mode: str
    ) -> None:
        table = world.create()
        for place in (0, 1, 2):
            world.append(table, place)
        client = java_iceberg.catalog(frazil_catalog.uri, snapshot_loading_mode=mode)
        loaded = client.loadTable(world.table)
        assert loaded.currentSnapshot() == table.currentSnapshot()
        assert list(loaded.snapshots()) == list(table.snapshots())
        loaded.manageSnapshots().createTag("first", table.history()[0].snapshotId()).commit()
        world.append(loaded, 0)
        assert len(list(world.load().snapshots())) == 4
        assert set(world.load().refs()) == {"main", "first"}


def test_defaults_and_overrides_of_properties_are_the_clients(
    world: World, java_iceberg: JavaIceberg, frazil_catalog: FrazilCatalog
) -> None:
    kinds = {"default": "default-key1", "override": "override-key3"}
    options = {f"{what}-{kind}.{key}": f"{kind}" for what in ("table", "view") for kind, key in kinds.items()}
    client = java_iceberg.catalog(frazil_catalog.uri, **options)
    asked = {"default-key1": "asked", "override-key3": "asked"}
    with_properties(client.buildTable(world.named("plain"), world.schema), {}).create()
    with_properties(client.buildTable(world.named("asked"), world.schema), asked).create()
    with_properties(
        client.buildTable(world.named("staged"), world.schema), asked
    ).createTransaction().commitTransaction()
    with_properties(
        client.buildTable(world.named("plain"), world.other_schema), asked
    ).replaceTransaction().commitTransaction()
    for name in ("plain", "asked", "staged"):
        held = client.loadTable(world.named(name)).properties()
        assert (held["default-key1"], held["override-key3"]) == ("asked", "override")
    view = client.buildView(world.named("view")).withSchema(world.schema).withQuery("spark", "select 1")
    held = with_properties(view.withDefaultNamespace(world.namespace), {"override-key3": "asked"}).create().properties()
    assert (held["default-key1"], held["override-key3"]) == ("default", "override")


class TestCommits:
    def test_a_table_evolves(self, world: World, java_iceberg: JavaIceberg) -> None:
        table = world.create()
        table.updateSchema().addColumn("new_col", java_iceberg.types.LongType.get()).commit()
        table.updateSpec().addField("shard", java_iceberg.expressions.bucket("id", 16)).commit()
        java_iceberg.ascending(table.replaceSortOrder(), "new_col").commit()
        table.updateProperties().set("a", "b").commit()
        table.updateProperties().remove("a").commit()
        loaded = world.load()
        assert world.columns(loaded) == [(1, "id"), (2, "data"), (3, "new_col")]
        assert [one.name() for one in loaded.spec().fields()] == ["shard"]
        assert [one.sourceId() for one in loaded.sortOrder().fields()] == [3]
        assert "a" not in loaded.properties()
        loaded.updateSchema().deleteColumn("data").renameColumn("id", "key").commit()
        with thrown("ValidationException", "Cannot find field 'data'"):
            loaded.updateSpec().addField("data").commit()
        assert world.columns(world.load()) == [(1, "key"), (3, "new_col")]

    def test_stale_updates_land_unless_what_they_build_upon_has_changed(
        self, world: World, java_iceberg: JavaIceberg
    ) -> None:
        long, string = java_iceberg.types.LongType.get(), java_iceberg.types.StringType.get()
        table = world.create()
        schema = table.updateSchema().addColumn("new_col", long)
        spec = world.load().updateSpec().addField("shard", java_iceberg.expressions.bucket("id", 16))
        spec.commit()
        schema.commit()
        stale = world.load().updateSchema().addColumn("one", long)
        world.load().updateSchema().addColumn("two", string).commit()
        with thrown("CommitFailedException", "Requirement failed: last assigned field id changed"):
            stale.commit()
        stale = world.load().updateSchema().addColumn("one", long)
        world.load().updateSchema().deleteColumn("two").commit()
        with thrown("CommitFailedException", "Requirement failed: current schema changed"):
            stale.commit()
        stale_spec = world.load().updateSpec().addField("more", java_iceberg.expressions.bucket("data", 16))
        world.load().updateSpec().removeField("shard").commit()
        with thrown("CommitFailedException", "Requirement failed: default partition spec changed"):
            stale_spec.commit()

    def test_a_commit_to_a_table_that_was_recreated_is_refused(self, world: World, java_iceberg: JavaIceberg) -> None:
        stale = world.create().updateSchema().addColumn("new_col", java_iceberg.types.LongType.get())
        world.catalog.dropTable(world.table)
        world.create(world.other_schema)
        with thrown("CommitFailedException", "Requirement failed: UUID does not match"):
            stale.commit()

    @pytest.mark.parametrize("version", ["1", "2", "3"])
    def test_a_stale_append_lands_on_a_second_try(self, world: World, java_iceberg: JavaIceberg, version: str) -> None:
        table = world.create(**{"format-version": version})
        append = table.newFastAppend().appendFile(world.files[0])
        append.apply()
        world.append(world.load(), 1)
        append.commit()
        assert java_iceberg.files(world.load()) == ["/path/to/data-a.parquet", "/path/to/data-b.parquet"]

    def test_several_updates_are_one_commit(self, world: World, java_iceberg: JavaIceberg) -> None:
        transaction = world.create().newTransaction()
        transaction.updateSchema().addColumn("new_col", java_iceberg.types.LongType.get()).commit()
        transaction.updateSpec().addField("shard", java_iceberg.expressions.bucket("id", 16)).commit()
        transaction.commitTransaction()
        loaded = world.load()
        assert len(world.columns(loaded)) == 3
        assert len(loaded.operations().current().previousFiles()) == 1

    @pytest.mark.parametrize("with_branch", [False, True])
    def test_specs_and_schemas_that_nothing_uses_are_removed_with_old_snapshots(
        self, world: World, java_iceberg: JavaIceberg, with_branch: bool
    ) -> None:
        builder = world.catalog.buildTable(world.table, world.schema).withPartitionSpec(world.spec)
        table = builder.withProperty("gc.enabled", "true").create()
        world.append(table, 0)
        if with_branch:
            table.manageSnapshots().createBranch("test").commit()
        table.updateSpec().addField(java_iceberg.expressions.bucket("data", 16)).commit()
        table.updateSpec().removeField(java_iceberg.expressions.bucket("data", 16)).commit()
        table.updateSpec().addField("data").commit()
        table.updateSchema().addColumn("extra", java_iceberg.types.LongType.get()).commit()
        assert len(table.specs()) == 3
        table.expireSnapshots().cleanExpiredMetadata(True).commit()
        assert len(world.load().specs()) == 2
        table.newDelete().deleteFile(world.files[0]).commit()
        file = java_iceberg.data_file(table.spec(), "/path/to/data-d.parquet", "id_bucket=0/data=123")
        table.newAppend().appendFile(file).commit()
        expire = table.expireSnapshots().cleanExpiredFiles(False)
        expire.expireOlderThan(table.currentSnapshot().timestampMillis()).cleanExpiredMetadata(True).commit()
        loaded = world.load()
        assert len(loaded.specs()) == (2 if with_branch else 1)
        assert len(loaded.schemas()) == (2 if with_branch else 1)

    def test_old_metadata_files_go_where_the_table_asks_for_it(self, world: World, java_iceberg: JavaIceberg) -> None:
        kept = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
        table = world.create(**kept)
        for number in range(5):
            table.updateSchema().addColumn(f"c{number}", java_iceberg.types.LongType.get()).commit()
            reachable = java_iceberg.iceberg.ReachableFileUtil.metadataFileLocations(world.load(), False)
            assert len(reachable) == min(number + 2, 3)
        folder = local_path(table.operations().current().metadataFileLocation()).parent
        assert len(list(folder.glob("*.metadata.json"))) == 3

    def test_statistics_and_refs_come_and_go(self, world: World, java_iceberg: JavaIceberg) -> None:
        table = world.create()
        world.append(table, 0)
        snapshot_id = table.currentSnapshot().snapshotId()
        blobs = java_iceberg.gateway.jvm.java.util.ArrayList()
        statistics = java_iceberg.iceberg.GenericStatisticsFile(snapshot_id, "/stats.puffin", 100, 42, blobs)
        table.updateStatistics().setStatistics(statistics).commit()
        assert [one.path() for one in world.load().statisticsFiles()] == ["/stats.puffin"]
        table.updateStatistics().removeStatistics(snapshot_id).commit()
        assert list(world.load().statisticsFiles()) == []
        table.manageSnapshots().createBranch("dev").createTag("v1", snapshot_id).commit()
        table.newFastAppend().appendFile(world.files[1]).toBranch("dev").commit()
        table.manageSnapshots().fastForwardBranch("main", "dev").removeTag("v1").commit()
        assert len(java_iceberg.files(world.load())) == 2
        assert set(world.load().refs()) == {"main", "dev"}

    def test_tables_change_together_or_not_at_all(self, world: World, java_iceberg: JavaIceberg) -> None:
        other = world.catalog.buildTable(world.named("other"), world.schema).create()
        first, second = world.create().newTransaction(), other.newTransaction()
        for transaction in (first, second):
            transaction.updateSchema().addColumn("new_col", java_iceberg.types.LongType.get()).commit()
        commits = java_iceberg.array(
            java_iceberg.iceberg.catalog.TableCommit,
            self._commit(java_iceberg, world.table, first),
            self._commit(java_iceberg, world.named("other"), second),
        )
        world.catalog.commitTransaction(commits)
        assert (
            len(world.columns(world.load())) == len(world.columns(world.catalog.loadTable(world.named("other")))) == 3
        )
        with thrown("CommitFailedException", "Requirement failed: last assigned field id changed"):
            world.catalog.commitTransaction(commits)

    @staticmethod
    def _commit(java: JavaIceberg, identifier: Any, transaction: Any) -> Any:
        start = transaction.startMetadata()
        return java.iceberg.catalog.TableCommit.create(identifier, start, transaction.currentMetadata())


class TestCreatingInATransaction:
    @pytest.mark.parametrize("version", ["1", "2", "3"])
    @pytest.mark.parametrize("kind", ["createTransaction", "createOrReplaceTransaction"])
    def test_nobody_sees_the_table_before_it_is_committed(
        self, world: World, java_iceberg: JavaIceberg, kind: str, version: str
    ) -> None:
        builder = world.catalog.buildTable(world.table, world.schema).withPartitionSpec(world.spec)
        builder = with_properties(builder.withSortOrder(world.order), {"user": "someone", "format-version": version})
        create = getattr(builder, kind)()
        world.append(create)
        assert not world.catalog.tableExists(world.table)
        create.commitTransaction()
        table = world.load()
        assert java_iceberg.files(table) == ["/path/to/data-a.parquet"]
        assert table.operations().current().formatVersion() == int(version)
        assert (table.spec().specId(), table.sortOrder().orderId()) == (0, 1)
        assert table.properties()["user"] == "someone"
        assert len(table.operations().current().previousFiles()) == 0
        assert table.currentSnapshot().sequenceNumber() == (0 if version == "1" else 1)

    def test_a_table_may_evolve_before_it_is_committed(self, world: World, java_iceberg: JavaIceberg) -> None:
        builder = world.catalog.buildTable(world.table, world.schema).withPartitionSpec(world.spec)
        create = builder.withSortOrder(world.order).createTransaction()
        world.append(create)
        create.updateSchema().addColumn("new_col", java_iceberg.types.LongType.get()).commit()
        create.updateSpec().addField("new_col").commit()
        java_iceberg.ascending(create.replaceSortOrder(), "new_col").commit()
        later = java_iceberg.data_file(create.table().spec(), "/path/to/data-d.parquet", "id_bucket=0/new_col=0")
        create.newFastAppend().appendFile(later).commit()
        create.commitTransaction()
        table = world.load()
        assert table.schema().schemaId() == table.spec().specId() == 1
        assert table.sortOrder().orderId() == 2
        assert java_iceberg.files(table) == ["/path/to/data-a.parquet", "/path/to/data-d.parquet"]

    @pytest.mark.parametrize("kind", ["createTransaction", "createOrReplaceTransaction"])
    def test_a_table_that_was_created_meanwhile_stays_as_it_is(self, world: World, kind: str) -> None:
        create = getattr(world.catalog.buildTable(world.table, world.schema), kind)()
        world.append(create)
        world.create(world.other_schema)
        with thrown("AlreadyExistsException", "Requirement failed: table already exists"):
            create.commitTransaction()
        assert world.columns(world.load()) == [(1, "some_id")]


class TestReplacingInATransaction:
    def test_a_missing_table_cannot_be_replaced(self, world: World) -> None:
        with thrown("NoSuchTableException", f"Table does not exist: {world.table}"):
            world.catalog.buildTable(world.table, world.schema).replaceTransaction()

    @pytest.mark.parametrize("kind", ["replaceTransaction", "createOrReplaceTransaction"])
    def test_a_replaced_table_is_new_but_for_its_uuid_and_its_history(
        self, world: World, java_iceberg: JavaIceberg, kind: str
    ) -> None:
        original = world.create(world.other_schema)
        original.newFastAppend().appendFile(java_iceberg.data_file(original.spec(), "/path/to/old.parquet")).commit()
        builder = world.catalog.buildTable(world.table, world.schema).withPartitionSpec(world.spec)
        replace = getattr(builder.withSortOrder(world.order).withProperty("user", "someone"), kind)()
        world.append(replace)
        assert world.columns(world.load()) == [(1, "some_id")]
        replace.commitTransaction()
        table = world.load()
        assert world.columns(table) == [(2, "id"), (3, "data")]
        assert str(table.uuid()) == str(original.uuid())
        assert java_iceberg.files(table) == ["/path/to/data-a.parquet"]
        assert len(table.history()) == 2
        assert (table.spec().specId(), table.sortOrder().orderId()) == (1, 1)
        original.refresh()

    def test_of_two_replacements_the_later_wins(self, world: World, java_iceberg: JavaIceberg) -> None:
        create = world.catalog.buildTable(world.table, world.schema).createTransaction()
        world.append(create, 0)
        create.commitTransaction()
        later = world.catalog.buildTable(world.table, world.schema).replaceTransaction()
        world.append(later, 2)
        sooner = world.catalog.buildTable(world.table, world.schema).withPartitionSpec(world.spec).replaceTransaction()
        world.append(sooner, 1)
        sooner.commitTransaction()
        assert java_iceberg.files(world.load()) == ["/path/to/data-b.parquet"]
        later.commitTransaction()
        assert java_iceberg.files(world.load()) == ["/path/to/data-c.parquet"]
        assert world.load().spec().isUnpartitioned()

    def test_two_that_assign_column_ids_are_a_conflict(self, world: World) -> None:
        world.create(world.other_schema)
        begun = [world.catalog.buildTable(world.table, world.schema).replaceTransaction() for _ in range(2)]
        begun[0].commitTransaction()
        with thrown("CommitFailedException", "Requirement failed: last assigned field id changed"):
            begun[1].commitTransaction()


class TestViews:
    def build(self, world: World, name: str, schema: Any = None, dialect: str = "spark", sql: str = "select 1") -> Any:
        builder = world.catalog.buildView(world.named(name)).withSchema(schema or world.schema)
        return builder.withDefaultNamespace(world.namespace).withQuery(dialect, sql)

    def test_a_view_is_created_replaced_renamed_and_dropped(self, world: World) -> None:
        catalog, view = world.catalog, world.named("view")
        made = self.build(world, "view").withQuery("trino", "select 2").withProperty("a", "b").create()
        assert made.currentVersion().operation() == "create"
        assert made.properties()["a"] == "b"
        with thrown("AlreadyExistsException", f"View already exists: {view}"):
            self.build(world, "view").create()
        replaced = self.build(world, "view", world.other_schema, "trino", "select 3")
        with thrown("IllegalStateException", "Cannot replace view due to loss of view dialects"):
            replaced.replace()
        allowed = replaced.withProperty("replace.drop-dialect.allowed", "true").replace()
        assert allowed.currentVersion().versionId() == 2
        assert [one.versionId() for one in catalog.loadView(view).history()] == [1, 2]
        assert catalog.loadView(view).sqlFor("trino").sql() == "select 3"
        assert len(catalog.loadView(view).schemas()) == 2
        catalog.renameView(view, world.named("renamed"))
        assert [str(one) for one in catalog.listViews(world.namespace)] == [f"{world.db}.renamed"]
        assert catalog.dropView(world.named("renamed"))
        assert not catalog.dropView(world.named("renamed"))

    def test_properties_location_and_versions_change(self, world: World) -> None:
        view = self.build(world, "view").create()
        view.updateProperties().set("key1", "val1").set("key2", "val2").remove("nothing").commit()
        location = view.location() + "-elsewhere"
        view.updateLocation().setLocation(location).commit()
        replace = view.replaceVersion().withQuery("spark", "select 5").withSchema(world.schema)
        replace.withDefaultNamespace(world.namespace).withDefaultCatalog("prod").commit()
        loaded = world.catalog.loadView(world.named("view"))
        assert (loaded.properties()["key1"], loaded.location()) == ("val1", location)
        assert loaded.currentVersion().defaultCatalog() == "prod"
        world.catalog.dropView(world.named("view"))
        with thrown("NoSuchViewException", f"View does not exist: {world.db}.view"):
            view.updateProperties().set("key", "val").commit()

    def test_two_that_replace_at_the_same_time_both_land(self, world: World) -> None:
        view = self.build(world, "view", dialect="trino").withProperty("replace.drop-dialect.allowed", "true").create()
        one = view.replaceVersion().withQuery("trino", "select count(id)").withSchema(world.schema)
        two = view.replaceVersion().withQuery("spark", "select count(some_id)").withSchema(world.other_schema)
        two.withDefaultNamespace(world.namespace).commit()
        one.withDefaultNamespace(world.namespace).commit()
        loaded = world.catalog.loadView(world.named("view"))
        assert loaded.currentVersion().versionId() == 3
        assert [one.schemaId() for one in loaded.versions()] == [0, 1, 0]

    def test_tables_and_views_share_their_names(self, world: World) -> None:
        catalog = world.catalog
        world.create()
        self.build(world, "view").create()
        with thrown("AlreadyExistsException", f"Table with same name already exists: {world.table}"):
            self.build(world, "newtable").create()
        taken = f"View with same name already exists: {world.db}.view"
        with thrown("AlreadyExistsException", taken):
            catalog.buildTable(world.named("view"), world.schema).create()
        for kind in ("createTransaction", "replaceTransaction", "createOrReplaceTransaction"):
            with thrown("AlreadyExistsException", taken):
                getattr(catalog.buildTable(world.named("view"), world.schema), kind)()
        with thrown("AlreadyExistsException", f"Table with same name already exists: {world.table}"):
            self.build(world, "newtable").createOrReplace()
        self.build(world, "other").create()
        with thrown(
            "AlreadyExistsException", f"Cannot rename {world.db}.view to {world.db}.other. View already exists"
        ):
            catalog.renameView(world.named("view"), world.named("other"))
        with thrown("AlreadyExistsException", f"Cannot rename {world.db}.view to {world.table}. Table already exists"):
            catalog.renameView(world.named("view"), world.table)
        with thrown("AlreadyExistsException", f"Cannot rename {world.table} to {world.db}.view. View already exists"):
            catalog.renameTable(world.table, world.named("view"))
        with thrown("NoSuchViewException", "View does not exist"):
            catalog.loadView(world.table)
        with thrown("NoSuchTableException", "Table does not exist"):
            catalog.loadTable(world.named("view"))

    def test_a_view_without_a_query_or_with_two_of_a_dialect_is_refused(self, world: World) -> None:
        builder = world.catalog.buildView(world.named("view")).withSchema(world.schema)
        with thrown("IllegalStateException", "Cannot create view without specifying a query"):
            builder.withDefaultNamespace(world.namespace).create()
        with thrown("IllegalArgumentException", "Invalid view version: Cannot add multiple queries for dialect trino"):
            self.build(world, "view", dialect="trino").withQuery("TRINO", "select 2").create()


def test_reports_of_scans_and_commits_arrive(
    world: World, frazil_catalog: FrazilCatalog, java_iceberg: JavaIceberg
) -> None:
    world.append(world.create())
    assert java_iceberg.files(world.load()) == ["/path/to/data-a.parquet"]
    path = f"/v1/namespaces/{world.db}/tables/newtable/metrics"
    wait_until(lambda: len(frazil_catalog.ask("GET", path).document["reports"]) == 2, frazil_catalog.process)
