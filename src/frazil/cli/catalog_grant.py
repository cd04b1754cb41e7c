"""`frazil catalog grant` and `frazil catalog revoke`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from frazil.cli.catalog_access import CatalogChoice, telling
from frazil.errors import BadInput

if TYPE_CHECKING:
    from frazil.catalog.roles import Grant

PRIVILEGES = ("see", "read", "write", "create", "drop", "locate", "manage")


def _about_a_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments of both commands."""
    for option in (
        click.option("--table", "table", metavar="NS.NAME", help="On a table or view."),
        click.option("--namespace", "namespace", metavar="NS", help="On a namespace; dots between its levels."),
        click.option("--catalog", "whole", is_flag=True, help="On the whole catalog."),
        click.argument("role"),
        click.argument("privilege", type=click.Choice(PRIVILEGES)),
    ):
        command = option(command)
    return command


@click.command("grant")
@_about_a_place
@click.pass_obj
@telling
def grant(chosen: CatalogChoice, /, **said: Any) -> None:
    """Grant PRIVILEGE to ROLE on a place and everything below it. Write %2E for a dot within a name."""
    with chosen.access() as (_, roles):
        wanted = _grant_of(**said)
        roles.grant(wanted)
    click.echo(f"{wanted.role} may {wanted.privilege} on the {wanted.place}")


@click.command("revoke")
@_about_a_place
@click.pass_obj
@telling
def revoke(chosen: CatalogChoice, /, **said: Any) -> None:
    """Take back what was granted on exactly this place."""
    with chosen.access() as (_, roles):
        wanted = _grant_of(**said)
        roles.revoke(wanted)
    click.echo(f"{wanted.role} is no longer granted {wanted.privilege} on the {wanted.place}")


def _grant_of(privilege: str, role: str, whole: bool, namespace: str | None, table: str | None) -> Grant:
    # Imported here because `frazil --help` must not pay for SQLAlchemy.
    from frazil.catalog.naming import checked_namespace, namespace_from_stored
    from frazil.catalog.privileges import CATALOG, Place, Privilege
    from frazil.catalog.roles import Grant

    if [whole, namespace is not None, table is not None].count(True) != 1:
        raise BadInput("say on what: one of --catalog, --namespace NS or --table NS.NAME")
    place = CATALOG
    if namespace is not None:
        place = Place(checked_namespace(namespace_from_stored(namespace)))
    elif table is not None:
        levels = checked_namespace(namespace_from_stored(table))
        if len(levels) < 2:
            raise BadInput(f"--table {table}: write the namespace before the name, as db.trips")
        place = Place(levels[:-1], levels[-1])
    return Grant(role, Privilege(privilege), place)
