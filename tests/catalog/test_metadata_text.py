"""The text of metadata is always its JSON, however it was pieced together; and what is known is not written again."""

from __future__ import annotations

import gzip

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.documents import NOW, Document, add, new_table, point, snapshot, with_snapshots
from frazil.catalog.metadata_text import LARGEST_BLOCK, MetadataText
from frazil.catalog.updates import apply_updates


def append(table: Document) -> Document:
    number = table["last-sequence-number"] + 1
    return apply_updates(table, [add(snapshot(number)), point(number)], now_ms=NOW + number)


def expire(table: Document, ids: list[int]) -> Document:
    return apply_updates(table, [{"action": "remove-snapshots", "snapshot-ids": ids}], now_ms=NOW + 1_000)


def check(text: MetadataText) -> None:
    assert orjson.loads(text.json()) == text.metadata
    assert orjson.loads(gzip.decompress(text.gzip())) == text.metadata


@given(st.lists(st.one_of(st.none(), st.lists(st.integers(min_value=1, max_value=40), max_size=6)), max_size=40))
def test_after_any_history_the_text_is_the_document(history: list[list[int] | None]) -> None:
    table = new_table()
    text = MetadataText.of(table)
    for expired in history:
        table = append(table) if expired is None else expire(table, expired)
        text = MetadataText.of(table, text)
        check(text)


@pytest.mark.parametrize("missing", [(), ("snapshots",), ("snapshot-log",), ("snapshots", "snapshot-log")])
def test_a_document_without_the_growing_lists_keeps_without_them(missing: tuple[str, ...]) -> None:
    check(
        MetadataText.of({name: value for name, value in with_snapshots(new_table(), 2).items() if name not in missing})
    )
    check(MetadataText.of({}))


def test_a_commit_serialises_what_it_adds_and_no_more() -> None:
    table = with_snapshots(new_table(), 3 * LARGEST_BLOCK + 7)
    before = MetadataText.of(table)
    after = MetadataText.of(append(table), before)
    kept = {id(block) for block in before.blocks["snapshots"]}
    made = [block for block in after.blocks["snapshots"] if id(block) not in kept]
    assert sum(len(block.entries) for block in made) <= 8


def test_expiring_the_oldest_snapshots_touches_the_oldest_block_alone() -> None:
    table = with_snapshots(new_table(), 3 * LARGEST_BLOCK)
    before = MetadataText.of(table)
    after = MetadataText.of(expire(table, [1, 2, 3]), before)
    assert after.blocks["snapshots"][1:] == before.blocks["snapshots"][1:]
    check(after)


def test_blocks_stay_few_and_small_over_many_commits() -> None:
    table, text = new_table(), MetadataText.of(new_table())
    for _ in range(600):
        table = append(table)
        text = MetadataText.of(table, text)
    sizes = [len(block.entries) for block in text.blocks["snapshots"]]
    assert (sum(sizes), max(sizes) <= LARGEST_BLOCK, len(sizes) < 16) == (600, True, True)
