"""The options of `frazil catalog` about who may come in, what a request may cost and how clients reach the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from frazil.catalog.guard_settings import GuardSettings, kind_of, variable


def guard_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """One option for each field of `GuardSettings`. Those not given are None, so that the environment counts."""
    for setting in reversed(fields(GuardSettings)):
        kind, told = kind_of(setting), setting.metadata["told"]
        default = "" if setting.default is None else f"  [default: {_shown(setting.default)}]"
        flag = "--" + setting.name.replace("_", "-")
        command = click.option(
            f"{flag}/--no-{flag[2:]}" if kind is bool else flag,
            setting.name,
            type=kind,
            default=None,
            metavar=None if kind is bool else {str: "TEXT", int: "NUMBER", float: "NUMBER"}[kind],
            help=f"{told}  [{variable(setting.name)}]{default}",
        )(command)
    return command


def guard_fields() -> set[str]:
    """The names under which the options arrive."""
    return {setting.name for setting in fields(GuardSettings)}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
