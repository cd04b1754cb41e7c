"""`frazil catalog`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from frazil.catalog.guard_settings import GuardSettings
from frazil.cli.catalog_access import CatalogChoice, telling
from frazil.cli.catalog_grant import grant, revoke
from frazil.cli.catalog_guard import guard_fields, guard_options
from frazil.cli.catalog_principal import principal
from frazil.cli.catalog_role import role
from frazil.errors import BadInput, StorageFailed
from frazil.settings import DEFAULT_ROOT

if TYPE_CHECKING:
    from frazil.catalog.settings import ServerSettings


@click.group("catalog", invoke_without_command=True)
@click.option("--root", metavar="DIR", help="Folder of the database and the warehouse.  [default: ./lake]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8181, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--db", metavar="URL", help="sqlite:///… or postgresql://…  [default: DIR/catalog.db]")
@click.option("--warehouse", metavar="URL", help="file:///… or s3://…  [default: DIR/warehouse]")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 256), help="Processes.")
@click.option("--name", default="frazil", show_default=True, help="The catalog's name in the database, and its prefix.")
@click.option("--storage", multiple=True, metavar="KEY=VALUE", help="How the server reaches its storage: s3.endpoint=…")
@click.option("--default", "defaults", multiple=True, metavar="KEY=VALUE", help="A setting for every client.")
@click.option("--allow-location", multiple=True, metavar="URL", help="Where tables may lie beside the warehouse.")
@click.option("--staging", type=click.Choice(["internal", "table"]), default="internal", show_default=True,
              help="Where the metadata of a staged create lies until it is finalised.")  # fmt: skip
@click.option(
    "--staged-for", default=86400.0, metavar="SECONDS", help="How long a staged create is kept.  [default: a day]"
)
@click.option("--janitor-every", default=60.0, show_default=True, metavar="SECONDS", help="How often to clean up.")
@click.option("--namespace-separator", default="%1F", show_default=True, help="Announced to clients, percent-encoded.")
@click.option("--insecure-without-authentication", "insecure", is_flag=True,
              help="Listen beyond this machine although anybody may do anything.")  # fmt: skip
@guard_options
@click.pass_context
def command(context: click.Context, /, host: str, port: int, workers: int, insecure: bool, **options: Any) -> None:
    """Serve an Iceberg REST catalog: one command on SQLite, as many processes as you like on PostgreSQL.

    The commands below keep who may do what, in the database that --root or --db names.
    """
    guarding = {name: options.pop(name) for name in guard_fields()}
    context.obj = CatalogChoice(lambda: _database(**options))
    if context.invoked_subcommand is None:
        serving(host, port, workers, insecure, options, guarding)


for each in (principal, role, grant, revoke):
    command.add_command(each)


@telling
def serving(
    host: str, port: int, workers: int, insecure: bool, options: dict[str, Any], guarding: dict[str, Any]
) -> None:
    """Serve until a signal, and end with the exit code."""
    raise SystemExit(_serve(host, port, workers, insecure, options, GuardSettings.parse(os.environ, guarding)))


def _database(**options: Any) -> tuple[str, str]:
    """The URL of the catalog's database, and the catalog's name in it."""
    settings = _settings(**options)
    return settings.database, settings.name


def _serve(host: str, port: int, workers: int, insecure: bool, options: dict[str, Any], guarding: GuardSettings) -> int:
    # Imported here because `frazil --help` must not pay for it.
    from frazil.catalog.backend import Backend
    from frazil.catalog.guard import guarded_app
    from frazil.catalog.serve import is_loopback, listen, serve

    settings = _settings(**options)
    if not is_loopback(host) and not insecure and not guarding.authentication:
        raise BadInput(
            f"--host {host} can be reached from other machines and there is no authentication; turn it on with "
            "--authentication, listen on 127.0.0.1, or say --insecure-without-authentication if anybody who can reach it "
            "may read and drop every table"
        )
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    Backend.open(settings).close()  # what is wrong with the database or the folder is told before anybody listens
    with listen(host, port) as listener:
        address = f"[{host}]" if ":" in host else host
        if not guarding.authentication:
            click.echo(
                "frazil: WARNING: no authentication: whoever reaches this port may read and drop every table; "
                "--authentication lets in only who brings a token",
                err=True,
            )
        click.echo(
            f"frazil: catalog {settings.name} on http://{address}:{listener.getsockname()[1]}, {settings.warehouse}"
        )
        return serve(lambda: guarded_app(Backend.open(settings), guarding), listener, workers)


def _settings(
    root: str | None,
    db: str | None,
    warehouse: str | None,
    name: str,
    storage: tuple[str, ...],
    defaults: tuple[str, ...],
    allow_location: tuple[str, ...],
    staging: str,
    staged_for: float,
    janitor_every: float,
    namespace_separator: str,
) -> ServerSettings:
    from frazil.catalog.settings import ServerSettings, stage_create_enabled

    folder = Path(root or os.environ.get("FRAZIL_ROOT") or DEFAULT_ROOT).expanduser().resolve()
    if unfit := sorted(set(str(folder)) & set("?#%")):
        raise BadInput(f"the folder {folder} has {' and '.join(unfit)} in its name; choose another --root")
    if db is None or warehouse is None:
        try:
            (folder / "warehouse").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageFailed(
                f"the lake {folder} cannot be written: {error.strerror}; choose another --root"
            ) from error
    return ServerSettings(
        database=db or f"sqlite:///{folder / 'catalog.db'}",
        warehouse=(warehouse or f"file://{folder / 'warehouse'}").rstrip("/"),
        name=name,
        allowed_locations=allow_location,
        storage=_pairs("--storage", storage),
        defaults=_pairs("--default", defaults),
        stage_create=stage_create_enabled(os.environ),
        staging=staging,
        staged_for=staged_for,
        janitor_every=janitor_every,
        namespace_separator=namespace_separator,
    )


def _pairs(option: str, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for key, sign, _ in pairs:
        if not (key and sign):
            raise BadInput(f"{option} {key}: write KEY=VALUE")
    return {key: value for key, _, value in pairs}
