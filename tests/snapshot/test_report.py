"""A report goes through JSON and protobuf unchanged, whatever is in it."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil import BadInput, ManifestContent, ManifestFile, Report
from frazil.snapshot import report_pb2
from frazil.snapshot.manifest import FieldSummary

LONG = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MAYBE_BYTES = st.none() | st.binary(max_size=20)

SUMMARIES = st.builds(
    FieldSummary,
    contains_null=st.booleans(),
    contains_nan=st.none() | st.booleans(),
    lower_bound=MAYBE_BYTES,
    upper_bound=MAYBE_BYTES,
)
MANIFESTS = st.builds(
    ManifestFile,
    manifest_path=TEXT,
    manifest_length=COUNT,
    partition_spec_id=st.integers(0, 2**31 - 1),
    content=st.sampled_from(ManifestContent),
    added_snapshot_id=LONG,
    sequence_number=st.none() | COUNT,
    min_sequence_number=st.none() | COUNT,
    added_files_count=st.none() | st.integers(0, 2**31 - 1),
    existing_files_count=st.none() | st.integers(0, 2**31 - 1),
    deleted_files_count=st.none() | st.integers(0, 2**31 - 1),
    added_rows_count=st.none() | COUNT,
    existing_rows_count=st.none() | COUNT,
    deleted_rows_count=st.none() | COUNT,
    partitions=st.lists(SUMMARIES, max_size=3).map(tuple),
    key_metadata=MAYBE_BYTES,
    first_row_id=st.none() | COUNT,
)
REPORTS = st.builds(
    Report,
    commit_uuid=TEXT,
    snapshot_id=LONG,
    shard=TEXT,
    attempt=st.integers(0, 2**31 - 1),
    manifests=st.lists(MANIFESTS, max_size=3).map(tuple),
    counts=st.dictionaries(TEXT, COUNT, max_size=4),
    partitions=st.lists(TEXT, max_size=3).map(tuple),
    rejected_rows=COUNT,
)


@given(REPORTS)
def test_json_gives_back_an_equal_report(report: Report) -> None:
    assert Report.from_json(report.to_json()) == report
    assert "\n" not in report.to_json()


@given(REPORTS)
def test_protobuf_gives_back_an_equal_report(report: Report) -> None:
    assert Report.from_protobuf(report.to_protobuf()) == report


@given(REPORTS)
def test_equal_reports_have_equal_bytes(report: Report) -> None:
    assert Report.from_json(report.to_json()).to_protobuf() == report.to_protobuf()


@given(REPORTS)
def test_a_report_pickles(report: Report) -> None:
    assert pickle.loads(pickle.dumps(report)) == report


@given(REPORTS)
def test_what_comes_back_has_the_types_that_went(report: Report) -> None:
    for back in (Report.from_json(report.to_json()), Report.from_protobuf(report.to_protobuf())):
        assert [type(each.content) for each in back.manifests] == [ManifestContent] * len(report.manifests)
        assert isinstance(back.manifests, tuple) and isinstance(back.partitions, tuple)


def test_figures_are_those_of_the_counts() -> None:
    counts = {"added-records": 3, "added-data-files": 2, "added-files-size": 100}
    report = Report("c", 1, "s", 0, (), counts)
    assert (report.rows, report.files, report.size) == (3, 2, 100)
    assert (Report("c", 1, "s", 0, (), {}).rows, Report("c", 1, "s", 0, (), {}).files) == (0, 0)


def test_a_newer_report_is_refused_by_its_number() -> None:
    newer = {**json.loads(Report("c", 1, "s", 0, (), {}).to_json()), "version": 2}
    with pytest.raises(BadInput, match="version 2"):
        Report.from_json(json.dumps(newer))
    with pytest.raises(BadInput, match="version 7"):
        Report.from_protobuf(report_pb2.Report(version=7).SerializeToString())
