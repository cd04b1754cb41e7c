"""Roles, who holds them, and what they are granted."""

from __future__ import annotations

import pytest

from frazil.catalog.privileges import CATALOG, Place, Privilege
from frazil.catalog.roles import Grant, Roles
from frazil.errors import BadInput
from guards import Guards

ON_TABLE = Grant("readers", Privilege.READ, Place(("a.b", "c"), "t.x"))


def test_a_grant_is_kept_as_it_was_made_and_once(guards: Guards) -> None:
    guards.roles.add("readers")
    for _ in range(2):
        guards.roles.grant(ON_TABLE)
    guards.roles.grant(Grant("readers", Privilege.SEE, CATALOG))
    assert guards.roles.grants() == [
        Grant("readers", Privilege.READ, ON_TABLE.place),
        Grant("readers", Privilege.SEE, CATALOG),
    ]


def test_what_is_revoked_is_gone_and_nothing_else(guards: Guards) -> None:
    guards.roles.add("readers")
    kept = Grant("readers", Privilege.READ, Place(("a.b", "c")))
    guards.roles.grant(ON_TABLE)
    guards.roles.grant(kept)
    guards.roles.revoke(ON_TABLE)
    assert guards.roles.grants() == [kept]
    with pytest.raises(BadInput, match=r"not granted read on the table or view a\.b\.c\.t\.x"):
        guards.roles.revoke(ON_TABLE)


def test_a_grant_belongs_to_one_catalog_of_the_database(guards: Guards) -> None:
    guards.roles.add("readers")
    guards.roles.grant(ON_TABLE)
    assert Roles(guards.database, "another").grants() == []


def test_a_role_takes_its_grants_and_its_holders_along(guards: Guards) -> None:
    guards.roles.add("readers")
    guards.principals.add("ann", ("readers",))
    guards.roles.grant(ON_TABLE)
    guards.roles.remove("readers")
    assert (guards.roles.all(), guards.roles.grants(), guards.principals.all()[0].roles) == ({}, [], ())


def test_a_role_is_given_and_taken(guards: Guards) -> None:
    guards.roles.add("readers")
    guards.principals.add("ann")
    for _ in range(2):
        guards.roles.assign("readers", "ann")
    assert guards.roles.all() == {"readers": ("ann",)}
    guards.roles.withdraw("readers", "ann")
    assert guards.roles.all() == {"readers": ()}
    with pytest.raises(BadInput, match="ann does not hold the role readers"):
        guards.roles.withdraw("readers", "ann")


def test_a_grant_to_a_role_that_is_not_there_says_how_to_make_it(guards: Guards) -> None:
    with pytest.raises(BadInput, match="there is no role readers; make it with `frazil catalog role add readers`"):
        guards.roles.grant(ON_TABLE)
    with pytest.raises(BadInput, match="there is no principal ghost"):
        guards.roles.assign("readers", "ghost")
