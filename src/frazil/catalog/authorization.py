"""Which privilege each operation needs, and on what: one table.

`operation` is the operationId of the OpenAPI document. A privilege is asked for on a name, before anything of that name is
looked up, so that whoever lacks it cannot tell a thing that is there from one that is not.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from frazil.catalog.access import PRINCIPAL
from frazil.catalog.caller import Caller, Touch
from frazil.catalog.errors import Forbidden
from frazil.catalog.naming import Namespace
from frazil.catalog.privileges import CATALOG, Place, Privilege


class On(Enum):
    """What the privilege is needed on."""

    NAMESPACE = "the namespace, or the catalog where there is none"
    PARENT = "the namespace above, or the catalog"
    OBJECT = "the table or view, whether it is there or not"


NEEDED: Final[dict[str, tuple[Privilege, On]]] = {
    "listNamespaces": (Privilege.SEE, On.NAMESPACE),
    "createNamespace": (Privilege.CREATE, On.PARENT),
    "loadNamespaceMetadata": (Privilege.SEE, On.NAMESPACE),
    "namespaceExists": (Privilege.SEE, On.NAMESPACE),
    "dropNamespace": (Privilege.DROP, On.NAMESPACE),
    "updateProperties": (Privilege.WRITE, On.NAMESPACE),
    "listTables": (Privilege.SEE, On.NAMESPACE),
    "createTable": (Privilege.CREATE, On.OBJECT),
    "registerTable": (Privilege.LOCATE, On.OBJECT),
    "loadTable": (Privilege.READ, On.OBJECT),
    "tableExists": (Privilege.SEE, On.OBJECT),
    "updateTable": (Privilege.WRITE, On.OBJECT),
    "dropTable": (Privilege.DROP, On.OBJECT),
    "unregisterTable": (Privilege.DROP, On.OBJECT),
    "loadCredentials": (Privilege.READ, On.OBJECT),
    "signRequest": (Privilege.READ, On.OBJECT),
    "renameTable": (Privilege.DROP, On.OBJECT),
    "reportMetrics": (Privilege.READ, On.OBJECT),
    "listMetricsReports": (Privilege.READ, On.OBJECT),
    "commitTransaction": (Privilege.WRITE, On.OBJECT),
    "planTableScan": (Privilege.READ, On.OBJECT),
    "fetchPlanningResult": (Privilege.READ, On.OBJECT),
    "cancelPlanning": (Privilege.READ, On.OBJECT),
    "fetchScanTasks": (Privilege.READ, On.OBJECT),
    "listViews": (Privilege.SEE, On.NAMESPACE),
    "createView": (Privilege.CREATE, On.OBJECT),
    "registerView": (Privilege.LOCATE, On.OBJECT),
    "loadView": (Privilege.READ, On.OBJECT),
    "viewExists": (Privilege.SEE, On.OBJECT),
    "replaceView": (Privilege.WRITE, On.OBJECT),
    "dropView": (Privilege.DROP, On.OBJECT),
    "renameView": (Privilege.DROP, On.OBJECT),
    "setLocation": (Privilege.LOCATE, On.OBJECT),
}
"""`setLocation` is no endpoint: it is asked beside the others when a request chooses where files shall lie."""

OPEN_TO_ALL: Final = frozenset({"getConfig", "getToken"})


class Grants:
    """The `Authorizer` that asks the caller's own privileges, and notes what it was asked."""

    def check(self, principal: Any, operation: str, namespace: Namespace | None, name: str | None) -> None:
        """Return if allowed. Raises `Forbidden`, in the same words whether the thing exists or not."""
        caller = _caller(principal)
        if operation in OPEN_TO_ALL:
            return
        privilege, on = NEEDED[operation]
        caller.touched.append(Touch(operation, Place(namespace or (), name)))
        place = _place(on, namespace or (), name)
        if not caller.privileges.allow(privilege, place):
            raise Forbidden(f"{caller!r} may not do this: {operation} needs the privilege {privilege} on the {place}")

    def may_see(self, principal: Any, namespace: Namespace, name: str | None = None) -> bool:
        """Whether a list for this caller holds this namespace, table or view."""
        return _caller(principal).privileges.allow(Privilege.SEE, Place(namespace, name))

    def may_write(self, principal: Any, namespace: Namespace, name: str) -> bool:
        """Whether the caller may write files of this table."""
        return _caller(principal).privileges.allow(Privilege.WRITE, Place(namespace, name))


def _place(on: On, namespace: Namespace, name: str | None) -> Place:
    match on:
        case On.NAMESPACE:
            return Place(namespace) if namespace else CATALOG
        case On.PARENT:
            return Place(namespace[:-1])
        case On.OBJECT:
            return Place(namespace, name)


def _caller(principal: Any) -> Caller:
    if not isinstance(principal, Caller):
        raise Forbidden(f"Nobody has been authenticated for this request: {PRINCIPAL} is not in its scope")
    return principal
