"""Close a season: seal it, let its last writers end, settle it; and correct what was settled.

Each of the three is a transaction of its own that may be repeated, by any number of closers. One
that is killed leaves the rest to whoever closes next.
"""

import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from truerank.command.attach import who
from truerank.command.board import check_known
from truerank.command.submit import check_text, to_number
from truerank.crashpoints import crashpoint
from truerank.errors import (
    BoardUnknown,
    CommandError,
    Contended,
    EarlierSeasonOpen,
    InvalidInput,
    NotSettled,
    SeasonFinal,
    SeasonNotBegun,
    SeasonNotOver,
    SeasonUnknown,
    WritersUnderWay,
)
from truerank.model import Close, Revised, Writer
from truerank.steps import Pause, Query, Steps

Waiting = Callable[[Sequence[Writer]], None]

_SEAL = "SELECT outcome, at FROM truerank.seal_season(%s, %s, %s, %s, %s)"
_BARRIER = "SELECT truerank.pass_barrier(%s, %s)"
_WRITERS = "SELECT pid, name, state, age_ms FROM truerank.writers_under_way(%s, %s)"
_SETTLE = "SELECT outcome, at FROM truerank.settle_season(%s, %s, %s, %s)"
_REOPEN = "SELECT truerank.reopen_season(%s, %s, %s, %s)"
_REVISE = """
    SELECT outcome, season, revision, changed, event_id
    FROM truerank.revise_season(
        %s, %s, %s::text[], %s::text[], %s::numeric[], %s::bigint[], %s, %s)"""
_KNOW = "SELECT truerank.know_settlement(%s, %s)"
_SWEEP = "SELECT truerank.sweep_members(100)"
_BEFORE = "SELECT truerank.label_before(%s, %s)"
_DIVIDE = "SELECT truerank.divide_season(%s, %s, 500)"
_DUE = "SELECT board, season FROM truerank.due_closes(%s::integer, %s)"
_TRY = "SELECT truerank.try_close(%s, %s)"
_FORGET_TRIES = "SELECT truerank.forget_attempts(%s, %s)"
_SETTLE_S_MAX = 600.0
_KNOW_S_MAX = 60.0
_PAUSE_S = (0.02, 0.1)
OVER = "the season is over"


def close(
    board: str,
    season: str,
    *,
    actor: str,
    reason: str,
    forced: bool,
    timeout_s: float,
    on_waiting: Waiting,
) -> Steps[None]:
    """Seal a season, wait for its last writers, and settle it unless it is held back.

    Args:
        board: the board's key.
        season: its label.
        actor: who does it.
        reason: why.
        forced: before its grace is over, and without the board's hold.
        timeout_s: how long to wait for open transactions, in seconds.
        on_waiting: told, now and again, who is waited for.

    Raises:
        BoardUnknown, SeasonUnknown: there is none.
        SeasonNotOver: it may not be closed yet.
        SeasonNotBegun: nor by force: it is yet to begin.
        EarlierSeasonOpen: nor by force: its league waits for the season before.
        WritersUnderWay: transactions that began before the seal are open still.
        Contended: others were in the way for so long, while they closed it, for one.

    Source: `schema/functions/seal_season.sql`, `pass_barrier.sql`, `settle_season.sql`.
    """
    check_text(board, "board")
    check_text(season, "season")
    who(actor, reason)
    deadline = time.monotonic() + timeout_s
    while True:
        outcome, at = yield from _patiently(
            Query(_SEAL, (board, season, forced, actor, reason)), deadline
        )
        _check_found(outcome, board, season)
        if outcome == "too_early":
            raise _too_early(board, season, at)
        if outcome == "not_begun":
            raise _not_begun(board, season, at)
        if outcome == "earlier_open":
            yield from _check_before(board, season)
            if (yield Pause(_pause_s())) > deadline:  # it has just been settled
                raise Contended("the season before has just been settled; close it again")
            continue
        if outcome == "final":
            return
        crashpoint("season_sealed")
        yield from _wait_for_writers(board, season, deadline, on_waiting)
        crashpoint("barrier_passed")
        if (yield from _settle(board, season, actor, reason, deadline)):
            return


