"""Freeze a season for the public: copy it as it is at an instant, and show that until revealed."""

import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from truerank.command.attach import who
from truerank.command.board import check_known
from truerank.command.submit import check_text
from truerank.crashpoints import crashpoint
from truerank.errors import Contended, FreezePending, InvalidInput, SeasonUnknown
from truerank.model import Freeze
from truerank.paging import check_slice
from truerank.steps import Pause, Query, Steps

_BEGIN = "SELECT outcome, id, due_at, ids FROM truerank.begin_freeze(%s, %s, %s, %s, %s, %s)"
_WAIT = "SELECT 1 FROM truerank.wait_for_ends()"
_TAKE = "SELECT truerank.take_freeze(%s, %s)"
_LOG = "SELECT truerank.log_frozen(%s, %s)"
_REVEAL = "SELECT truerank.reveal_season(%s, %s, %s, %s, %s)"
_LIST = """
    SELECT board, season, due_at, frozen_at, revealed_at, together, public
    FROM truerank.freezes(%s, %s, %s::integer)"""
_TO_DO = "SELECT id, todo FROM truerank.freezes_to_do()"
_DROP = "SELECT truerank.drop_frozen(%s)"
_TAKE_S_MAX = 600.0
_ROWS_MAX = 5000  # told, or dropped, in one transaction
_INSIST_AFTER = 5  # copies that were in vain; then others wait for it
_PAUSE_S = (0.02, 0.1)
_WORKS_S = 1.0  # for others, before a worker turns to the next


def begin(
    board: str, season: str | None, *, every: bool, at: datetime | None, actor: str, reason: str
) -> Steps[tuple[int, list[int]]]:
    """Say that a season, or every one of now, is to be frozen.

    Returns:
        The freeze, of several one of those that are new, and all that are due now.

    Raises:
        InvalidInput: `at` is naive, or more than a minute ago; or `every` and a season.
        BoardUnknown, SeasonUnknown: there is none.
        Contended: another transaction was at work on the freeze.

    Source: `schema/functions/begin_freeze.sql`.
    """
    _check(board, season, every=every)
    who(actor, reason)
    if at is not None and (not isinstance(at, datetime) or at.utcoffset() is None):
        raise InvalidInput("at needs an offset from UTC", field="at")
    ((outcome, freeze, due_at, ids),) = yield Query(
        _BEGIN, (board, season, at, actor, reason, every)
    )
    _check_found(outcome, board, season)
    due = at is None or due_at <= datetime.now(due_at.tzinfo)
    return freeze, list(ids) if due else []


def take(freeze: int, *, timeout_s: float) -> Steps[bool]:
    """Copy what is to be shown, in one transaction that nobody waits for; False: it isn't due.

    Args:
        freeze: its number.
        timeout_s: how long to wait for others, in seconds. A copy that has begun isn't given up.

    Raises:
        FreezePending: another one copies the season, or takes members away, for so long.

    Source: `schema/functions/wait_for_ends.sql`, `take_freeze.sql`.
    """
    until = (yield Pause(0.0)) + timeout_s
    vain = 0
    while True:
        outcome, why = "busy", "a transaction that takes members away stays open"
        try:
            yield Query(_WAIT)
            why = "another process copies it"
            ((outcome,),) = yield Query(
                _TAKE, (freeze, vain >= _INSIST_AFTER), limit_s=_TAKE_S_MAX, slow=True
            )
        except Contended:
            vain += 1
        if outcome != "busy":
            crashpoint("freeze_taken")
            return bool(outcome != "early")
        if (yield Pause(random.uniform(*_PAUSE_S))) > until:  # noqa: S311 - no secret
            raise FreezePending(f"the season isn't frozen yet: {why}")


def log(freeze: int) -> Steps[bool]:
    """Tell the projection of a slice of the copy; whether that was all of it.

    Source: `schema/functions/log_frozen.sql`.
    """
    ((done,),) = yield Query(_LOG, (freeze, _ROWS_MAX))
    crashpoint("freeze_slice_logged")
    return bool(done)


def reveal(board: str, season: str | None, *, every: bool, actor: str, reason: str) -> Steps[bool]:
    """Show a season, or every one of the board, again as it is; False where none was frozen.

    Raises:
        InvalidInput: `every` and a season.
        BoardUnknown, SeasonUnknown: there is none.
        Contended: another transaction was at work on the freeze.

    Source: `schema/functions/reveal_season.sql`.
    """
    _check(board, season, every=every)
    who(actor, reason)
    ((outcome,),) = yield Query(_REVEAL, (board, season, actor, reason, every))
    _check_found(outcome, board, season)
    return bool(outcome == "revealed")


def list_freezes(
    board: str | None, *, freeze: int | None = None, limit: int = 100
) -> Steps[list[Freeze]]:
    """Which seasons are frozen, or were, latest first; or the one freeze of this number.

    Raises:
        InvalidInput: the board's key is no text that PostgreSQL can store.

    Source: `schema/functions/freezes.sql`.
    """
    if board is not None:
        check_text(board, "board")
    check_slice(limit)
    rows: Sequence[tuple[Any, ...]] = yield Query(_LIST, (board, freeze, limit))
    return [
        Freeze(
            board=key,
            season=season,
            due_at=due_at,
            frozen_at=frozen_at,
            revealed_at=revealed,
            together=tuple(together),
            public=tuple(public),
        )
        for key, season, due_at, frozen_at, revealed, together, public in rows
    ]


def work() -> Steps[bool]:
    """Do a piece of what is due: take, tell, or drop a copy; whether there may be more at once.

    Source: `schema/functions/freezes_to_do.sql`, `drop_frozen.sql`.
    """
    more = False
    for freeze, todo in (yield Query(_TO_DO)):
        if todo == "drop":
            ((dropped,),) = yield Query(_DROP, (_ROWS_MAX,))
            more = more or dropped > 0
            continue
        if todo == "take":
            with suppress(FreezePending):  # it has its turn again
                yield from take(freeze, timeout_s=_WORKS_S)
        more = not (yield from log(freeze)) or more
    return more


def _check(board: str, season: str | None, *, every: bool) -> None:
    check_text(board, "board")
    if every and season is not None:
        raise InvalidInput("a season, or every one, and not both", field="every")
    if season is not None:
        check_text(season, "season")


def _check_found(outcome: str, board: str, season: str | None) -> None:
    check_known(outcome, board)
    if outcome == "season_unknown":
        named = "season that runs now" if season is None else f"season {season!r}"
        raise SeasonUnknown(f"board {board!r} has no {named}", field="season")
