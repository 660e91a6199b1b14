"""What both kinds of client need to know of their connections: addresses, options, errors."""

import re
import select
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
import psycopg_pool

from truerank.errors import (
    Contended,
    DatabaseUnavailable,
    InvalidInput,
    NotAllowed,
    SettingsInvalid,
    TruerankError,
)
from truerank.schema.migrate import mismatch_error
from truerank.settings import Settings

_CONNECTION_WAIT_S_MAX = 2.0
# PostgreSQL's own name for a check of one column.
_CHECK = re.compile(r"(?:board|ranking)_(.+?)_check[0-9]*")
CONTENDED = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)
# The functions raise these for what a caller wrote wrong.
CALLER_MISTAKES = (
    psycopg.errors.InvalidParameterValue,
    psycopg.errors.InvalidTextRepresentation,
    psycopg.errors.InvalidDatetimeFormat,
    psycopg.errors.DatetimeFieldOverflow,
    psycopg.errors.IntervalFieldOverflow,
    psycopg.errors.NumericValueOutOfRange,
)
# The last is a primary that became a standby.
AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg_pool.PoolTimeout,
    psycopg.errors.ReadOnlySqlTransaction,
)
SCHEMA_ABSENT = (
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UndefinedTable,
)


def urls(settings: Settings) -> tuple[str, str]:
    """Both addresses.

    Raises:
        SettingsInvalid: one of them is not set.
    """
    if settings.database_url is None or settings.redis_url is None:
        raise SettingsInvalid("both database_url and redis_url are needed")
    return settings.database_url, settings.redis_url


def connection_kwargs(settings: Settings) -> dict[str, Any]:
    """Options of every pooled connection: each statement is a transaction, with a deadline."""
    return {
        "autocommit": True,
        "application_name": "truerank",
        "connect_timeout": max(2, settings.database_timeout_ms // 1000),
        "options": f"-c statement_timeout={settings.database_timeout_ms}",
    }


def connection_wait_s(settings: Settings) -> float:
    """How long a caller waits for a connection of a pool, in seconds.

    Shorter than a statement may take: reads fall back to what is remembered where it is too long.
    """
    return min(settings.database_timeout_ms / 1000, _CONNECTION_WAIT_S_MAX)


@contextmanager
def borrowed(pool: psycopg_pool.ConnectionPool) -> Iterator[psycopg.Connection[Any]]:
    """A connection of a pool, none that the server ended while it lay there.

    The `check` of a pool would cost a round trip each time, and a second's pause for each
    connection that it finds ended.
    """
    conn = pool.getconn()
    for _ in range(pool.max_size):
        if not _is_ended(conn):
            break
        conn.close()
        pool.putconn(conn)
        conn = pool.getconn()
    try:
        with conn:
            yield conn
    finally:
        pool.putconn(conn)


@asynccontextmanager
async def aborrowed(
    pool: psycopg_pool.AsyncConnectionPool,
) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """See `borrowed`."""
    conn = await pool.getconn()
    for _ in range(pool.max_size):
        if not _is_ended(conn):
            break
        await conn.close()
        await pool.putconn(conn)
        conn = await pool.getconn()
    try:
        async with conn:
            yield conn
    finally:
        await pool.putconn(conn)


def _is_ended(conn: psycopg.BaseConnection[Any]) -> bool:
    # A server says nothing to an idle connection but that it ends.
    if conn.closed:
        return True
    waiting = select.poll()
    waiting.register(conn.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def translate(exc: psycopg.Error) -> Exception:
    """The error of this package that a driver's error means."""
    message = exc.diag.message_primary or str(exc)
    if isinstance(exc, psycopg.errors.CheckViolation):
        named = _CHECK.fullmatch(exc.diag.constraint_name or "")
        field = named[1] if named else None
        return InvalidInput(f"{field or 'a setting'} has a value that may not be", field=field)
    for kinds, error in _MEANINGS:
        if isinstance(exc, kinds):
            return error(message)
    if type(exc) is psycopg.DataError and exc.sqlstate is None:
        return InvalidInput(message)  # the driver's own, of text that can't be sent
    return mismatch_error() if _is_schema_absent(exc) else exc


def _is_schema_absent(exc: psycopg.Error) -> bool:
    if isinstance(exc, psycopg.errors.UndefinedFunction):
        # Numbers that callers choose are cast, so one of ours is not found only where it isn't
        # there. An operator, or a function of somebody else, says nothing of the schema.
        return "truerank." in (exc.diag.message_primary or "")
    return isinstance(exc, SCHEMA_ABSENT)


_MEANINGS: tuple[tuple[tuple[type[psycopg.Error], ...], type[TruerankError]], ...] = (
    (CONTENDED, Contended),
    (CALLER_MISTAKES, InvalidInput),
    ((psycopg.errors.InsufficientPrivilege,), NotAllowed),
    (AWAY, DatabaseUnavailable),
)
