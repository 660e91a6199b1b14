"""What both kinds of client need to know of their connections: addresses, options, errors."""

import re
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
    psycopg.errors.UndefinedFunction,
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
    return mismatch_error() if isinstance(exc, SCHEMA_ABSENT) else exc


_MEANINGS: tuple[tuple[tuple[type[psycopg.Error], ...], type[TruerankError]], ...] = (
    (CONTENDED, Contended),
    (CALLER_MISTAKES, InvalidInput),
    ((psycopg.errors.InsufficientPrivilege,), NotAllowed),
    (AWAY, DatabaseUnavailable),
)
