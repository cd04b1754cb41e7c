"""`frazil jobs` says what became of each job."""

from __future__ import annotations

from commands import Frazil, parquet
from frazil.jobs.log import JobStore


def test_no_job_yet_is_said(frazil: Frazil) -> None:
    assert "no job is kept" in frazil.here("jobs").out
    assert frazil.here("jobs", "--json").document == {"jobs": []}


def test_jobs_are_listed_newest_first_with_their_figures(frazil: Frazil) -> None:
    for rows in (10, 20):
        frazil.here("ingest", parquet(frazil.home / f"{rows}.parquet", rows), "db.t", "--root", frazil.root)
    listed = frazil.here("jobs", "--json").document["jobs"]
    assert [(job["state"], job["table"], job["rows"]) for job in listed] == [
        ("landed", "db.t", 20),
        ("landed", "db.t", 10),
    ]
    assert frazil.here("jobs", listed[1]["job"], "--json").document == listed[1]
    lines = frazil.here("jobs").out.splitlines()
    assert [line.split()[0] for line in lines] == [job["job"] for job in listed]
    assert "20 rows" in lines[0]


def test_an_unknown_job_is_a_usage_error(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet", 5), "db.t", "--root", frazil.root)
    ran = frazil.here("jobs", "nonesuch", "--json")
    assert ran.code == 2
    assert f"the newest kept here is {frazil.job()}" in ran.document["message"]


def test_a_job_that_runs_cannot_be_resumed(frazil: Frazil) -> None:
    frazil.here("ingest", parquet(frazil.home / "a.parquet", 5), "db.t", "--root", frazil.root)
    with JobStore(frazil.state / "jobs").open(frazil.job()):
        ran = frazil.here("ingest", "--resume", frazil.job(), "--json")
    assert (ran.code, "being run by another process" in ran.document["message"]) == (2, True)
