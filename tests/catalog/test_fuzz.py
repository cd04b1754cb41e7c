"""The whole surface against the official document, with authentication on: no 5xx, nothing that the document does not say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guarded import Start

DOCUMENTS = [each / "shared" / "spec" / "rest-catalog-open-api.yaml" for each in Path(__file__).parents]
DOCUMENT = next((each for each in DOCUMENTS if each.exists()), None)
SETTINGS = """
[parameters]
"path.prefix" = "frazil"
"path.namespace" = "db"
"path.table" = "t"
"""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.slow
@pytest.mark.skipif(DOCUMENT is None, reason="the OpenAPI document is not beside this checkout")
def test_whatever_is_sent_the_answer_is_in_the_document(guarded: Start, tmp_path: Path) -> None:
    assert DOCUMENT is not None
    catalog = guarded(authentication=True, remote_signing=True)
    catalog.make("db.t")
    assert catalog.root is not None
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "run", str(DOCUMENT), "--url", catalog.uri,
            "--header", f"Authorization: Bearer {catalog.token(catalog.root)}", "--checks", CHECKS,
            "--phases", "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1",
            "--suppress-health-check", "all", "--no-color", "--warnings", "off",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    statuses = {line["status"] for line in catalog.lines}
    assert {200, 204, 400, 404, 409} <= statuses and not any(status >= 500 for status in statuses - {501})