def _wait_for_writers(board: str, season: str, deadline: float, on_waiting: Waiting) -> Steps[None]:
    while True:
        ((outcome,),) = yield Query(_BARRIER, (board, season))
        _check_found(outcome, board, season)
        if outcome != "waiting":
            return
        writers = yield from _writers(board, season)
        on_waiting(writers)
        if (yield Pause(_pause_s())) > deadline:
            raise WritersUnderWay(
                f"season {season!r} of board {board!r} is sealed, and waits for "
                f"{_described(writers)}"
            )


def _settle(board: str, season: str, actor: str, reason: str, deadline: float) -> Steps[bool]:
    """Settle a season; False where it must be sealed again first: somebody opened it."""
    settle = Query(_SETTLE, (board, season, actor, reason), _SETTLE_S_MAX, snapshot=True)
    while True:
        outcome, _ = yield from _patiently(settle, deadline)
        _check_found(outcome, board, season)
        if outcome == "settled":
            crashpoint("season_settled")
            yield Query(_KNOW, (board, season), _KNOW_S_MAX, slow=True)
        if outcome == "earlier_open":
            yield from _check_before(board, season)
        elif outcome == "dividing":
            yield from _divide(board, season, deadline)
        elif outcome != "merging":
            return outcome in {"settled", "final", "held"}
        else:
            yield from _complete_merge(deadline)


def _divide(board: str, season: str, deadline: float) -> Steps[None]:
    """Put who is left into cohorts, so that all of them are settled with the season."""
    while True:
        (outcome,) = yield from _patiently(Query(_DIVIDE, (board, season)), deadline)
        _check_found(outcome, board, season)
        if outcome in {"divided", "earlier_open"}:
            return
        if outcome == "waiting" and (yield Pause(_pause_s())) > deadline:
            raise Contended("members are being divided into cohorts; transactions are in the way")


def _complete_merge(deadline: float) -> Steps[None]:
    # Where no worker runs nobody else does it.
    yield Query(_SWEEP)
    if (yield Pause(_pause_s())) > deadline:
        raise Contended("two members are being made one; transactions of before are open")


def reopen(board: str, season: str, *, actor: str, reason: str) -> Steps[bool]:
    """Let a season take events again, until somebody closes it; True where it took none before.

    That is, where it was sealed, or over for longer than the board's grace.

    Raises:
        SeasonFinal: it is settled.
        BoardUnknown, SeasonUnknown: there is none.

    Source: `schema/functions/reopen_season.sql`.
    """
    check_text(board, "board")
    check_text(season, "season")
    ((outcome,),) = yield Query(_REOPEN, (board, season, *who(actor, reason)))
    _check_found(outcome, board, season)
    if outcome == "season_final":
        raise SeasonFinal(f"season {season!r} is final", field="season")
    return bool(outcome == "reopened")


def revise(
    board: str,
    season: str,
    *,
    actor: str,
    reason: str,
    void: Sequence[str] = (),
    amend: tuple[str, int | str, Sequence[int], str] | None = None,
    timeout_s: float,
) -> Steps[list[Revised]]:
    """Correct events of a final season, or bring members' states of today in.

    Args:
        board: the board's key.
        season: its label; it comes first in the answer.
        actor: who does it.
        reason: why.
        void: ids of events that are to count no longer.
        amend: or an event's id, its new value and tie-breaks, and the id of the amendment.
        timeout_s: how long to try where others are in the way, in seconds.

    Raises:
        NotSettled: the season isn't final: correct the event as usual.
        CommandError: an event can't be corrected; `reason` says why. Nothing was changed.
        BoardUnknown, SeasonUnknown: there is none.
        Contended: others were in the way for so long.

    Source: `schema/functions/revise_season.sql`.
    """
    check_text(board, "board")
    check_text(season, "season")
    actor, reason = who(actor, reason)
    if void and amend is not None:
        raise InvalidInput("void events or amend one, not both at once", field="void")
    events: list[str] = list(void)
    values = corrections = ties = None
    if amend is not None:
        event_id, value, new_ties, correction_id = amend
        events, values, corrections = [event_id], [to_number(value)], [correction_id]
        ties = list(new_ties) or None
    for text in (*events, *(corrections or ())):
        check_text(text, "event_id")
    revision = Query(
        _REVISE,
        (board, season, events, corrections, values, ties, actor, reason),
        _SETTLE_S_MAX,
        snapshot=True,
    )
    deadline = time.monotonic() + timeout_s
    while True:
        rows = yield from _rows_patiently(revision, deadline)
        outcome, *_, event_id_refused = rows[0]
        if outcome != "merging":
            break
        yield from _complete_merge(deadline)
    _check_found(outcome, board, season)
    if outcome == "not_final":
        raise NotSettled(f"season {season!r} of board {board!r} isn't final: nothing to revise")
    if outcome not in {"revised", "same"}:
        raise CommandError(
            f"event {event_id_refused!r} can't be corrected: {outcome}",
            code=outcome,
            field="event_id",
        )
    if outcome == "revised":
        yield Query(_KNOW, (board, season), _KNOW_S_MAX, slow=True)
    return [
        Revised(season=label, revision=number, changed=changed if what == "revised" else 0)
        for what, label, number, changed, _ in rows
    ]


