"""A client that sends what Iceberg's Java client sends, so that Java's expectations can be tested without a JVM.

It spells paths as Java does (form encoding: a space is `+`), derives the requirements of a commit from its updates by Java's
rules, stages creations, and names errors by the exception that a Java program would catch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus

from services.frazil_catalog import FrazilCatalog

Document = dict[str, Any]
Levels = tuple[str, ...]

_ids = itertools.count(3_000_000_001)


class Refused(Exception):
    """The server's error: `kind` is the exception's name in Iceberg."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"{status} {kind}: {message}")
        self.status, self.kind, self.message = status, kind, message


@dataclass(frozen=True)
class Ident:
    """A table's or a view's name."""

    namespace: Levels
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))

    @property
    def document(self) -> Document:
        return {"namespace": list(self.namespace), "name": self.name}


def spelled(levels: Levels) -> str:
    """A namespace in a path."""
    return "%1F".join(quote_plus(level) for level in levels)


@dataclass
class JavaClient:
    """One client of one server."""

    server: FrazilCatalog

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = self.server.ask(method, path, body)
        if reply.status >= 400:
            if not reply.body:
                raise Refused(reply.status, "", "")
            raise Refused(*reply.error)
        return reply.document if reply.body else None

    def exists(self, path: str) -> bool:
        try:
            self.ask("HEAD", path)
        except Refused as refused:
            assert refused.status == 404
            return False
        return True

    # Namespaces

    def create_namespace(self, *levels: str, **properties: str) -> Document:
        made: Document = self.ask("POST", "/v1/namespaces", {"namespace": list(levels), "properties": properties})
        return made

    def namespace_exists(self, *levels: str) -> bool:
        return self.exists(f"/v1/namespaces/{spelled(levels)}")

    def load_namespace(self, *levels: str) -> dict[str, str]:
        properties: dict[str, str] = self.ask("GET", f"/v1/namespaces/{spelled(levels)}")["properties"]
        return properties

    def update_namespace(self, levels: Levels, removals: Sequence[str] = (), **updates: str) -> Document:
        path = f"/v1/namespaces/{spelled(levels)}/properties"
        reply: Document = self.ask("POST", path, {"removals": list(removals), "updates": updates})
        return reply

    def drop_namespace(self, *levels: str) -> bool:
        try:
            self.ask("DELETE", f"/v1/namespaces/{spelled(levels)}")
        except Refused as refused:
            if refused.kind == "NoSuchNamespaceException":
                return False
            raise
        return True

    def list_namespaces(self, *parent: str) -> list[Levels]:
        query = f"?parent={spelled(parent)}" if parent else ""
        return [tuple(levels) for levels in self.ask("GET", f"/v1/namespaces{query}")["namespaces"]]

    # Tables

    def table_path(self, ident: Ident) -> str:
        return f"/v1/namespaces/{spelled(ident.namespace)}/tables/{quote_plus(ident.name)}"

    def create_table(self, ident: Ident, schema: Document, stage: bool = False, **request: Any) -> Table:
        named = {name.replace("_", "-"): value for name, value in request.items()}
        body = {"name": ident.name, "schema": schema, "stage-create": stage, "properties": {}, **named}
        reply = self.ask("POST", f"/v1/namespaces/{spelled(ident.namespace)}/tables", body)
        return Table(self, ident, reply["metadata"], reply.get("metadata-location"))

    def load_table(self, ident: Ident) -> Table:
        reply = self.ask("GET", self.table_path(ident))
        return Table(self, ident, reply["metadata"], reply["metadata-location"])

    def table_exists(self, ident: Ident) -> bool:
        return self.exists(self.table_path(ident))

    def drop_table(self, ident: Ident, purge: bool = False) -> bool:
        try:
            self.ask("DELETE", f"{self.table_path(ident)}?purgeRequested={str(purge).lower()}")
        except Refused as refused:
            if refused.kind == "NoSuchTableException":
                return False
            raise
        return True

    def list_tables(self, *levels: str) -> list[Ident]:
        listed = self.ask("GET", f"/v1/namespaces/{spelled(levels)}/tables")["identifiers"]
        return [Ident(tuple(one["namespace"]), one["name"]) for one in listed]

    def rename_table(self, source: Ident, destination: Ident) -> None:
        self.ask("POST", "/v1/tables/rename", {"source": source.document, "destination": destination.document})

    def register_table(self, ident: Ident, location: str | None, **more: Any) -> Table:
        path = f"/v1/namespaces/{spelled(ident.namespace)}/register"
        reply = self.ask("POST", path, {"name": ident.name, "metadata-location": location, **more})
        return Table(self, ident, reply["metadata"], reply["metadata-location"])

    # Transactions that create or replace a table

    def create_transaction(self, ident: Ident, schema: Document, **request: Any) -> Creation:
        return Creation(self.create_table(ident, schema, stage=True, **request))

    def replace_transaction(self, ident: Ident, schema: Document, **request: Any) -> Replacement:
        return Replacement.of(self.load_table(ident), schema, **request)

    def create_or_replace_transaction(self, ident: Ident, schema: Document, **request: Any) -> Creation | Replacement:
        if self.table_exists(ident):
            return self.replace_transaction(ident, schema, **request)
        return self.create_transaction(ident, schema, **request)

    # Views

    def view_path(self, ident: Ident) -> str:
        return f"/v1/namespaces/{spelled(ident.namespace)}/views/{quote_plus(ident.name)}"

    def create_view(self, ident: Ident, schema: Document, *queries: Document, **more: Any) -> View:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        version = version_of(ident, 1, *queries, **named.pop("view-version", {}))
        body = {"name": ident.name, "schema": schema, "view-version": version, "properties": {}, **named}
        reply = self.ask("POST", f"/v1/namespaces/{spelled(ident.namespace)}/views", body)
        return View(self, ident, reply["metadata"], reply["metadata-location"])

    def load_view(self, ident: Ident) -> View:
        reply = self.ask("GET", self.view_path(ident))
        return View(self, ident, reply["metadata"], reply["metadata-location"])

    def view_exists(self, ident: Ident) -> bool:
        return self.exists(self.view_path(ident))

    def drop_view(self, ident: Ident) -> bool:
        try:
            self.ask("DELETE", self.view_path(ident))
        except Refused as refused:
            if refused.kind == "NoSuchViewException":
                return False
            raise
        return True

    def list_views(self, *levels: str) -> list[Ident]:
        listed = self.ask("GET", f"/v1/namespaces/{spelled(levels)}/views")["identifiers"]
        return [Ident(tuple(one["namespace"]), one["name"]) for one in listed]

    def rename_view(self, source: Ident, destination: Ident) -> None:
        self.ask("POST", "/v1/views/rename", {"source": source.document, "destination": destination.document})

    def register_view(self, ident: Ident, location: str) -> View:
        path = f"/v1/namespaces/{spelled(ident.namespace)}/register-view"
        reply = self.ask("POST", path, {"name": ident.name, "metadata-location": location})
        return View(self, ident, reply["metadata"], reply["metadata-location"])


