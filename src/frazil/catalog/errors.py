"""The catalog's errors: each has the HTTP status and the exception name by which every Iceberg client knows it.

    CatalogError                         500 InternalServerError
    ├── InvalidRequest                   400 BadRequestException
    │   ├── IllegalArgument              400 IllegalArgumentException
    │   └── ValidationFailed             400 ValidationException
    ├── NotAuthorized                    401 NotAuthorizedException
    ├── Forbidden                        403 ForbiddenException
    ├── Missing                          404 NotFoundException
    │   ├── NoSuchNamespace              404 NoSuchNamespaceException
    │   ├── NoSuchTable                  404 NoSuchTableException
    │   ├── NoSuchView                   404 NoSuchViewException
    │   ├── NoSuchPlan                   404 NoSuchPlanIdException
    │   ├── NoSuchPlanTask               404 NoSuchPlanTaskException
    │   └── NoSuchWarehouse              404 NoSuchWarehouseException
    ├── Conflict                         409 CommitFailedException
    │   ├── CommitFailed                 409 CommitFailedException
    │   ├── AlreadyExists                409 AlreadyExistsException
    │   └── NamespaceNotEmpty            409 NamespaceNotEmptyException
    ├── UnprocessableEntity              422 UnprocessableEntityException
    ├── NotSupported                     501 UnsupportedOperationException
    ├── ServiceUnavailable               503 ServiceUnavailableException
    └── CommitStateUnknown               500 CommitStateUnknownException

Messages are Iceberg's own wherever Iceberg has one, since clients and people match on them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from frazil.errors import FrazilError


class CatalogError(FrazilError):
    """The root. `status`: the HTTP status. `kind`: the `type` of the Iceberg error body."""

    status: ClassVar[int] = 500
    kind: ClassVar[str] = "InternalServerError"

    @property
    def message(self) -> str:
        """What happened, in one sentence."""
        return str(self.args[0]) if self.args else self.kind

    def to_document(self) -> dict[str, Any]:
        """The body that every error reply has."""
        return {"error": {"message": self.message, "type": self.kind, "code": self.status}}


class InvalidRequest(CatalogError):
    """The request cannot be understood, or asks for what the format forbids."""

    status = 400
    kind = "BadRequestException"
    exit_code = 2


class IllegalArgument(InvalidRequest):
    """A value of the request is not one that Iceberg's model takes."""

    kind = "IllegalArgumentException"


class ValidationFailed(InvalidRequest):
    """The request would make metadata that is not valid."""

    kind = "ValidationException"


class NotAuthorized(CatalogError):
    """Nobody known: no credentials, or wrong ones."""

    status = 401
    kind = "NotAuthorizedException"


class Forbidden(CatalogError):
    """Somebody known, who may not do this."""

    status = 403
    kind = "ForbiddenException"


class Missing(CatalogError):
    """There is nothing of that name."""

    status = 404
    kind = "NotFoundException"


class NoSuchNamespace(Missing):
    """There is no namespace of that name."""

    kind = "NoSuchNamespaceException"


class NoSuchTable(Missing):
    """There is no table of that name."""

    kind = "NoSuchTableException"


class NoSuchView(Missing):
    """There is no view of that name."""

    kind = "NoSuchViewException"


class NoSuchPlan(Missing):
    """There is no scan plan of that id."""

    kind = "NoSuchPlanIdException"


class NoSuchPlanTask(Missing):
    """There is no plan task of that token."""

    kind = "NoSuchPlanTaskException"


class NoSuchWarehouse(Missing):
    """There is no warehouse of that name."""

    kind = "NoSuchWarehouseException"


class Conflict(CatalogError):
    """The catalog is not in the state that the request needs."""

    status = 409
    kind = "CommitFailedException"


class CommitFailed(Conflict):
    """A requirement does not hold, or another commit was first; proven: nothing landed. Try again on fresh metadata."""

    retryable = True


class AlreadyExists(Conflict):
    """The name is taken."""

    kind = "AlreadyExistsException"


class NamespaceNotEmpty(Conflict):
    """The namespace still holds something."""

    kind = "NamespaceNotEmptyException"


class UnprocessableEntity(CatalogError):
    """The request contradicts itself."""

    status = 422
    kind = "UnprocessableEntityException"


class NotSupported(CatalogError):
    """The server does not do this, or has been told not to."""

    status = 501
    kind = "UnsupportedOperationException"


class ServiceUnavailable(CatalogError):
    """The server cannot do this now."""

    status = 503
    kind = "ServiceUnavailableException"
    retryable = True


class CommitStateUnknown(CatalogError):
    """The commit may or may not have landed."""

    kind = "CommitStateUnknownException"
    landed = None
