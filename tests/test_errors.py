"""One tree, and each error says whether anything landed, whether trying again helps, and how the command ends."""

from __future__ import annotations

import inspect
import re

import pytest

from frazil import errors
from frazil.errors import FrazilError

ALL = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, FrazilError)]


@pytest.mark.parametrize("error", ALL)
def test_every_error_stands_in_the_tree_drawn_at_the_top(error: type[FrazilError]) -> None:
    tree = errors.__doc__ or ""
    depth = {name: len(indent) for indent, name in re.findall(r"^([ │├└─]+)(\w+)", tree, re.MULTILINE)}
    assert error.__name__ in depth
    if error is not FrazilError:
        assert depth[error.__mro__[1].__name__] < depth[error.__name__]


@pytest.mark.parametrize("error", ALL)
def test_every_error_has_a_contract(error: type[FrazilError]) -> None:
    assert error.__doc__ and error.exit_code in (1, 2, 3, 4) and error.landed in (False, None)


@pytest.mark.parametrize(
    ("error", "landed", "retryable", "exit_code"),
    [
        (errors.BadInput, False, False, 2),
        (errors.SourceNotFound, False, False, 2),
        (errors.SourceUnreadable, False, False, 1),
        (errors.SchemaMismatch, False, False, 2),
        (errors.NotLanded, False, False, 1),
        (errors.CommitConflict, False, True, 3),
        (errors.CommitRefused, False, False, 1),
        (errors.Interrupted, False, True, 1),
        (errors.AlreadyConsumed, None, False, 1),
        (errors.ReservationExpired, False, False, 1),
        (errors.OutcomeUnknown, None, True, 4),
    ],
)
def test_what_an_error_means(error: type[FrazilError], landed: bool | None, retryable: bool, exit_code: int) -> None:
    assert (error.landed, error.retryable, error.exit_code) == (landed, retryable, exit_code)


def test_an_unknown_outcome_is_no_proof_that_nothing_landed() -> None:
    assert not issubclass(errors.OutcomeUnknown, errors.NotLanded)
    assert [error for error in ALL if error.landed is None] == [errors.AlreadyConsumed, errors.OutcomeUnknown]
