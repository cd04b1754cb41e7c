"""The reservation as a value that travels to writers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.locations import LocationProvider, load_location_provider

from frazil.errors import BadInput

DESCRIPTOR_VERSION = 1
RESERVATION_PROPERTY_PREFIX = "frazil.reservation."


@dataclass(frozen=True, slots=True)
class DistributedSnapshot:
    """All that a writer on any host needs to contribute to one reserved snapshot.

    It pickles and goes through JSON unchanged. `storage` holds the FileIO properties, credentials among them; it is
    empty unless `begin_snapshot(…, credentials=True)` asked for it, and is never printed.
    """

    table: tuple[str, ...]
    table_uuid: str
    snapshot_id: int
    parent_snapshot_id: int | None
    ref: str
    commit_uuid: str
    sequence_hint: int
    format_version: int
    schema: Schema
    spec: PartitionSpec
    location: str
    table_properties: Mapping[str, str]
    properties: Mapping[str, str]
    expires_at_ms: int
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The table's name as people write it."""
        return ".".join(self.table)

    @property
    def reservation_key(self) -> str:
        """The table property that holds the reservation."""
        return f"{RESERVATION_PROPERTY_PREFIX}{self.snapshot_id}"

    @property
    def locations(self) -> LocationProvider:
        """Where this table's own rules put data and metadata files."""
        return load_location_provider(self.location, dict(self.table_properties))

    @property
    def file_prefix(self) -> str:
        """What the path of each of this snapshot's manifests begins with."""
        return self.locations.new_metadata_location(f"{self.commit_uuid}-")

    def manifest_path(self, shard: str, attempt: int, number: int) -> str:
        """Where manifest `number` of one attempt at a shard lies."""
        return self.locations.new_metadata_location(f"{self.commit_uuid}-{shard}-{attempt}-m{number}.avro")

    def manifest_list_path(self, attempt: int) -> str:
        """Where the manifest list of one attempt at publishing lies."""
        return self.locations.new_metadata_location(f"snap-{self.snapshot_id}-{attempt}-{self.commit_uuid}.avro")

    def data_file_name(self, shard: str, attempt: int, number: int) -> str:
        """What data file `number` of one attempt at a shard is called, under whatever folder the table's rules give."""
        return f"{shard}-{attempt}-{self.commit_uuid}-{number:05d}.parquet"

    def expiring_at(self, expires_at_ms: int) -> DistributedSnapshot:
        """The same reservation with another end."""
        return replace(self, expires_at_ms=expires_at_ms)

    def with_storage(self, storage: Mapping[str, str]) -> DistributedSnapshot:
        """The same reservation with these storage properties; an empty mapping takes all credentials out."""
        return replace(self, storage=storage)

    def to_json(self) -> str:
        """One JSON object; `from_json` gives back an equal value."""
        document: dict[str, Any] = {
            "version": DESCRIPTOR_VERSION,
            "table": list(self.table),
            "table-uuid": self.table_uuid,
            "snapshot-id": self.snapshot_id,
            "parent-snapshot-id": self.parent_snapshot_id,
            "ref": self.ref,
            "commit-uuid": self.commit_uuid,
            "sequence-hint": self.sequence_hint,
            "format-version": self.format_version,
            "schema": self.schema.model_dump(mode="json", by_alias=True),
            "spec": self.spec.model_dump(mode="json", by_alias=True),
            "location": self.location,
            "table-properties": dict(self.table_properties),
            "properties": dict(self.properties),
            "expires-at-ms": self.expires_at_ms,
        }
        if self.storage:
            document["storage"] = dict(self.storage)
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> DistributedSnapshot:
        """The value that `to_json` wrote. A descriptor of a newer version is refused by its number."""
        document = json.loads(text)
        if document.get("version") != DESCRIPTOR_VERSION:
            raise BadInput(
                f"this snapshot descriptor has version {document.get('version')!r}, but this Frazil reads version "
                f"{DESCRIPTOR_VERSION}; run the same Frazil on writers and coordinator"
            )
        return cls(
            table=tuple(document["table"]),
            table_uuid=document["table-uuid"],
            snapshot_id=document["snapshot-id"],
            parent_snapshot_id=document["parent-snapshot-id"],
            ref=document["ref"],
            commit_uuid=document["commit-uuid"],
            sequence_hint=document["sequence-hint"],
            format_version=document["format-version"],
            schema=Schema.model_validate(document["schema"]),
            spec=PartitionSpec.model_validate(document["spec"]),
            location=document["location"],
            table_properties=document["table-properties"],
            properties=document["properties"],
            expires_at_ms=document["expires-at-ms"],
            storage=document.get("storage", {}),
        )
