"""Wait until the projection shows a write."""

import time
from collections.abc import Iterable

from truerank.errors import InvalidInput, NotVisibleYet, ProjectionUnavailable
from truerank.model import Token
from truerank.outbox.snapshot import Snapshot
from truerank.projection.keys import GroupKeys
from truerank.steps import Get, HashGet, Pause, Steps

_PAUSE_S = 0.01


def transaction_of(token: Token) -> int:
    """The transaction id in a token.

    Raises:
        InvalidInput: the text is no token.
    """
    xid, dot, _ = token.partition(".")
    if not dot or not xid.isascii() or not xid.isdigit():
        raise InvalidInput("this is no token", field="token")
    return int(xid)


def wait_visible(
    groups: Iterable[int], token: Token, *, prefix: str, timeout_s: float
) -> Steps[None]:
    """Wait until every group's live copy shows the transaction of a token.

    Raises:
        NotVisibleYet: it took longer than `timeout_s` seconds. The write is committed.
        InvalidInput: the text is no token.
    """
    xid = transaction_of(token)
    waiting = set(groups)
    deadline = time.monotonic() + timeout_s
    while True:
        for group in sorted(waiting):
            try:
                shown = yield from _snapshot(GroupKeys(prefix, group))
            except (ProjectionUnavailable, ValueError):
                shown = None  # away, or a copy that makes no sense and is filled anew
            if shown is not None and shown.shows(xid):
                waiting.discard(group)
        if not waiting:
            return
        if (yield Pause(_PAUSE_S)) > deadline:
            raise NotVisibleYet(
                f"the projection does not show the write after {timeout_s:g} s; is a worker up?"
            )


def _snapshot(keys: GroupKeys) -> Steps[Snapshot | None]:
    generation = yield Get(keys.pointer)
    if not generation:
        return None
    meta = keys.generation(generation.decode()).meta
    snapshot, pending = yield HashGet(meta, ("snapshot", "pending"))
    return Snapshot.parse(snapshot.decode()) if snapshot and pending is not None else None
