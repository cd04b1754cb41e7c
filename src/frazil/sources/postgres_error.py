"""What PostgreSQL and its drivers say when something fails, in one sentence that says what to do. Never with a secret."""

from __future__ import annotations

import re

from frazil.errors import BadInput, SourceInterrupted, SourceNotFound, SourceUnreadable
from frazil.sources.postgres_address import PostgresAddress

_LOST = ("08", "57P")
_LOST_WORDS = (
    "server closed the connection",
    "connection to server",
    "could not receive data",
    "could not send data",
    "connection not open",
    "SSL SYSCALL",
    "SSL connection has been closed",
    "lost synchronization",
    "no connection to the server",
)
_NO_SNAPSHOT = ("invalid snapshot identifier", "could not import the requested snapshot")
_UNKNOWN_SNAPSHOT = "42704"  # undefined object, which of all objects only the snapshot can be here
_PREAMBLE = re.compile(r"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to [^:]*: )?")


def telling(error: Exception) -> str:
    """The first line of what a driver says, without the driver's own preamble."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return _PREAMBLE.sub("", line).removeprefix("ERROR: ").strip() or line


def sqlstate_of(error: Exception) -> str:
    """PostgreSQL's five letters for what went wrong, or nothing where the server said nothing."""
    state = getattr(error, "sqlstate", None)
    return state.strip("\x00") if isinstance(state, str) else ""


def connection_refused(address: PostgresAddress, error: Exception) -> BadInput:
    """Why no connection came about."""
    said = address.without_secrets(telling(error))
    return SourceNotFound(
        f"PostgreSQL at {address} cannot be reached: {said}; check the address, and the password in PGPASSWORD, "
        "~/.pgpass or a service file"
    )


def reading_failed(
    subject: str, address: PostgresAddress, error: Exception, decimals: tuple[str, ...] = ()
) -> BadInput:
    """Why the rows of `subject` (a table) did not come. SourceInterrupted where another try may succeed."""
    state, said = sqlstate_of(error), address.without_secrets(telling(error))
    if _is_snapshot_gone(state, str(error)):
        return SourceUnreadable(
            f"the PostgreSQL snapshot that all shards of {subject} share has ended (the server restarted, or closed the "
            "session that held it); start the job anew, as rows of another instant must not mix with these"
        )
    if state.startswith(_LOST) or (not state and any(words in str(error) for words in _LOST_WORDS)):
        return SourceInterrupted(f"the connection to PostgreSQL broke while {subject} was read: {said}")
    return SourceUnreadable(f"{subject} cannot be read from PostgreSQL: {_advised(state, said, decimals)}")


def _is_snapshot_gone(state: str, text: str) -> bool:
    return (state == _UNKNOWN_SNAPSHOT and "snapshot" in text) or any(words in text for words in _NO_SNAPSHOT)


def _advised(state: str, said: str, decimals: tuple[str, ...]) -> str:
    """The server's words and what to do about them."""
    if state == "57014":
        return f"{said}; raise statement_timeout for this role, or in the address: ?options=-cstatement_timeout%3D0"
    if state == "42501":
        return f"{said}; grant SELECT on it to this user, or leave the table out with '!schema.table'"
    if state == "0A000" and decimals:
        return (
            f"one of its numeric columns ({', '.join(decimals)}) holds NaN, which no decimal can ({said}); mend the rows, "
            "or take them as null: --option not-finite=null"
        )
    if state == "22P02" and "frazil:" in said:
        return (
            f"an array has more than one dimension ({said}), and Iceberg's lists have one; ingest a view that casts "
            "the column to text, or use --query"
        )
    return said
