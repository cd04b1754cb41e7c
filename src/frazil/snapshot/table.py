"""The only door to a catalog: load a table, update a table, and say what became of it.

Nothing but load-table and update-table is called, so any catalog that speaks Iceberg will do.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID

from frazil.errors import CommitRefused, OutcomeUnknown
from frazil.snapshot import native_reservation
from frazil.snapshot.outcome import NotLanded, Unknown

# Answers that a catalog gives only after it has looked at the request and turned it down.
_REFUSALS = (BadRequestError, UnauthorizedError, ForbiddenError, NoSuchTableError)
# What a file system says when it takes no new file. A broken connection is an OSError too, but has none of these.
_TAKES_NO_FILE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True, slots=True)
class Accepted:
    """The catalog said that the update is in the table."""


class CatalogTable:
    """A PyIceberg table seen through its two operations. The table object handed in follows every refresh."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.name = ".".join(table.name())

    @property
    def metadata(self) -> TableMetadata:
        """The metadata as of the last look."""
        return self.table.metadata

    @property
    def io(self) -> FileIO:
        """The storage of the table."""
        return self.table.io

    def exclusive(self) -> AbstractContextManager[None]:
        """Where the catalog can keep others waiting from a look to the commit that builds on it, do; else race."""
        exclusive = getattr(self.table.catalog, "exclusive", nullcontext)
        return cast("AbstractContextManager[None]", exclusive())

    def refresh(self, table_uuid: str | None = None) -> TableMetadata:
        """Look again. A table that was dropped and made anew under the same name is refused."""
        fresh = self.table.catalog.load_table(self.table.name())
        found, wanted = str(fresh.metadata.table_uuid), table_uuid or str(self.table.metadata.table_uuid)
        if found != wanted:
            raise CommitRefused(
                f"table {self.name} was dropped and created again (its uuid is {found}, not {wanted}); "
                "begin a new snapshot on the new table"
            )
        # Not `table.refresh()`: that compares with the uuid it held before, which may be neither of the two.
        metadata = native_reservation.with_reservations(fresh) if self._reserves_natively else fresh.metadata
        self.table.metadata, self.table.metadata_location = metadata, fresh.metadata_location
        self.table.io, self.table.config = fresh.io, fresh.config
        return self.table.metadata

    def update(self, requirements: Sequence[Any], updates: Sequence[Any]) -> Accepted | NotLanded | Unknown:
        """Ask the catalog for one atomic update, once."""
        try:
            response = self._commit(requirements, updates)
        except CommitFailedException as error:
            return NotLanded(str(error), conflict=True)
        except _REFUSALS as error:
            return NotLanded(f"{type(error).__name__}: {error}", conflict=False)
        except (KeyError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            return NotLanded(reason, conflict=True) if self._applies_here else Unknown(reason)
        except OSError as error:
            reason = f"{type(error).__name__}: {error}"
            unstored = self._applies_here and error.errno in _TAKES_NO_FILE
            return NotLanded(f"the new metadata cannot be stored ({error})", False) if unstored else Unknown(reason)
        except Exception as error:  # noqa: BLE001  whatever else went wrong, the update may have been applied: look, don't guess
            return Unknown(f"{type(error).__name__}: {error}")
        self.table.metadata = response.metadata
        self.table.metadata_location = response.metadata_location
        return Accepted()

    def _commit(self, requirements: Sequence[Any], updates: Sequence[Any]) -> CommitTableResponse:
        if self._reserves_natively:
            return native_reservation.commit(self.table, requirements, updates)
        return self.table.catalog.commit_table(self.table, tuple(requirements), tuple(updates))

    @property
    def _reserves_natively(self) -> bool:
        return native_reservation.is_offered(self.table)

    @property
    def _applies_here(self) -> bool:
        """Whether this process itself applies updates to the newest metadata, before it asks anybody to store them.

        Then an update that does not fit (its sequence number is taken, its reservation is gone) fails without a trace,
        and so does one whose metadata file cannot be written, for the pointer to it moves afterwards.
        """
        return isinstance(self.table.catalog, MetastoreCatalog)

    def look(self, table_uuid: str | None, doing: str) -> TableMetadata:
        """Refresh in order to learn an outcome; where that fails too, the outcome stays unknown."""
        try:
            return self.refresh(table_uuid)
        except CommitRefused:
            raise
        except NoSuchTableError as error:
            raise CommitRefused(f"{doing}: table {self.name} is not there any more ({error})") from error
        except Exception as error:
            raise OutcomeUnknown(
                f"{doing} on table {self.name}: the catalog gave no answer and cannot be asked again "
                f"({type(error).__name__}: {error}); nothing was deleted. Try again when the catalog is back"
            ) from error


def assert_table(metadata: TableMetadata) -> AssertTableUUID:
    """The requirement that the table is still the one we looked at."""
    return AssertTableUUID(uuid=metadata.table_uuid)


def assert_ref(ref: str, snapshot_id: int | None) -> AssertRefSnapshotId:
    """The requirement that a ref still points at this snapshot, or does not exist yet."""
    return AssertRefSnapshotId(ref=ref, snapshot_id=snapshot_id)
