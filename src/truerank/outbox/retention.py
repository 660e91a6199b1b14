"""What keeps the disk from filling: the ring of the outbox turns, and old events are forgotten."""

import time
from enum import StrEnum

import structlog

from truerank.crashpoints import crashpoint
from truerank.outbox.ticks import Connection
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

_TURN = "SELECT truerank.turn_ring(%s, %s, %s, %s)"
_PRUNE = "SELECT pending FROM truerank.prune_events(%s)"
_PRUNE_EVERY_S = 60.0


class Turn(StrEnum):
    """What became of an attempt to turn the ring."""

    TURNED = "turned"
    FRESH = "fresh"  # the segment is neither old nor large
    BUSY = "busy"  # a lock wasn't free at once
    UNREAD = "unread"  # some copy has not read what would be truncated


def turn_ring(
    conn: Connection, *, age_s: int, bytes_max: int, dead_s: int, anyway: bool = False
) -> Turn:
    """Let writers write to the next of four segments, and truncate what that one held.

    Args:
        conn: in autocommit: the turn is a transaction of its own.
        age_s: a segment is due after so long; three times that is kept.
        bytes_max: or when it has grown to this.
        dead_s: a copy not seen for so long no longer holds the turn up; it is filled anew.
        anyway: turn though nothing is due.

    Source: `schema/functions/turn_ring.sql`.
    """
    crashpoint("before_turn")
    row = conn.execute(_TURN, (age_s, bytes_max, dead_s, anyway)).fetchone()
    crashpoint("after_turn")
    assert row is not None, "the function returns one row"
    return Turn(row[0])


def prune_events(conn: Connection, *, rows_max: int) -> bool:
    """Forget a slice of the events that are older than their boards' retention.

    Args:
        conn: in autocommit: each slice is a transaction of its own.
        rows_max: events in a slice.

    Returns:
        Whether there is more to do now, or somebody is waited for.

    Source: `schema/functions/prune_events.sql`.
    """
    row = conn.execute(_PRUNE, (rows_max,)).fetchone()
    assert row is not None, "the function returns one row"
    return bool(row[0])


class Retention:
    """What one worker does about it, a little with each of its heartbeats."""

    def __init__(self, conn: Connection, settings: Settings, meter: Meter) -> None:
        self._conn = conn
        self._meter = meter
        self._settings = settings
        self._turn = Turn.FRESH
        self._prune_at = 0.0

    def keep(self) -> None:
        """Turn the ring where that is due, and forget a slice of what is too old."""
        turn = turn_ring(
            self._conn,
            age_s=self._settings.segment_s,
            bytes_max=self._settings.segment_bytes_max,
            dead_s=self._settings.dead_s,
        )
        self._meter.ring_turned(turn)
        if turn not in {Turn.FRESH, self._turn}:
            _log().info("ring", turn=turn.value)
        self._turn = turn
        if time.monotonic() >= self._prune_at and not prune_events(
            self._conn, rows_max=self._settings.prune_rows_max
        ):
            self._prune_at = time.monotonic() + _PRUNE_EVERY_S


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
