from __future__ import annotations

import pickle

import pytest

from frazil.errors import BadInput
from frazil.scan.plan import FileTask
from frazil.scan.splits import SplitSize, plan_splits

SIZE = SplitSize(target=100, open_cost=10)


def file(name: str, size: int, *offsets: int) -> FileTask:
    return FileTask(name, size, size, offsets)


def planned(*files: FileTask, size: SplitSize = SIZE) -> list[list[tuple[str, int, int]]]:
    return [[(p.file.path, p.start, p.end) for p in split.pieces] for split in plan_splits(files, size)]


def test_small_files_are_put_together_in_splits_of_equal_size() -> None:
    assert planned(*(file(name, 40) for name in "abcdef")) == [
        [("a", 0, 40), ("b", 0, 40)],
        [("c", 0, 40), ("d", 0, 40)],
        [("e", 0, 40), ("f", 0, 40)],
    ]


def test_splits_are_as_few_as_the_target_allows() -> None:
    assert len(planned(*(file(str(n), 10) for n in range(10)))) == 1
    assert len(planned(*(file(str(n), 10) for n in range(11)))) == 2


def test_opening_a_file_has_its_cost() -> None:
    assert [len(split) for split in planned(*(file(str(n), 1) for n in range(25)))] == [8, 9, 8]


def test_large_files_are_cut_at_row_groups() -> None:
    whole = file("a", 250, 4, 60, 120, 180)
    assert pieces(whole) == [("a", 0, 60), ("a", 60, 120), ("a", 120, 180), ("a", 180, 250)]
    assert len(planned(whole)) == 3
    assert pieces(file("a", 120, 4, 30, 60, 90)) == [("a", 0, 90), ("a", 90, 120)]


def pieces(*files: FileTask) -> list[tuple[str, int, int]]:
    return [piece for split in planned(*files) for piece in split]


@pytest.mark.parametrize("offsets", [(), (4, 4), (50, 4), (4, 300)])
def test_a_file_whose_row_groups_are_not_known_stays_whole(offsets: tuple[int, ...]) -> None:
    assert planned(file("a", 250, *offsets)) == [[("a", 0, 250)]]


def test_nothing_to_read_is_no_split() -> None:
    assert planned() == []


def test_the_size_comes_from_the_reader_then_from_the_table() -> None:
    properties = {"read.split.target-size": "7", "read.split.open-file-cost": "3"}
    assert SplitSize.of_table(properties) == SplitSize(7, 3)
    assert SplitSize.of_table(properties, 9) == SplitSize(9, 3)
    with pytest.raises(BadInput, match=r"read\.split\.target-size"):
        SplitSize.of_table({"read.split.target-size": "big"})


def test_a_split_is_small_to_send() -> None:
    (split,) = plan_splits([file(f"s3://warehouse/db/t/data/{n:05d}.parquet", 10) for n in range(10)], SIZE)
    assert len(pickle.dumps(split)) < 2000
