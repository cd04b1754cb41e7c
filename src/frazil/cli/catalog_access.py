"""What the commands about access share: the catalog's database, and the edge where an error becomes a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from frazil.errors import FrazilError

if TYPE_CHECKING:
    from frazil.catalog.principals import Principals
    from frazil.catalog.roles import Roles

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class CatalogChoice:
    """Which catalog the group's options name: the URL of its database, and its name in it."""

    find: Callable[[], tuple[str, str]]

    @contextmanager
    def access(self) -> Iterator[tuple[Principals, Roles]]:
        """The principals and roles of that catalog; its database is made when it is not there."""
        # Imported here because `frazil --help` must not pay for SQLAlchemy.
        from frazil.catalog.backend import now_ms
        from frazil.catalog.database import Database
        from frazil.catalog.principals import Principals
        from frazil.catalog.roles import Roles

        url, name = self.find()
        database = Database(url, connections=2)
        try:
            yield Principals(database, now_ms), Roles(database, name)
        finally:
            database.close()


def telling(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """An error of ours becomes one sentence and an exit code."""

    @wraps(work)
    def told(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return work(*args, **kwargs)
        except FrazilError as error:
            click.echo(f"frazil: {error}", err=True)
            raise SystemExit(error.exit_code) from None

    return told


def show(as_json: bool, document: Any, lines: list[str]) -> None:
    """The result: for scripts, or for people."""
    click.echo(json.dumps(document) if as_json else "\n".join(lines))


as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, alone on stdout.")
