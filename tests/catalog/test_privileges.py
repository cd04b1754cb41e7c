"""What a grant allows, and where."""

from __future__ import annotations

import pytest

from frazil.catalog.privileges import CATALOG, Place, Privilege, Privileges

DB, INNER, TABLE = Place(("db",)), Place(("db", "inner")), Place(("db", "inner"), "t")


@pytest.mark.parametrize("place", [CATALOG, DB, INNER, TABLE], ids=str)
def test_a_grant_holds_on_its_place_and_everything_below(place: Place) -> None:
    held = Privileges([(Privilege.READ, place)])
    allowed = [each for each in (CATALOG, DB, INNER, TABLE) if held.allow(Privilege.READ, each)]
    assert allowed == [CATALOG, DB, INNER, TABLE][[CATALOG, DB, INNER, TABLE].index(place) :]


@pytest.mark.parametrize(
    "other", [Place(("db", "inner"), "u"), Place(("db",), "t"), Place(("d",)), Place(("db2",))], ids=str
)
def test_a_grant_on_a_table_says_nothing_about_what_lies_beside_it(other: Place) -> None:
    assert not Privileges([(Privilege.MANAGE, TABLE)]).allow(Privilege.SEE, other)


def test_whoever_holds_something_sees_the_way_down_to_it_and_may_do_nothing_else_there() -> None:
    held = Privileges([(Privilege.WRITE, TABLE)])
    assert all(held.allow(Privilege.SEE, place) for place in (CATALOG, DB, INNER, TABLE))
    assert not any(held.allow(Privilege.READ, place) for place in (CATALOG, DB, INNER))


@pytest.mark.parametrize(
    ("held", "implied"),
    [
        (Privilege.SEE, {"see"}),
        (Privilege.READ, {"read", "see"}),
        (Privilege.WRITE, {"write", "read", "see"}),
        (Privilege.CREATE, {"create", "see"}),
        (Privilege.DROP, {"drop", "see"}),
        (Privilege.LOCATE, {"locate", "see"}),
        (Privilege.MANAGE, {"see", "read", "write", "create", "drop", "locate", "manage"}),
    ],
)
def test_each_privilege_brings_these_and_no_others(held: Privilege, implied: set[str]) -> None:
    assert {str(each) for each in Privilege if Privileges([(held, DB)]).allow(each, DB)} == implied
