"""The embedded lake, and tables made and taken back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import frazil
from frazil import BadInput
from frazil.errors import StorageFailed
from frazil.settings import CatalogSettings
from frazil.snapshot.folder_lock import FolderLock
from frazil.snapshot.warehouse import create_table, drop_unused, find_table, open_catalog, table_identifier
from frazil.testing import FaultyCatalog
from lakes import SCHEMA, Lake, append, embedded, ids, plain
from readers import read_with_duckdb


def test_any_pyiceberg_user_can_open_the_embedded_catalog(tmp_path: Path) -> None:
    catalog = open_catalog(CatalogSettings(root=str(tmp_path / "lake")))
    table, made = create_table(catalog, ("db", "t"), SCHEMA, None, {})
    assert made
    append(table, 1)
    theirs = SqlCatalog("frazil", uri=f"sqlite:///{tmp_path}/lake/catalog.db").load_table("db.t")
    assert ids(theirs) == [1]
    assert sorted(path.name for path in (tmp_path / "lake").iterdir()) == ["catalog.db", "catalog.lock", "warehouse"]


def test_a_root_with_a_space_in_its_name_is_one_folder(tmp_path: Path) -> None:
    lake = embedded(tmp_path / "my lake ü")
    table = lake.table()
    append(table, 1)
    assert read_with_duckdb(table)["id"].to_pylist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["my lake ü"]


@pytest.mark.parametrize("sign", ["?", "#", "%20"])
def test_a_root_that_would_be_misread_is_refused(tmp_path: Path, sign: str) -> None:
    with pytest.raises(BadInput, match="parts of an address"):
        open_catalog(CatalogSettings(root=str(tmp_path / f"a{sign}b")))
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    with pytest.raises(StorageFailed, match="cannot be written"):
        open_catalog(CatalogSettings(root=str(tmp_path / "lake")))


def test_a_catalog_that_nobody_configured_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot be opened"):
        open_catalog(CatalogSettings(name="there-is-none"))


@pytest.mark.parametrize("name", ["t", "", ".t", "db.", "a..b"])
def test_what_is_no_tables_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not a table's name"):
        table_identifier(name)
    assert table_identifier("a.b.c") == ("a", "b", "c")


def test_a_missing_table_is_none_and_a_made_one_is_partitioned(any_lake: Lake) -> None:
    name = (any_lake.namespace, "new")
    assert find_table(any_lake.catalog, name) is None
    table, made = create_table(any_lake.catalog, name, SCHEMA, "bucket(4, id)", {"format-version": "2"})
    assert made and [field.name for field in table.spec().fields] == ["id_bucket"]
    found = find_table(any_lake.catalog, name)
    assert found is not None and found.metadata.table_uuid == table.metadata.table_uuid


def test_of_two_that_make_a_table_one_has_made_it(lake: Lake) -> None:
    first, made = create_table(lake.catalog, ("a", "b", "t"), SCHEMA, None, {})
    second, again = create_table(lake.open(), ("a", "b", "t"), SCHEMA, "id", {})
    assert (made, again) == (True, False)
    assert first.metadata.table_uuid == second.metadata.table_uuid and second.spec().is_unpartitioned()


def test_a_table_that_nobody_used_is_taken_back_with_its_files(lake: Lake) -> None:
    table = lake.table()
    snapshot = frazil.begin_snapshot(table)
    frazil.sweep(table, snapshot.commit_uuid, force=True)
    assert drop_unused(lake.catalog, table)
    assert find_table(lake.catalog, ("db", "t")) is None and lake.files(table) == set()


def test_a_table_that_somebody_uses_stays(lake: Lake) -> None:
    written, reserved = lake.table("written"), lake.table("reserved")
    append(written, 1)
    frazil.begin_snapshot(reserved)
    for table in (written, reserved):
        assert not drop_unused(lake.catalog, lake.again(table))
        assert find_table(lake.catalog, table.name()) is not None


def test_a_table_made_anew_right_after_the_drop_keeps_its_files(lake: Lake) -> None:
    table = lake.table()
    drop = lake.catalog.drop_table

    def drop_and_make_anew(name: tuple[str, ...]) -> None:
        drop(name)
        append(lake.table(), 1)

    vars(lake.catalog)["drop_table"] = drop_and_make_anew
    assert drop_unused(lake.catalog, table)
    anew = lake.open().load_table(table.name())
    assert ids(anew) == [1] and {plain(anew.metadata_location)} <= lake.files(anew)


def test_the_lock_keeps_other_holders_waiting_and_its_own_thread_not(tmp_path: Path) -> None:
    one, other = FolderLock(tmp_path / "lock"), FolderLock(tmp_path / "lock")
    entered, order = threading.Event(), []

    def wait_for_it() -> None:
        entered.set()
        with other.held():
            order.append("other")

    with one.held(), one.held():
        thread = threading.Thread(target=wait_for_it)
        thread.start()
        assert entered.wait(10)
        thread.join(0.1)
        order.append("one")
    thread.join(10)
    assert order == ["one", "other"]


def test_the_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "lock")
    with pytest.raises(ZeroDivisionError), lock.held():
        raise ZeroDivisionError
    with FolderLock(tmp_path / "lock").held(), FaultyCatalog(embedded(tmp_path / "lake").catalog):
        assert lock._file is None


def test_v3_metadata_keeps_the_next_row_id(lake: Lake) -> None:
    table = lake.table(version=3)
    assert lake.again(table).metadata.next_row_id == 0
    append(table, 1, 2)
    append(table, 3)
    assert lake.again(table).metadata.next_row_id == 3
    theirs = SqlCatalog("frazil", **lake.catalog.properties).load_table(table.name())
    assert ids(theirs) == [1, 2, 3]