def close_due(*, actor: str, limit: int, timeout_s: float, patient: bool) -> Steps[list[Close]]:
    """Close what is to be closed by itself now; see `Closing.close_due`.

    Each season is noted as tried before it is, so that one that fails, whatever becomes of who
    tried, doesn't come first again.

    Args:
        actor: who does it.
        limit: at most so many.
        timeout_s: how long to wait for open transactions, of each season.
        patient: leave those alone whose next try is yet to come.

    Source: `schema/functions/due_closes.sql`, `try_close.sql`.
    """
    rows: list[tuple[str, str]] = yield Query(_DUE, (limit, not patient))
    closes = []
    for board, season in rows:
        ((again_s,),) = yield Query(_TRY, (board, season))
        if again_s is None:
            continue  # by now it isn't there
        waits = None
        try:
            yield from close(
                board,
                season,
                actor=actor,
                reason=OVER,
                forced=False,
                timeout_s=timeout_s,
                on_waiting=_nothing,
            )
        except (WritersUnderWay, Contended, EarlierSeasonOpen) as exc:
            waits = exc.message
        except (BoardUnknown, SeasonUnknown, SeasonNotOver):
            continue  # by now: its rules were changed
        else:
            yield Query(_FORGET_TRIES, (board, season))
        closes.append(
            Close(
                board=board,
                season=season,
                waits=waits,
                again_s=None if waits is None else again_s,
            )
        )
    return closes


def _nothing(_writers: Sequence[Writer]) -> None:
    pass


def _writers(board: str, season: str) -> Steps[list[Writer]]:
    rows = yield Query(_WRITERS, (board, season))
    return [
        Writer(pid=pid, name=name, state=state, age_ms=age_ms) for pid, name, state, age_ms in rows
    ]


def _patiently(query: Query, deadline: float) -> Steps[tuple[Any, ...]]:
    """The one row of a statement, which is tried again while others are in the way."""
    (row,) = yield from _rows_patiently(query, deadline)
    return row


def _rows_patiently(query: Query, deadline: float) -> Steps[list[tuple[Any, ...]]]:
    while True:
        try:
            rows: list[tuple[Any, ...]] = yield query
        except Contended:
            if (yield Pause(_pause_s())) > deadline:
                raise
        else:
            return rows


def _pause_s() -> float:
    return random.uniform(*_PAUSE_S)  # noqa: S311 - no secret


def _check_found(outcome: str, board: str, season: str) -> None:
    check_known(outcome, board)
    if outcome == "season_unknown":
        raise SeasonUnknown(f"board {board!r} has no season {season!r}", field="season")


def _too_early(board: str, season: str, at: datetime | None) -> SeasonNotOver:
    when = "it has no end" if at is None else f"not before {at.isoformat()}"
    return SeasonNotOver(
        f"season {season!r} of board {board!r} can't be closed: {when}", ready_at=at
    )


def _not_begun(board: str, season: str, at: datetime | None) -> SeasonNotBegun:
    assert at is not None, "what has no beginning has begun"
    return SeasonNotBegun(
        f"season {season!r} of board {board!r} begins at {at.isoformat()}", field="season"
    )


def _check_before(board: str, season: str) -> Steps[None]:
    rows = yield Query(_BEFORE, (board, season))
    if rows and rows[0][0] is not None:
        raise EarlierSeasonOpen(
            f"season {season!r} of board {board!r} waits for season {rows[0][0]!r}, whose "
            "settlement decides the tiers of its league",
            field="season",
        )


def _described(writers: Sequence[Writer]) -> str:
    told = [
        f"{writer.name or 'a transaction'} (pid {writer.pid}, open for "
        f"{(writer.age_ms or 0) / 1000:.1f} s)"
        for writer in writers
    ]
    return ", ".join(told) or "a transaction that has just ended"
