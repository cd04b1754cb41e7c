"""`frazil jobs`."""

from __future__ import annotations

import os
from typing import Any

import click

from frazil.cli.report_errors import command_output
from frazil.settings import state_folder


@click.command("jobs")
@click.argument("job", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, alone on stdout.")
def command(job: str | None, as_json: bool) -> None:
    """List ingest jobs with their states, newest first, or show one JOB."""
    with command_output(as_json, state_folder() / "logs" / f"jobs-{os.getpid()}.log") as output:
        # Imported here because `frazil --help` must not pay for PyIceberg.
        from frazil.jobs.log import JobStore

        store = JobStore(state_folder() / "jobs")
        names = [job] if job else store.names()[::-1]
        rows = [describe(store, name) for name in names]
        if as_json:
            output.document(rows[0] if job else {"jobs": rows})
        elif not rows:
            output.text(f"no job is kept in {store.folder} yet")
        else:
            output.text("\n".join(_line(row) for row in rows))


def describe(store: Any, name: str) -> dict[str, Any]:
    """A job in figures."""
    job = store.read(name)
    planned = job.plan is not None
    return {
        "job": job.id,
        "state": str(job.state),
        "table": job.plan.snapshot.name if planned else None,
        "shards": len(job.plan.shards) if planned else 0,
        "accepted": len(job.accepted),
        "rows": sum(report.rows for report in job.accepted.values()),
        "snapshot_id": job.plan.snapshot.snapshot_id if planned else None,
        "commit_uuid": job.plan.snapshot.commit_uuid if planned else None,
        "note": job.note,
    }


def _line(row: dict[str, Any]) -> str:
    note = f"  {row['note']}" if row["note"] else ""
    done = f"{row['accepted']}/{row['shards']} shards"
    return f"{row['job']}  {row['state']:<10}  {row['table'] or '-'}  {done}, {row['rows']:,} rows{note}"
