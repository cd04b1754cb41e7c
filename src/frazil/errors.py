"""One error tree. Every error says what happened, to which table, file or job, and what to do next.

    FrazilError
    ├── BadInput                 the user's input cannot be used; nothing was written
    │   ├── SourceNotFound       no such file, folder or pattern
    │   ├── SourceUnreadable     a source file is there but damaged or not of its format
    │   │   └── SourceInterrupted  the connection to a source broke while it was read
    │   ├── SchemaMismatch       a source does not fit the table, or two sources clash
    │   ├── TooManyRejected      more rows were rejected than the limit allows
    │   ├── UnknownColumn        a partition field or option names a column that is not there
    │   └── UnknownJob           no job of that name is kept here
    ├── NotLanded                proven: no reader will ever see this snapshot
    │   ├── CommitConflict       another writer moved the ref first, and the policy (or the retry budget) says stop
    │   ├── CommitRefused        the catalog looked at the commit and will never accept it
    │   ├── WriteFailed          a shard could not be written
    │   ├── BatchAlreadyLanded   this batch of a stream is in the table already, by an earlier commit
    │   ├── StorageFailed        the warehouse cannot be written or read
    │   ├── Interrupted          the user stopped the run
    │   └── ReservationGone      the right to publish is no longer held
    │       ├── AlreadyConsumed  a coordinator has published this reservation
    │       ├── ReservationExpired
    │       └── ReservationCancelled
    └── OutcomeUnknown           the commit may or may not have landed; nothing was deleted

`landed` is False where "not landed" is proven and None where it is not known. Only when it is False may files be deleted.
"""

from __future__ import annotations

from typing import ClassVar


class FrazilError(Exception):
    """The root. `retryable`: the same call may succeed later. `landed`: see the module. `exit_code`: the command's."""

    retryable: ClassVar[bool] = False
    landed: ClassVar[bool | None] = False
    exit_code: ClassVar[int] = 1


class BadInput(FrazilError):
    """The user's input cannot be used; nothing was written."""

    exit_code = 2


class SourceNotFound(BadInput):
    """No such file, folder or pattern."""


class SourceUnreadable(BadInput):
    """A source file is there, but damaged or not of its format."""

    exit_code = 1


class SourceInterrupted(SourceUnreadable):
    """The connection to a source broke while it was read."""

    retryable = True


class SchemaMismatch(BadInput):
    """A source does not fit the table, or two sources clash."""


class TooManyRejected(BadInput):
    """More rows were rejected than the limit allows."""

    exit_code = 1


class UnknownColumn(BadInput):
    """A partition field or an option names a column that is not there."""


class UnknownJob(BadInput):
    """No job of that name is kept here."""


class NotLanded(FrazilError):
    """Proven: no reader will ever see this snapshot."""


class CommitConflict(NotLanded):
    """Another writer moved the ref first, and the policy or the retry budget says stop. (HTTP 409, gRPC ABORTED.)"""

    retryable = True
    exit_code = 3


class CommitRefused(NotLanded):
    """The catalog looked at the commit and will never accept it."""


class WriteFailed(NotLanded):
    """A shard could not be written."""

    retryable = True


class BatchAlreadyLanded(NotLanded):
    """This batch of a stream is in the table already, by an earlier commit. This one's files are spare."""


class StorageFailed(NotLanded):
    """The warehouse cannot be written or read."""


class Interrupted(NotLanded):
    """The user stopped the run."""

    retryable = True


class ReservationGone(NotLanded):
    """The right to publish is no longer held."""


class AlreadyConsumed(ReservationGone):
    """A coordinator has published this reservation.

    This caller's publish is what did not land: the snapshot itself is in the table, so its files must stay.
    """

    landed = None


class ReservationExpired(ReservationGone):
    """The reservation's time is over; its files are for the sweep."""


class ReservationCancelled(ReservationGone):
    """The reservation was given back."""


class OutcomeUnknown(FrazilError):
    """The commit may or may not have landed; nothing was deleted."""

    retryable = True
    landed = None
    exit_code = 4
