"""The table of privileges against the OpenAPI document and the server's own endpoints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from frazil.catalog.authorization import NEEDED, OPEN_TO_ALL, Grants
from frazil.catalog.caller import Caller, Touch
from frazil.catalog.endpoints import ENDPOINTS
from frazil.catalog.errors import Forbidden
from frazil.catalog.identities import Identity
from frazil.catalog.privileges import CATALOG, Place, Privilege, Privileges

WITHOUT_CALLER = {"health", "ready"}
DOCUMENTS = [each / "shared" / "spec" / "rest-catalog-open-api.yaml" for each in Path(__file__).parents]
DOCUMENT = next((each for each in DOCUMENTS if each.exists()), None)


def caller(*grants: tuple[Privilege, Place]) -> Caller:
    return Caller(Identity("ann", Privileges(grants)))


@pytest.mark.parametrize("operation", sorted({each.operation for each in ENDPOINTS} - WITHOUT_CALLER - OPEN_TO_ALL))
def test_every_endpoint_of_the_server_has_its_row(operation: str) -> None:
    assert operation in NEEDED


@pytest.mark.parametrize("operation", sorted(NEEDED))
def test_whoever_holds_nothing_may_do_nothing(operation: str) -> None:
    with pytest.raises(Forbidden, match="ann may not do this"):
        Grants().check(caller(), operation, ("db",), "t")


@pytest.mark.parametrize("operation", sorted(NEEDED))
def test_the_privilege_on_the_catalog_is_enough_and_every_lesser_one_is_not(operation: str) -> None:
    needed = NEEDED[operation][0]
    for privilege in Privilege:
        held = caller((privilege, CATALOG))
        if held.privileges.allow(needed, CATALOG):
            Grants().check(held, operation, ("db",), "t")
        else:
            with pytest.raises(Forbidden):
                Grants().check(held, operation, ("db",), "t")


@pytest.mark.parametrize("operation", sorted(OPEN_TO_ALL))
def test_the_configuration_is_for_everybody_who_is_known(operation: str) -> None:
    Grants().check(caller(), operation, None, None)


def test_a_namespace_is_made_with_a_privilege_on_the_one_above() -> None:
    Grants().check(caller((Privilege.CREATE, Place(("db",)))), "createNamespace", ("db", "new"), None)
    with pytest.raises(Forbidden, match="on the catalog"):
        Grants().check(caller((Privilege.CREATE, Place(("db",)))), "createNamespace", ("other",), None)


def test_a_request_that_nobody_has_authenticated_is_refused() -> None:
    with pytest.raises(Forbidden, match="Nobody has been authenticated"):
        Grants().check(None, "getConfig", None, None)


def test_what_was_asked_is_noted_even_when_it_is_refused() -> None:
    asking = caller((Privilege.DROP, CATALOG))
    Grants().check(asking, "renameTable", ("db",), "t")
    with pytest.raises(Forbidden):
        Grants().check(asking, "createTable", ("db",), "u")
    assert asking.touched == [Touch("renameTable", Place(("db",), "t")), Touch("createTable", Place(("db",), "u"))]


def test_two_requests_of_one_caller_look_alike_and_two_callers_do_not() -> None:
    assert repr(caller()) == repr(caller((Privilege.SEE, CATALOG))) == "ann"


@pytest.mark.skipif(DOCUMENT is None, reason="the OpenAPI document is not beside this checkout")
def test_every_operation_of_the_document_has_its_row() -> None:
    assert DOCUMENT is not None
    operations = set(re.findall(r"operationId: (\w+)", DOCUMENT.read_text()))
    assert operations - NEEDED.keys() - OPEN_TO_ALL == {"listFunctions", "loadFunction"}
