"""`frazil`: the verbs, each loaded when it is called, so that `--help` answers at once."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version

import click

# name -> (module, what `frazil --help` says of it)
_VERBS = {
    "catalog": ("frazil.cli.catalog", "Serve an Iceberg REST catalog."),
    "ingest": ("frazil.cli.ingest", "Load files into an Iceberg table: sharded, resumable, one atomic commit."),
    "jobs": ("frazil.cli.jobs", "List ingest jobs, or show one."),
    "register": ("frazil.cli.register", "Add Parquet files to an Iceberg table as they are."),
    "sweep": ("frazil.cli.sweep", "Remove files that dead jobs left behind."),
}


class _Verbs(click.Group):
    """Commands by name, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in _VERBS:
            return None
        command: click.Command = import_module(_VERBS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, _VERBS[name][1]) for name in sorted(_VERBS)])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("frazil"), prog_name="frazil")
def frazil() -> None:
    """Many writers, one snapshot: load data into Apache Iceberg tables, all of it at one instant or none of it."""


def main() -> None:
    """The console script."""
    sys.exit(frazil(standalone_mode=True))
