"""`frazil sweep`."""

from __future__ import annotations

import os
import re
from datetime import timedelta

import click

from frazil.cli.report_errors import command_output
from frazil.errors import BadInput
from frazil.settings import CatalogSettings, state_folder

_SPAN = re.compile(r"(\d+)\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@click.command("sweep")
@click.argument("table")
@click.option("--root", metavar="DIR", help="Folder of an embedded catalog and warehouse.  [default: ./lake]")
@click.option("--catalog", metavar="NAME", help="A catalog configured for PyIceberg, instead of an embedded one.")
@click.option("--commit", metavar="UUID", help="Only what this commit left.  [default: every expired reservation]")
@click.option(
    "--grace", metavar="SPAN", default="1h", show_default=True, help="How long after expiry: 90s, 30m, 1h, 2d."
)
@click.option("--force", is_flag=True, help="With --commit: its job is dead, although its reservation is still held.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, alone on stdout.")
def command(
    table: str,
    root: str | None,
    catalog: str | None,
    commit: str | None,
    grace: str,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove the files that dead jobs left in TABLE: never one that a snapshot references, nor one still reserved."""
    with command_output(as_json, state_folder() / "logs" / f"sweep-{os.getpid()}.log") as output:
        if force and commit is None:
            raise BadInput("--force needs --commit: it ends a reservation that a running job may still hold")
        settings, span = CatalogSettings.choose(root, catalog), _span(grace)
        # Imported here because `frazil --help` must not pay for PyIceberg.
        from frazil.cli.progress import human_bytes
        from frazil.snapshot.cleanup import sweep
        from frazil.snapshot.warehouse import find_table, open_catalog, table_identifier

        found = find_table(open_catalog(settings), table_identifier(table))
        if found is None:
            raise BadInput(f"there is no table {table} in {settings}; check its name, or name its --root or --catalog")
        swept = sweep(found, commit, grace=span, force=force, dry_run=dry_run)
        if as_json:
            output.document(
                {
                    "files": [file.path for file in swept.files],
                    "bytes": swept.bytes,
                    "commits": list(swept.commit_uuids),
                    "held": list(swept.held),
                    "dry_run": dry_run,
                }
            )
            return
        verb = "would be removed" if dry_run else "removed"
        for file in swept.files:
            output.text(file.path)
        output.text(
            f"{table}: {len(swept.files):,} files, {human_bytes(swept.bytes)} {verb}, of {len(swept.commit_uuids)} dead "
            f"commits; {len(swept.held)} reservations are still held"
        )


def _span(text: str) -> timedelta:
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"--grace {text!r} is not a span of time; write 90s, 30m, 1h or 2d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
