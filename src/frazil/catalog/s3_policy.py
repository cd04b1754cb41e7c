"""The session policy of vended credentials: one table's folders, and no more of them than the caller may. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from frazil.catalog.s3_places import S3Place

READING: Final = ("s3:GetObject", "s3:GetObjectVersion")
WRITING: Final = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


def session_policy(folders: Sequence[S3Place], *, writes: bool) -> str:
    """The policy as JSON. What the assumed role itself may not do stays forbidden: a session policy only narrows."""
    objects = {
        "Effect": "Allow",
        "Action": [*READING, *(WRITING if writes else ())],
        "Resource": [f"arn:aws:s3:::{each.bucket}/{_literal(each.key)}/*" for each in folders],
    }
    buckets = sorted({each.bucket for each in folders})
    lists = [_listing(bucket, [each.key for each in folders if each.bucket == bucket]) for bucket in buckets]
    return json.dumps({"Version": "2012-10-17", "Statement": [objects, *lists]}, separators=(",", ":"))


def _listing(bucket: str, keys: Sequence[str]) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Action": ["s3:ListBucket"],
        "Resource": [f"arn:aws:s3:::{bucket}"],
        "Condition": {"StringLike": {"s3:prefix": [f"{_literal(key)}/*" for key in keys]}},
    }


def _literal(key: str) -> str:
    """A key in which a star or a question mark stands for itself."""
    return "".join("${" + sign + "}" if sign in "$*?" else sign for sign in key)
