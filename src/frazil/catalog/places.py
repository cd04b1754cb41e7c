"""Whether the caller may choose where files lie. What the catalog chose itself, anybody who may create may have.

Credentials are given for a table's folders, so whoever could name the folder of somebody else's table would read it.
"""

from __future__ import annotations

from collections.abc import Mapping

from frazil.catalog.call import Call
from frazil.catalog.document import Document
from frazil.catalog.locations import checked_location, folders_of, lies_in
from frazil.catalog.naming import Namespace
from frazil.catalog.pointers import Identifier

SET_LOCATION = "setLocation"


def authorize_places(call: Call, identifier: Identifier, metadata: Document, before: Document) -> None:
    """Raise `Forbidden` if `metadata` has folders outside those of `before`, and the caller may not choose any."""
    known = folders_of(before) if "location" in before else ()
    if any(place not in known and not lies_in(place, known) for place in folders_of(metadata)):
        call.authorize(identifier.namespace, identifier.name, SET_LOCATION)


def authorize_base(call: Call, namespace: Namespace, properties: Mapping[str, str]) -> None:
    """As above, for the property that says where a namespace's tables are put."""
    if "location" in properties:
        call.authorize(namespace, None, SET_LOCATION)
        checked_location(properties["location"], call.backend.settings.roots)
