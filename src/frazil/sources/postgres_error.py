"""What PostgreSQL and its drivers say when something fails, in one sentence that says what to do. Never with a secret.

While rows come, the Arrow driver hands on the server's words alone, without the code that goes with them. So what is
told apart here is told by the code where there is one, and else by words that stand in the message.
"""

from __future__ import annotations

import re

from frazil.errors import BadInput, SourceInterrupted, SourceNotFound, SourceUnreadable
from frazil.sources.postgres_address import PostgresAddress

_SERVER_S_WORDS = re.compile(r"(?:ERROR|FATAL|PANIC): +(.*)")
_PREAMBLE = re.compile(r"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to connect: |Execution error \[\w+\]: )?")
_EPILOGUE = re.compile(r"\.? SQLSTATE: \w{5}$")

_LOST = re.compile(
    r"server closed the connection|terminating connection|PQgetCopyData\(\) failed|could not (?:receive|send) data|"
    r"connection (?:to server|not open)|no connection to the server|SSL SYSCALL|the database system is"
)
_NO_SNAPSHOT = re.compile(
    r"invalid snapshot identifier|could not import the requested snapshot|snapshot \".*\" does not exist"
)
# What to do, by the server's code or by its words.
_ADVICE = (
    (
        "57014",
        "statement timeout",
        "raise statement_timeout for this role, or by ?options=-cstatement_timeout%3D0 in the address",
    ),
    ("42501", "permission denied", "grant SELECT on it to this user, or leave it out: --tables '…,!schema.table'"),
    (
        "22021",
        "invalid byte sequence",
        "the database does not check its texts; cast the column to bytea in a view or a --query",
    ),
    (
        "22P02",
        "frazil: dimensions",
        "an array has more than one dimension, and a list has one; cast the column to text in a view or a --query",
    ),
    (
        "0A000",
        "NaN",
        "a numeric column holds NaN, which no decimal does; mend the rows, or take NaN as null: --option not-finite=null",
    ),
)


def connection_refused(address: PostgresAddress, error: Exception) -> BadInput:
    """Why no connection came about."""
    return SourceNotFound(
        f"PostgreSQL at {address} cannot be reached: {_said(address, error)}; check the address, and the password in "
        "PGPASSWORD, ~/.pgpass or a service file"
    )


def reading_failed(subject: str, address: PostgresAddress, error: Exception) -> BadInput:
    """Why the rows of `subject` (a table) did not come. SourceInterrupted where another try may succeed."""
    code, said = _code(error), _said(address, error)
    if _NO_SNAPSHOT.search(said):
        return SourceUnreadable(
            f"the PostgreSQL snapshot that all shards of {subject} share has ended (the server restarted, or closed the "
            "session that held it); start the job anew, as rows of another instant must not mix with these"
        )
    if code.startswith(("08", "57P")) or _LOST.search(said):
        return SourceInterrupted(f"the connection to PostgreSQL broke while {subject} was read: {said}")
    advice = next((f"; {advice}" for known, words, advice in _ADVICE if _is(code, said, known, words)), "")
    return SourceUnreadable(f"{subject} cannot be read from PostgreSQL: {said}{advice}")


def _is(code: str, said: str, known: str, words: str) -> bool:
    return code == known if code and code != "0A000" else words in said


def _code(error: Exception) -> str:
    """PostgreSQL's five letters for what went wrong, or nothing where they did not come along."""
    state = getattr(error, "sqlstate", None)
    return state.strip("\x00") if isinstance(state, str) else ""


def _said(address: PostgresAddress, error: Exception) -> str:
    """The first line of a driver's message, without the driver's own words around it, and without secrets."""
    text = str(error)
    found = _SERVER_S_WORDS.search(text)
    line = found[1] if found else next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return address.without_secrets(_EPILOGUE.sub("", _PREAMBLE.sub("", line.strip())))
