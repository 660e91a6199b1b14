"""Named points where a process can be made to die, as by a power cut: between any two effects.

TRUERANK_CRASH_AT=after_apply:3 lets a process kill itself the third time it comes by that point;
TRUERANK_CRASH_AT=after_apply:3:STOP lets it stand still there until somebody lets it go on.
Without the variable a point costs a call that returns at once.
"""

import os
import signal
import threading
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Final

VARIABLE: Final = "TRUERANK_CRASH_AT"

# Every point, and what is done and not yet done there.
CRASH_POINTS: Final = (
    # The worker, in the order of one step.
    ("leases_renewed", "groups are leased, and nothing of them was read"),
    ("before_begin", "a group has no copy, and none was begun"),
    ("generation_listed", "PostgreSQL lists a copy that isn't in Redis yet"),
    ("generation_begun", "a copy was begun, and nothing is in it"),
    ("before_tick", "no tick was taken"),
    ("after_tick", "a tick is committed, and nothing refers to it"),
    ("batch_read", "a batch is in memory, and nothing of it in Redis"),
    ("before_apply", "the next calls of a batch are made, and not sent"),
    ("after_apply", "calls were carried out, and their replies not looked at"),
    ("between_calls", "the first calls of a batch were carried out, the rest not sent"),
    ("after_cursor", "a batch is applied with its cursor, and its rankings aren't listed"),
    ("chunk_read", "a chunk of a scan is in memory, and no tick covers it"),
    ("chunk_covered", "a tick covers a chunk that isn't in Redis yet"),
    ("chunk_applied", "a chunk is in Redis, and the reply not looked at"),
    ("scan_done", "everything was scanned, and the log has yet to pass it"),
    ("copy_proven", "a copy was compared with the source, and readers read another or none"),
    ("former_retired", "the way back is over, and the copy's rankings are still there"),
    ("before_switch", "a copy is whole, and readers read another or none"),
    ("after_switch", "readers read the new copy, and PostgreSQL doesn't know"),
    ("switch_noted", "PostgreSQL knows of a switch, and the copy before is still there"),
    ("meta_retired", "a copy without meta, whose rankings are all there"),
    ("between_slices", "a copy without meta, and without some of its rankings"),
    ("generation_retired", "a copy is gone that PostgreSQL still lists"),
    ("before_turn", "a heartbeat is over, and the ring not looked at"),
    ("after_turn", "the ring was turned where that was due"),
    ("before_release", "told to stop, and all leases held"),
    ("after_release", "all leases let go"),
    # Whoever writes.
    ("before_submit", "events were checked, and nothing sent"),
    ("submit_executed", "events are in the caller's transaction, which is open"),
    ("after_submit", "events are committed, and the caller doesn't know"),
    ("before_flush", "requests are gathered, and nothing sent"),
    ("after_flush", "gathered requests are committed, and none was answered"),
    ("backfill_slice", "a slice of an attached table is taken in, more may follow"),
    ("import_slice", "a slice of a file is taken in, more may follow"),
    ("purge_slice", "a slice of a deleted board is gone, more may follow"),
    ("fill_slice", "new seasons are computed for a slice of members, more may follow"),
    # Whoever closes a season.
    ("season_sealed", "a season takes no more events, and writers may be under way"),
    ("barrier_passed", "no writer of a sealed season is left, and nothing was settled"),
    ("season_settled", "a season is final, and the closer doesn't know"),
    # Whoever freezes a season, or erases members.
    ("freeze_taken", "the copy of a frozen season is made, and nothing of it projected"),
    ("freeze_slice_logged", "a slice of the copy is in the outbox, more may follow"),
    ("erasures_swept", "what late transactions brought of an erased member is gone"),
    ("group_purged", "a group names an erased member no more, and PostgreSQL doesn't know"),
    # Whoever delivers by webhook.
    ("delivery_claimed", "deliveries are leased, and nothing was sent"),
    ("delivery_sent", "a receiver has answered, and PostgreSQL doesn't know"),
    # Whoever owns embedded engines.
    ("engine_started", "Valkey starts, PostgreSQL does not yet, and nobody was told"),
    ("engines_started", "both engines run, and nobody was told"),
)


def crashpoint(name: str) -> None:
    """Die here, or stand still, where the environment of this process says so."""
    armed = _armed()
    if armed is not None:
        armed.pass_by(name)


class _Armed:
    """The one point at which this process is to end.

    Args:
        text: name, number of the passage, and the signal, which is KILL where none is given.

    Raises:
        ValueError: there is no such point, number or signal.
    """

    def __init__(self, text: str) -> None:
        self._name, _, rest = text.partition(":")
        number, _, kind = rest.partition(":")
        if self._name not in dict(CRASH_POINTS):
            raise ValueError(f"{VARIABLE}={text}: there is no such point")
        self._signal = signal.Signals[f"SIG{kind or 'KILL'}"]
        self._fatal = int(number or 1)
        self._passages: Iterator[int] = count(1)

    def pass_by(self, name: str) -> None:
        """Send this process the signal at the passage that was named."""
        if name == self._name and next(self._passages) == self._fatal:
            # To this thread: a signal to the process may be taken by another one, later.
            signal.pthread_kill(threading.get_ident(), self._signal)


@cache
def _armed() -> _Armed | None:
    text = os.environ.get(VARIABLE)
    return _Armed(text) if text else None
