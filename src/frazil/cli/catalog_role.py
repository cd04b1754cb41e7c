"""`frazil catalog role`."""

from __future__ import annotations

import click

from frazil.cli.catalog_access import CatalogChoice, as_json, show, telling


@click.group("role")
def role() -> None:
    """Bundles of grants, held by principals."""


@role.command("add")
@click.argument("name")
@click.pass_obj
@telling
def add(chosen: CatalogChoice, name: str) -> None:
    """Make the role NAME, which is granted nothing yet."""
    with chosen.access() as (_, roles):
        roles.add(name)
    click.echo(f"the role {name} is made; grant it something with: frazil catalog grant")


@role.command("list")
@as_json
@click.pass_obj
@telling
def list_all(chosen: CatalogChoice, as_json: bool) -> None:
    """Every role: who holds it, and what it is granted in this catalog."""
    with chosen.access() as (_, roles):
        held, grants = roles.all(), roles.grants()
    rows, lines = [], []
    for name, principals in held.items():
        granted = [f"{each.privilege} on the {each.place}" for each in grants if each.role == name]
        rows.append({"role": name, "principals": list(principals), "grants": granted})
        lines.append(f"{name}  held by: {', '.join(principals) or 'nobody'}")
        lines += [f"  {each}" for each in granted]
    show(as_json, {"roles": rows}, lines or ["there is no role yet"])


@role.command("assign")
@click.argument("name")
@click.argument("principal")
@click.pass_obj
@telling
def assign(chosen: CatalogChoice, name: str, principal: str) -> None:
    """Let PRINCIPAL hold the role NAME."""
    with chosen.access() as (_, roles):
        roles.assign(name, principal)
    click.echo(f"{principal} holds the role {name}")


@role.command("withdraw")
@click.argument("name")
@click.argument("principal")
@click.pass_obj
@telling
def withdraw(chosen: CatalogChoice, name: str, principal: str) -> None:
    """Take the role NAME from PRINCIPAL."""
    with chosen.access() as (_, roles):
        roles.withdraw(name, principal)
    click.echo(f"{principal} does not hold the role {name} any more")


@role.command("remove")
@click.argument("name")
@click.pass_obj
@telling
def remove(chosen: CatalogChoice, name: str) -> None:
    """Remove the role NAME with all its grants."""
    with chosen.access() as (_, roles):
        roles.remove(name)
    click.echo(f"the role {name} is removed")
