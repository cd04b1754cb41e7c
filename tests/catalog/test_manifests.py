"""A manifest list that is damaged anywhere is told of in the catalog's words, whatever PyIceberg's decoder makes of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from frazil.catalog.errors import InvalidRequest
from frazil.catalog.manifests import read_manifests
from frazil.snapshot.manifest_file import ManifestContent, ManifestFile
from frazil.snapshot.manifest_list import write_manifest_list


@pytest.fixture
def manifest_list(tmp_path: Path) -> Path:
    """A manifest list of one manifest."""
    path = tmp_path / "snap-1.avro"
    files = {"added_files_count": 1, "existing_files_count": 0, "deleted_files_count": 0}
    rows = {"added_rows_count": 1, "existing_rows_count": 0, "deleted_rows_count": 0}
    manifest = ManifestFile("file:///m.avro", 1000, 0, ManifestContent.DATA, added_snapshot_id=1, **files, **rows)
    write_manifest_list(
        PyArrowFileIO(),
        str(path),
        format_version=2,
        snapshot_id=1,
        parent_snapshot_id=None,
        sequence_number=1,
        manifests=[manifest],
        first_row_id=None,
    )
    return path


def refused(path: Path, damaged: bytes) -> bool:
    path.write_bytes(damaged)
    try:
        read_manifests(PyArrowFileIO(), str(path))
    except InvalidRequest as error:
        assert str(path) in str(error)
        return True
    return False


def test_bytes_that_are_other_bytes_are_refused_or_read_and_nothing_else(manifest_list: Path) -> None:
    whole = manifest_list.read_bytes()
    chance = random.Random(1)
    times = 0
    for _ in range(1000):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        times += refused(manifest_list, bytes(damaged))
    assert times > 600
