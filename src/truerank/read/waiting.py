"""Wait until the projection shows a write."""

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator

from truerank.errors import (
    Busy,
    DatabaseUnavailable,
    EpochChanged,
    NotCommittedYet,
    NotVisibleYet,
    ProjectionUnavailable,
)
from truerank.model import Token
from truerank.outbox.snapshot import Snapshot
from truerank.projection.keys import GroupKeys
from truerank.read import tokens
from truerank.read.tokens import Seen
from truerank.steps import Get, HashGet, Pause, Query, Steps, hurried

_LATE_S = 0.001
_AWAY_S = 5.0  # PostgreSQL did not answer: so long it isn't asked again
_HURRY_S = 2.0  # for what is looked at beside, where the server stands still
_EPOCH = "SELECT truerank.source_epoch()"
_STILL_OPEN = "SELECT truerank.still_open(%s::xid8, %s)"
_PAUSE_S, _PAUSE_S_MAX, _PAUSE_GROWTH = 0.01, 0.1, 1.5


def pauses(deadline: float, *, jitter: Callable[[], float] = random.random) -> Iterator[Pause]:
    """Pauses between two looks, ever longer and jittered: many may wait for the same.

    Args:
        deadline: monotonic, in seconds; none ends later than a moment after it.
        jitter: a number from 0 to 1; a pause is cut by up to half.
    """
    pause_s = _PAUSE_S
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        yield Pause(min(pause_s * (1 - jitter() / 2), left_s + _LATE_S))
        pause_s = min(pause_s * _PAUSE_GROWTH, _PAUSE_S_MAX)


def wait_visible(
    groups: Iterable[int], token: Token, *, prefix: str, timeout_s: float
) -> Steps[None]:
    """Wait until every group's live copy shows what a token stands for.

    Raises:
        NotVisibleYet: it took longer than `timeout_s` seconds. The write is committed, unless
            PostgreSQL was away and couldn't tell.
        NotCommittedYet: it isn't committed: it was not waited for.
        EpochChanged: PostgreSQL went backwards since the token was given.
        InvalidInput: the text is no token.
    """
    seen = tokens.parse(token)
    waiting = set(groups)
    deadline = time.monotonic() + timeout_s
    looks = pauses(deadline)
    suspected, unchecked = False, True
    asks_from = -math.inf
    while True:
        for group in sorted(waiting):
            try:
                shown, lives, epoch = yield from _shown(GroupKeys(prefix, group))
            except (ProjectionUnavailable, ValueError):
                continue  # away, or a copy that makes no sense and is filled anew
            if tokens.is_past(epoch, seen):
                suspected = True  # of the copy or of the token: the source knows
            elif tokens.can_tell(lives, seen) and seen.shown_by(shown):
                waiting.discard(group)
        if not waiting:
            return
        if unchecked:
            # A wait for a transaction that is still open would be in vain.
            asks_from = yield from _told(check_committed(seen))
            unchecked = False
        late = (yield next(looks)) > deadline
        if (suspected or late) and time.monotonic() >= asks_from:
            asks_from = yield from _told(check_epoch(seen))
            suspected = False
        if late:
            raise NotVisibleYet(
                f"the projection does not show the write after {timeout_s:g} s; is a worker up?"
            )


def _told(check: Steps[None]) -> Steps[float]:
    """Have PostgreSQL asked; the monotonic time, in seconds, from which to ask it again."""
    try:
        yield from hurried(check, _HURRY_S)
    except (Busy, DatabaseUnavailable):
        return time.monotonic() + _AWAY_S
    return -math.inf


def _shown(keys: GroupKeys) -> Steps[tuple[Snapshot, str, str]]:
    generation = yield Get(keys.pointer)
    if not generation:
        raise ProjectionUnavailable("no copy in Redis")
    meta = keys.generation(generation.decode()).meta
    snapshot, pending, lives, epoch = yield HashGet(meta, ("snapshot", "pending", "lives", "epoch"))
    if not snapshot or pending is None or not epoch:
        raise ProjectionUnavailable("the copy in Redis has no meta")
    return Snapshot.parse(snapshot.decode()), (lives or b"").decode(), epoch.decode()


def check_epoch(seen: Seen) -> Steps[None]:
    """Whether a token is of the source's epoch.

    Raises:
        EpochChanged: PostgreSQL went backwards since the token was given.
        DatabaseUnavailable: PostgreSQL doesn't answer.

    Source: `schema/functions/source_epoch.sql`.
    """
    ((epoch,),) = yield Query(_EPOCH)
    if tokens.is_past(epoch.hex, seen):
        raise EpochChanged("the source went backwards since this token was given")


def check_committed(seen: Seen) -> Steps[None]:
    """Whether there is something to wait for: a transaction that is still open is not.

    Nor is one that never began, nor a snapshot that no reader of this server can have been given:
    the last transaction before its end had ended then.

    Raises:
        NotCommittedYet: the token's transaction hasn't ended, so nobody but itself may see it.
        DatabaseUnavailable: PostgreSQL doesn't answer.

    Source: `schema/functions/still_open.sql`.
    """
    last = max(0, seen.before - 1)
    ((still_open,),) = yield Query(_STILL_OPEN, (str(last), seen.incarnation))
    if still_open:
        raise NotCommittedYet("what the token stands for isn't committed yet")
