"""What keeps the disk from filling: the ring of the outbox turns, and old events are forgotten.

None of it needs Redis: the outbox grows while Redis is away, and must not grow without end.
"""

import time
from enum import StrEnum

import structlog

from truerank.crashpoints import crashpoint
from truerank.outbox.ticks import Connection
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

_TURN = "SELECT truerank.turn_ring(%s, %s, %s, %s, %s)"
_PRUNE = "SELECT pending FROM truerank.prune_events(%s)"
_SWEEP_RATES = "SELECT truerank.sweep_rates()"
_FOLD = "SELECT truerank.fold_populations(%s)"
_FOLDED_MAX = 10_000  # changes at a time
_PRUNE_EVERY_S = 60.0
_OVERDUE = 0.25  # of the time after which a segment is due: held up for so long, somebody is told


class Turn(StrEnum):
    """What became of an attempt to turn the ring."""

    TURNED = "turned"
    FRESH = "fresh"  # the segment is neither old nor large
    BUSY = "busy"  # a lock wasn't free at once
    UNREAD = "unread"  # some copy has not read what would be truncated


def turn_ring(
    conn: Connection,
    *,
    age_s: int,
    bytes_max: int,
    dead_s: int,
    outbox_bytes_max: int | None = None,
    anyway: bool = False,
) -> Turn:
    """Let writers write to the next of four segments, and truncate what that one held.

    Args:
        conn: in autocommit: the turn is a transaction of its own.
        age_s: a segment is due after so long; three times that is kept.
        bytes_max: or when it has grown to this.
        dead_s: a copy not seen for so long no longer holds the turn up; it is filled anew.
        outbox_bytes_max: once all segments exceed this, no copy holds a turn up; None: no limit.
        anyway: turn though nothing is due.

    Source: `schema/functions/turn_ring.sql`.
    """
    crashpoint("before_turn")
    row = conn.execute(_TURN, (age_s, bytes_max, dead_s, anyway, outbox_bytes_max)).fetchone()
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
    """What one process does about it, a little at a time; safe beside others."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = Turn.FRESH
        self._held_up_since: float | None = None  # monotonic, in seconds
        self._warn_at = 0.0
        self._prune_at = 0.0

    def keep(self, conn: Connection, meter: Meter) -> float:
        """Turn the ring where that is due, forget a slice of what is too old, and fold populations.

        Args:
            conn: in autocommit.
            meter: told how the turn went.

        Returns:
            In how many seconds to come again.
        """
        turn = turn_ring(
            conn,
            age_s=self._settings.segment_s,
            bytes_max=self._settings.segment_bytes_max,
            dead_s=self._settings.dead_s,
            outbox_bytes_max=self._settings.outbox_bytes_max,
        )
        meter.ring_turned(turn)
        self._tell(turn)
        conn.execute(_SWEEP_RATES)
        conn.execute(_FOLD, (_FOLDED_MAX,))
        if time.monotonic() >= self._prune_at and not prune_events(
            conn, rows_max=self._settings.prune_rows_max
        ):
            self._prune_at = time.monotonic() + _PRUNE_EVERY_S
        return self._settings.heartbeat_ms / 1000

    def _tell(self, turn: Turn) -> None:
        """Log what is new; a turn that is held up for long once more, and as a warning."""
        if turn not in {Turn.FRESH, self._turn}:
            _log().info("ring", turn=turn.value)
        self._turn = turn
        if turn in {Turn.FRESH, Turn.TURNED}:
            self._held_up_since = None
            return
        now, overdue_s = time.monotonic(), self._settings.segment_s * _OVERDUE
        if self._held_up_since is None:
            self._held_up_since, self._warn_at = now, now + overdue_s
        elif now >= self._warn_at:
            self._warn_at = now + overdue_s
            held_up_s = round(now - self._held_up_since)
            _log().warning("ring_held_up", turn=turn.value, for_s=held_up_s)


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log
