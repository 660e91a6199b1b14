"""Turn the ring of segments, so that the outbox is never deleted from and never grows for ever."""

from enum import StrEnum

from truerank.outbox.ticks import Connection

_TURN = "SELECT truerank.turn_ring(%s, %s, %s, %s)"


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
    row = conn.execute(_TURN, (age_s, bytes_max, dead_s, anyway)).fetchone()
    assert row is not None, "the function returns one row"
    return Turn(row[0])
