"""Metadata with fewer snapshots."""

from __future__ import annotations

from frazil.catalog.document import Document
from frazil.catalog.requirements import refs_of


def referenced_snapshots(metadata: Document) -> Document:
    """The metadata with only those snapshots that a branch or tag names."""
    named = {ref["snapshot-id"] for ref in refs_of(metadata).values()}
    return {**metadata, "snapshots": [one for one in metadata.get("snapshots") or () if one["snapshot-id"] in named]}
