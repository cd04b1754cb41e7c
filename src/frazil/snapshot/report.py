"""All that a writer hands over, as a value: self-contained, versioned, serialisable. Never only a path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from frazil.errors import BadInput
from frazil.snapshot import report_pb2
from frazil.snapshot.manifest import FieldSummary, ManifestContent, ManifestFile

REPORT_VERSION = 1

_MANIFEST_FIELDS = tuple(f.name for f in fields(ManifestFile) if f.name != "partitions")
_SUMMARY_FIELDS = tuple(f.name for f in fields(FieldSummary))


@dataclass(frozen=True, slots=True)
class Report:
    """One attempt at one shard, finished: its manifests with their full descriptors, its counts, its partitions.

    `rejected` is the report of the same shard to the table of rejected rows, where it rejected any.
    `counts` are the summary's keys (`added-records` and so on). `partitions` are the paths of the partitions touched.
    """

    commit_uuid: str
    snapshot_id: int
    shard: str
    attempt: int
    manifests: tuple[ManifestFile, ...]
    counts: Mapping[str, int]
    partitions: tuple[str, ...] = ()
    rejected_rows: int = 0
    rejected: Report | None = None
    version: int = REPORT_VERSION

    @property
    def rows(self) -> int:
        """Rows written."""
        return self.counts.get("added-records", 0)

    @property
    def files(self) -> int:
        """Data files written."""
        return self.counts.get("added-data-files", 0)

    @property
    def size(self) -> int:
        """Bytes of all files written."""
        return self.counts.get("added-files-size", 0)

    def to_json(self) -> str:
        """One JSON object on one line; `from_json` gives back an equal value."""
        return json.dumps(
            {
                "version": self.version,
                "commit-uuid": self.commit_uuid,
                "snapshot-id": self.snapshot_id,
                "shard": self.shard,
                "attempt": self.attempt,
                "manifests": [manifest.to_json() for manifest in self.manifests],
                "counts": dict(self.counts),
                "partitions": list(self.partitions),
                "rejected-rows": self.rejected_rows,
                "rejected": json.loads(self.rejected.to_json()) if self.rejected else None,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The value that `to_json` wrote."""
        document = json.loads(text)
        _check_version(document.get("version"))
        return cls(
            commit_uuid=document["commit-uuid"],
            snapshot_id=document["snapshot-id"],
            shard=document["shard"],
            attempt=document["attempt"],
            manifests=tuple(ManifestFile.from_json(manifest) for manifest in document["manifests"]),
            counts=document["counts"],
            partitions=tuple(document["partitions"]),
            rejected_rows=document["rejected-rows"],
            rejected=cls.from_json(json.dumps(rejected)) if (rejected := document.get("rejected")) else None,
        )

    def to_protobuf(self) -> bytes:
        """The wire form of `report.proto`; `from_protobuf` gives back an equal value."""
        return self._to_message().SerializeToString(deterministic=True)

    def _to_message(self) -> report_pb2.Report:
        return report_pb2.Report(
            version=self.version,
            commit_uuid=self.commit_uuid,
            snapshot_id=self.snapshot_id,
            shard=self.shard,
            attempt=self.attempt,
            manifests=[_manifest_message(manifest) for manifest in self.manifests],
            counts=dict(self.counts),
            partitions=self.partitions,
            rejected_rows=self.rejected_rows,
            rejected=self.rejected._to_message() if self.rejected else None,
        )

    @classmethod
    def from_protobuf(cls, data: bytes) -> Report:
        """The value that `to_protobuf` wrote."""
        return cls._from_message(report_pb2.Report.FromString(data))

    @classmethod
    def _from_message(cls, message: report_pb2.Report) -> Report:
        _check_version(message.version)
        return cls(
            commit_uuid=message.commit_uuid,
            snapshot_id=message.snapshot_id,
            shard=message.shard,
            attempt=message.attempt,
            manifests=tuple(_manifest_value(manifest) for manifest in message.manifests),
            counts=dict(message.counts),
            partitions=tuple(message.partitions),
            rejected_rows=message.rejected_rows,
            rejected=cls._from_message(message.rejected) if message.HasField("rejected") else None,
        )


def _check_version(version: Any) -> None:
    if version != REPORT_VERSION:
        raise BadInput(
            f"this report has version {version!r}, but this Frazil reads version {REPORT_VERSION}; run the same Frazil "
            "on writers and coordinator"
        )


def _manifest_message(manifest: ManifestFile) -> report_pb2.ManifestFile:
    values = {name: getattr(manifest, name) for name in _MANIFEST_FIELDS}
    summaries = [
        report_pb2.FieldSummary(**{name: getattr(summary, name) for name in _SUMMARY_FIELDS})
        for summary in manifest.partitions
    ]
    return report_pb2.ManifestFile(**values, partitions=summaries)


def _manifest_value(message: report_pb2.ManifestFile) -> ManifestFile:
    values = {name: _optional(message, name) for name in _MANIFEST_FIELDS}
    values["content"] = ManifestContent(message.content)
    summaries = tuple(
        FieldSummary(**{name: _optional(summary, name) for name in _SUMMARY_FIELDS}) for summary in message.partitions
    )
    return ManifestFile(**values, partitions=summaries)


def _optional(message: Any, name: str) -> Any:
    absent = message.DESCRIPTOR.fields_by_name[name].has_presence and not message.HasField(name)
    return None if absent else getattr(message, name)
