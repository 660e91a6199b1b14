"""What a connection may leave in a session of PostgreSQL: nothing, where a pooler stands between.

A pooler in transaction mode hands each transaction whatever session is free. What is set in one
stays there for strangers, and what was set before is somewhere else.
"""

from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

# What says that the server is away, or ended the session: it passes, and to repeat is safe.
AWAY: tuple[type[psycopg.Error], ...] = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,  # a primary that became a standby
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
)

# Behind a pooler the number of the backend that a client was told is the pooler's invention: no
# row then, and nothing is set.
LIMIT_SESSION = """
    SELECT set_config(l.name, l.value, false)
    FROM unnest(%s::text[], %s::text[]) AS l (name, value) WHERE pg_backend_pid() = %s"""
LIMIT_TRANSACTION = """
    SELECT set_config(l.name, l.value, true)
    FROM unnest(%s::text[], %s::text[]) AS l (name, value)"""
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"


_ALIVE = {
    "keepalives_idle": 10,  # seconds
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # milliseconds
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long statements may take, in milliseconds."""

    statement_ms: int
    lock_ms: int | None = None  # None: as the server says

    def longer(self, limit_s: float | None) -> tuple[list[str], list[str]]:
        """The same, for a statement that may take up to so many seconds."""
        least_ms = self.statement_ms if limit_s is None else int(limit_s * 1000)
        return replace(self, statement_ms=max(self.statement_ms, least_ms)).of_transaction()

    def of_transaction(self) -> tuple[list[str], list[str]]:
        """The parameters of `LIMIT_TRANSACTION`."""
        limits = {"statement_timeout": self.statement_ms, "lock_timeout": self.lock_ms}
        given = {name: str(ms) for name, ms in limits.items() if ms is not None}
        return list(given), list(given.values())

    def of_session(self, conn: psycopg.BaseConnection[Any]) -> tuple[list[str], list[str], int]:
        """The parameters of `LIMIT_SESSION`."""
        return *self.of_transaction(), conn.info.backend_pid


def plain(url: str) -> dict[str, Any]:
    """The options of a connection that anybody may open: to a primary, and with nothing prepared.

    A server that is gone is noticed. A pooler would hand prepared statements on to strangers.
    """
    return alive_only(url) | primary_only(url) | {"prepare_threshold": None}


def primary_only(url: str) -> dict[str, Any]:
    """The option by which a connection to a standby is refused, unless the URL has its own.

    What a standby shows is older than it can tell, and transactions become visible there in
    another order.
    """
    asked = conninfo_to_dict(url).get("target_session_attrs")
    return {} if asked else {"target_session_attrs": "primary"}


def alive_only(url: str) -> dict[str, Any]:
    """The options by which a server that is gone without a word is noticed within seconds.

    A machine that was cut off ends no connection. What the URL says itself stands.
    """
    asked = conninfo_to_dict(url)
    return {name: value for name, value in _ALIVE.items() if name not in asked}