def sql(dialect: str, text: str) -> Document:
    return {"type": "sql", "dialect": dialect, "sql": text}


def version_of(ident: Ident, number: int, *queries: Document, **more: Any) -> Document:
    return {
        "version-id": number,
        "schema-id": 0,
        "timestamp-ms": 1_700_000_000_000 + number,
        "summary": {"engine-name": "test"},
        "default-namespace": list(ident.namespace),
        "representations": list(queries),
        **more,
    }


@dataclass
class View:
    """A view as a client holds it."""

    client: JavaClient
    ident: Ident
    metadata: Document
    location: str

    @property
    def current(self) -> Document:
        number = self.metadata["current-version-id"]
        return next(one for one in self.metadata["versions"] if one["version-id"] == number)

    def commit(self, *updates: Document) -> None:
        requirements = [{"type": "assert-view-uuid", "uuid": self.metadata["view-uuid"]}]
        path = self.client.view_path(self.ident)
        reply = self.client.ask("POST", path, {"requirements": requirements, "updates": list(updates)})
        self.metadata, self.location = reply["metadata"], reply["metadata-location"]

    def replace(self, schema: Document, *queries: Document, **more: Any) -> None:
        self.commit(*self.replacing(schema, *queries, **more))

    def replacing(self, schema: Document, *queries: Document, **more: Any) -> list[Document]:
        """The updates by which Java replaces a view's version: the schema's id is that of an equal one, else -1."""
        highest = max(one["version-id"] for one in self.metadata["versions"])
        known = next((one["schema-id"] for one in self.metadata["schemas"] if one["fields"] == schema["fields"]), None)
        named = {name.replace("_", "-"): value for name, value in more.items()}
        version = version_of(
            self.ident, highest + 1, *queries, **{"schema-id": -1 if known is None else known}, **named
        )
        add_schema = [{"action": "add-schema", "schema": schema}] if known is None else []
        return [
            *add_schema,
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]


