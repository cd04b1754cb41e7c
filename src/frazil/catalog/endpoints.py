"""Every endpoint of the server: the one table that routes requests and that `config` announces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from starlette.responses import Response

from frazil.catalog import config, metrics_reports, namespaces, plans, table_commits, tables, views
from frazil.catalog.call import Call

Handler: TypeAlias = Callable[[Call], Response]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An operation of the OpenAPI document, or one beside it, which is not announced.

    `inline`: it only looks at the database and at memory, so on SQLite it need not leave the thread that serves everybody.
    """

    method: str
    path: str
    operation: str
    handler: Handler
    inline: bool = False
    announced: bool = True


_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = _NAMESPACES + "/{namespace}"
_TABLES = _NAMESPACE + "/tables"
_TABLE = _TABLES + "/{table}"
_VIEWS = _NAMESPACE + "/views"
_VIEW = _VIEWS + "/{view}"

# In the order of how often they are asked for: the first match serves.
ENDPOINTS: Final = (
    Endpoint("GET", _TABLE, "loadTable", tables.load_table, inline=True),
    Endpoint("POST", _TABLE, "updateTable", table_commits.update_table),
    Endpoint("HEAD", _TABLE, "tableExists", tables.table_exists, inline=True),
    Endpoint("DELETE", _TABLE, "dropTable", tables.drop_table),
    Endpoint("GET", _TABLES, "listTables", tables.list_tables, inline=True),
    Endpoint("POST", _TABLES, "createTable", tables.create_table),
    Endpoint("POST", _TABLE + "/metrics", "reportMetrics", metrics_reports.report_metrics),
    Endpoint("GET", _TABLE + "/metrics", "listMetricsReports", metrics_reports.list_reports, announced=False),
    Endpoint("POST", _TABLE + "/plan", "planTableScan", plans.plan_table_scan),
    Endpoint("GET", _TABLE + "/plan/{plan-id}", "fetchPlanningResult", plans.fetch_planning_result),
    Endpoint("DELETE", _TABLE + "/plan/{plan-id}", "cancelPlanning", plans.cancel_planning),
    Endpoint("POST", _TABLE + "/tasks", "fetchScanTasks", plans.fetch_scan_tasks),
    Endpoint("POST", _TABLE + "/unregister", "unregisterTable", tables.unregister_table),
    Endpoint("GET", _NAMESPACE, "loadNamespaceMetadata", namespaces.load_namespace, inline=True),
    Endpoint("HEAD", _NAMESPACE, "namespaceExists", namespaces.namespace_exists, inline=True),
    Endpoint("DELETE", _NAMESPACE, "dropNamespace", namespaces.drop_namespace),
    Endpoint("POST", _NAMESPACE + "/properties", "updateProperties", namespaces.update_properties),
    Endpoint("GET", _NAMESPACES, "listNamespaces", namespaces.list_namespaces, inline=True),
    Endpoint("POST", _NAMESPACES, "createNamespace", namespaces.create_namespace),
    Endpoint("POST", _NAMESPACE + "/register", "registerTable", tables.register_table),
    Endpoint("POST", "/v1/{prefix}/tables/rename", "renameTable", tables.rename_table),
    Endpoint("POST", "/v1/{prefix}/transactions/commit", "commitTransaction", table_commits.commit_transaction),
    Endpoint("GET", _VIEW, "loadView", views.load_view, inline=True),
    Endpoint("POST", _VIEW, "replaceView", views.replace_view),
    Endpoint("HEAD", _VIEW, "viewExists", views.view_exists, inline=True),
    Endpoint("DELETE", _VIEW, "dropView", views.drop_view),
    Endpoint("GET", _VIEWS, "listViews", views.list_views, inline=True),
    Endpoint("POST", _VIEWS, "createView", views.create_view),
    Endpoint("POST", "/v1/{prefix}/views/rename", "renameView", views.rename_view),
    Endpoint("POST", _NAMESPACE + "/register-view", "registerView", views.register_view),
    Endpoint("GET", "/v1/config", "getConfig", config.get_config, announced=False),
    Endpoint("GET", "/health", "health", config.health, inline=True, announced=False),
    Endpoint("GET", "/ready", "ready", config.ready, announced=False),
)
