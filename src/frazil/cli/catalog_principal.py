"""`frazil catalog principal`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from frazil.cli.catalog_access import CatalogChoice, as_json, show, telling

if TYPE_CHECKING:
    from frazil.catalog.principals import Credential


@click.group("principal")
def principal() -> None:
    """Who may get a token."""


@principal.command("add")
@click.argument("name")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role that it holds; may come several times.")
@click.option("--subject", metavar="SUB", help="Its tokens come from the external issuer, under this subject.")
@as_json
@click.pass_obj
@telling
def add(chosen: CatalogChoice, name: str, roles: tuple[str, ...], subject: str | None, as_json: bool) -> None:
    """Make the principal NAME and show its secret, this once."""
    with chosen.access() as (principals, _):
        if subject is not None:
            principals.add_external(name, subject, roles)
            show(as_json, {"principal": name, "subject": subject}, [f"{name} is whom the issuer calls {subject}"])
        else:
            _show_credential(as_json, name, principals.add(name, roles))


@principal.command("list")
@as_json
@click.pass_obj
@telling
def list_all(chosen: CatalogChoice, as_json: bool) -> None:
    """Every principal, with the roles that it holds."""
    with chosen.access() as (principals, _):
        found = principals.all()
    rows = [
        {
            "principal": each.name,
            "client_id": each.client_id,
            "subject": each.subject,
            "roles": list(each.roles),
            "created": datetime.fromtimestamp(each.created_at_ms / 1000, UTC).isoformat(timespec="seconds"),
        }
        for each in found
    ]
    known_by = [f"client id {each.client_id}" if each.client_id else f"subject {each.subject}" for each in found]
    lines = [
        f"{each.name}  {known}  roles: {', '.join(each.roles) or 'none'}"
        for each, known in zip(found, known_by, strict=True)
    ]
    show(as_json, {"principals": rows}, lines or ["there is no principal yet"])


@principal.command("rotate")
@click.argument("name")
@as_json
@click.pass_obj
@telling
def rotate(chosen: CatalogChoice, name: str, as_json: bool) -> None:
    """Give NAME a new secret and show it, this once. The old one and all its tokens are void."""
    with chosen.access() as (principals, _):
        _show_credential(as_json, name, principals.rotate(name))


@principal.command("remove")
@click.argument("name")
@click.pass_obj
@telling
def remove(chosen: CatalogChoice, name: str) -> None:
    """Remove NAME; its tokens are void."""
    with chosen.access() as (principals, _):
        principals.remove(name)
    click.echo(f"{name} is removed")


def _show_credential(as_json: bool, name: str, made: Credential) -> None:
    document = {"principal": name, "client_id": made.client_id, "client_secret": made.secret}
    lines = [f"client id      {made.client_id}", f"client secret  {made.secret}", "The secret is not shown again."]
    show(as_json, document, lines)