@dataclass
class Table:
    """A table as a client holds it, which may be stale."""

    client: JavaClient
    ident: Ident
    metadata: Document
    location: str | None

    @property
    def schema(self) -> Document:
        return self._current("schemas", "schema-id", "current-schema-id")

    @property
    def spec(self) -> Document:
        return self._current("partition-specs", "spec-id", "default-spec-id")

    @property
    def order(self) -> Document:
        return self._current("sort-orders", "order-id", "default-sort-order-id")

    @property
    def columns(self) -> list[tuple[int, str]]:
        return [(one["id"], one["name"]) for one in self.schema["fields"]]

    @property
    def files(self) -> list[str]:
        """The files that the table holds: those that the current snapshot and its ancestors appended."""
        by_id = {one["snapshot-id"]: one for one in self.metadata.get("snapshots", [])}
        found, number = [], self.metadata.get("current-snapshot-id", -1)
        while number in by_id:
            found.append(by_id[number]["summary"]["file"])
            number = by_id[number].get("parent-snapshot-id", -1)
        return sorted(found)

    def _current(self, names: str, key: str, default: str) -> Document:
        return next(one for one in self.metadata[names] if one[key] == self.metadata[default])

    def refresh(self) -> Table:
        return self.client.load_table(self.ident)

    def commit(self, *updates: Document) -> Table:
        """Commit with Java's requirements; the table is then what the server answered."""
        self.send(requirements_for(self.metadata, updates), updates)
        return self

    def send(self, requirements: Sequence[Document], updates: Sequence[Document]) -> None:
        path, ident = self.client.table_path(self.ident), self.ident.document
        body = {"identifier": ident, "requirements": list(requirements), "updates": list(updates)}
        reply = self.client.ask("POST", path, body)
        self.metadata, self.location = reply["metadata"], reply["metadata-location"]

    def append(self, file: str) -> Table:
        """Append a file, again on fresh metadata when another writer was first, as Java does."""
        try:
            return self.commit(*appending(self.metadata, file))
        except Refused as refused:
            if refused.kind != "CommitFailedException":
                raise
            self.metadata = self.refresh().metadata
            return self.commit(*appending(self.metadata, file))

    def widened(self, *columns: Document) -> list[Document]:
        """The updates that add columns."""
        last = self.metadata["last-column-id"]
        added = [{**column, "id": last + place} for place, column in enumerate(columns, start=1)]
        return set_schema({**self.schema, "fields": [*self.schema["fields"], *added]})

    def narrowed(self, *names: str) -> list[Document]:
        """The updates that drop columns."""
        kept = [one for one in self.schema["fields"] if one["name"] not in names]
        return set_schema({**self.schema, "fields": kept})


def set_schema(schema: Document) -> list[Document]:
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


