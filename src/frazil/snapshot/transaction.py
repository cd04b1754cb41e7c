"""One commit over several tables, where the catalog offers it: all of them change at one instant, or none does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import Endpoint, RestCatalog
from pyiceberg.table import CommitTableRequest, TableIdentifier

from frazil.snapshot.commit import Plan
from frazil.snapshot.outcome import NotLanded, Unknown
from frazil.snapshot.table import Accepted, CatalogTable

_PATH = "transactions/commit"
_ENDPOINT = Endpoint.from_string(f"POST /v1/{{prefix}}/{_PATH}")
_CONFLICT = 409
# Answers that a catalog gives only after it has looked at the request and turned it down.
_REFUSALS = (400, 401, 403, 404)


def commits_together(catalog: Catalog) -> bool:
    """Whether the catalog says that it changes several tables at one instant."""
    return isinstance(catalog, RestCatalog) and _ENDPOINT in catalog._supported_endpoints


def commit_together(changes: Sequence[tuple[CatalogTable, Plan]]) -> Accepted | NotLanded | Unknown:
    """Ask the catalog for one atomic update of all these tables, once. The answer is that of each of them."""
    catalog: Any = changes[0][0].table.catalog
    body = {"table-changes": [_change(target, plan) for target, plan in changes]}
    try:
        response = catalog._session.post(
            catalog.url(_PATH), data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
        )
    except Exception as error:  # noqa: BLE001  whatever went wrong, the update may have been applied: look, don't guess
        return Unknown(f"{type(error).__name__}: {error}")
    if response.ok:
        return Accepted()
    reason = f"HTTP {response.status_code}: {response.text[:300]}"
    if response.status_code == _CONFLICT:
        return NotLanded(reason, conflict=True)
    return NotLanded(reason, conflict=False) if response.status_code in _REFUSALS else Unknown(reason)


def _change(target: CatalogTable, plan: Plan) -> Any:
    name = target.table.name()
    request = CommitTableRequest(
        identifier=TableIdentifier(namespace=name[:-1], name=name[-1]),
        requirements=plan.requirements,
        updates=plan.updates,
    )
    return json.loads(request.model_dump_json())