def set_spec(*fields: Document) -> list[Document]:
    spec = {"spec-id": 0, "fields": list(fields)}
    return [{"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1}]


def set_order(*fields: Document) -> list[Document]:
    order = {"order-id": 1 if fields else 0, "fields": list(fields)}
    return [
        {"action": "add-sort-order", "sort-order": order},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def set_properties(**updates: str) -> Document:
    return {"action": "set-properties", "updates": updates}


def appending(metadata: Document, file: str, parent: int | None = None) -> list[Document]:
    """The updates that append a file to main."""
    if parent is None:
        parent = metadata.get("current-snapshot-id", -1)
    snapshot: Document = {
        "snapshot-id": next(_ids),
        "timestamp-ms": metadata["last-updated-ms"],
        "manifest-list": f"{metadata['location']}/metadata/snap-{file}.avro",
        "summary": {"operation": "append", "file": file},
        "schema-id": metadata["current-schema-id"],
    }
    if metadata["format-version"] > 1:
        snapshot["sequence-number"] = metadata["last-sequence-number"] + 1
    if metadata["format-version"] > 2:
        snapshot |= {"first-row-id": metadata["next-row-id"], "added-rows": 2}
    if parent != -1:
        snapshot["parent-snapshot-id"] = parent
    return [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]},
    ]


def requirements_for(base: Document, updates: Iterable[Document], replace: bool = False) -> list[Document]:
    """What Java requires of the table for these updates. A replacement requires only what it builds upon."""
    found: list[Document] = [{"type": "assert-table-uuid", "uuid": base["table-uuid"]}]
    for update in updates:
        required = _requirement(base, update, replace)
        if required is not None and required not in found:
            found.append(required)
    return found


def _requirement(base: Document, update: Document, replace: bool) -> Document | None:
    match update["action"]:
        case "set-snapshot-ref" if not replace:
            held = base.get("refs", {}).get(update["ref-name"], {}).get("snapshot-id")
            return {"type": "assert-ref-snapshot-id", "ref": update["ref-name"], "snapshot-id": held}
        case "add-schema":
            return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": base["last-column-id"]}
        case "set-current-schema" if not replace:
            return {"type": "assert-current-schema-id", "current-schema-id": base["current-schema-id"]}
        case "add-spec":
            last = base["last-partition-id"]
            return {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": last}
        case "set-default-spec" if not replace:
            return {"type": "assert-default-spec-id", "default-spec-id": base["default-spec-id"]}
        case "set-default-sort-order" if not replace:
            return {"type": "assert-default-sort-order-id", "default-sort-order-id": base["default-sort-order-id"]}
    return None


@dataclass
class Creation:
    """A table's creation, staged. What is done within it is seen by nobody before it is committed."""

    table: Table
    later: list[Document] = field(default_factory=list)

    def append(self, file: str) -> None:
        self.later += appending(self.table.metadata, file)

    def commit(self) -> Table:
        self.table.send([{"type": "assert-create"}], [*creating(self.table.metadata), *self.later])
        return self.table


def creating(metadata: Document) -> list[Document]:
    """The updates that make staged metadata from nothing."""
    return [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": metadata["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": metadata["properties"]},
    ]


@dataclass
class Replacement:
    """A table's replacement: a new schema, spec and order, and no data of before; its history stays.

    Which schema, spec and order it has is always said, even where it keeps those of before: another may replace them meanwhile.
    """

    table: Table
    updates: list[Document]

    @classmethod
    def of(cls, table: Table, schema: Document, **request: Any) -> Replacement:
        """Fields keep the ids of fields of the same name; the others get new ones, as Java's buildReplacement does."""
        known = {one["name"]: one["id"] for one in table.schema["fields"]}
        fresh = itertools.count(table.metadata["last-column-id"] + 1)
        ids: dict[int, int] = {}
        for one in schema["fields"]:
            ids[one["id"]] = known[one["name"]] if one["name"] in known else next(fresh)
        moved = {**schema, "fields": [{**one, "id": ids[one["id"]]} for one in schema["fields"]]}
        updates: list[Document] = []
        properties = dict(request.get("properties") or {})
        version = properties.pop("format-version", None)
        if version is not None and int(version) != table.metadata["format-version"]:
            updates.append({"action": "upgrade-format-version", "format-version": int(version)})
        if "main" in table.metadata.get("refs", {}):
            updates.append({"action": "remove-snapshot-ref", "ref-name": "main"})
        updates += cls._schema(table, moved)
        updates += cls._spec(table, request.get("partition_spec"), ids)
        updates += cls._order(table, request.get("write_order"), ids)
        if request.get("location"):
            updates.append({"action": "set-location", "location": request["location"]})
        if properties:
            updates.append(set_properties(**properties))
        return cls(table, updates)

    @staticmethod
    def _schema(table: Table, moved: Document) -> list[Document]:
        for one in table.metadata["schemas"]:
            if one["fields"] == moved["fields"]:
                return [{"action": "set-current-schema", "schema-id": one["schema-id"]}]
        return set_schema(moved)

    @staticmethod
    def _spec(table: Table, spec: Document | None, ids: dict[int, int]) -> list[Document]:
        assigned = {
            (one["source-id"], one["transform"]): one["field-id"]
            for each in table.metadata["partition-specs"]
            for one in each["fields"]
        }
        fresh = itertools.count(table.metadata["last-partition-id"] + 1)
        fields = []
        for one in (spec or {"fields": []})["fields"]:
            source = ids[one["source-id"]]
            number = assigned.get((source, one["transform"]))
            fields.append({**one, "source-id": source, "field-id": next(fresh) if number is None else number})
        for each in table.metadata["partition-specs"]:
            if each["fields"] == fields:
                return [{"action": "set-default-spec", "spec-id": each["spec-id"]}]
        return set_spec(*fields)

    @staticmethod
    def _order(table: Table, order: Document | None, ids: dict[int, int]) -> list[Document]:
        fields = [{**one, "source-id": ids[one["source-id"]]} for one in (order or {"fields": []})["fields"]]
        for each in table.metadata["sort-orders"]:
            if each["fields"] == fields:
                return [{"action": "set-default-sort-order", "sort-order-id": each["order-id"]}]
        return set_order(*fields)

    def append(self, file: str) -> None:
        self.updates += appending(self.table.metadata, file, parent=-1)

    def commit(self) -> Table:
        """Commit; when another writer only moved the numbers on, once more with fresh ones, as Java does."""
        base = self.table.metadata
        try:
            self.table.send(requirements_for(base, self.updates, replace=True), self.updates)
        except Refused as refused:
            if "please retry" not in refused.message:
                raise
            last = self.table.refresh().metadata["last-sequence-number"]
            for number, one in enumerate((u for u in self.updates if u["action"] == "add-snapshot"), start=1):
                one["snapshot"]["sequence-number"] = last + number
            self.table.send(requirements_for(base, self.updates, replace=True), self.updates)
        return self.table
