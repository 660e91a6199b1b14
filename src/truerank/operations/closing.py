"""Seasons that close, and what they came to."""

from collections.abc import Sequence

from truerank.command import closing
from truerank.model import (
    Board,
    Close,
    Revised,
    Season,
    SettledPlaces,
    Settlement,
    SettlementChanges,
    SettlementExcluded,
)
from truerank.operations.base import Base
from truerank.paging import check_slice
from truerank.read import revisions
from truerank.read.cohorts import InCohort, cohort_season, in_cohort
from truerank.read.season import find_season, told_season
from truerank.steps import Steps

_WAIT_S = 60.0
_DUE_MAX = 100


class Closing(Base):
    """From open to final, and revisions of that."""

    def close_season(
        self,
        board: str,
        season: str,
        *,
        actor: str,
        reason: str = closing.OVER,
        now: bool = False,
        timeout_s: float = _WAIT_S,
        on_waiting: closing.Waiting = lambda _writers: None,
    ) -> Steps[Season]:
        """Close a season: it takes no more events, and its standings become final.

        Safe to repeat, by any number of callers, and after one was killed: a season is settled
        once. On a board with a `hold` it is sealed at first, and settled by a worker, or by the
        next call, when the hold is over; events can be corrected until then.

        Args:
            board: the board's key.
            season: its label.
            actor: who does it, for the audit.
            reason: why, for the audit.
            now: before its end and the board's `late_grace` have passed, and without `hold`.
            timeout_s: how long to wait for transactions that began before, in seconds.
            on_waiting: told who is waited for, several times a second.

        Returns:
            The season as it is now, sealed or final.

        Raises:
            SeasonNotOver: it may not be closed yet.
            SeasonNotBegun: it is yet to begin: not even `now` closes it.
            EarlierSeasonOpen: nor while its league waits for the season before.
            WritersUnderWay: it is sealed, and somebody's transaction stays open. Call again.
            BoardUnknown, SeasonUnknown: there is none.
        """
        found, _ = yield from self._known.board(board)
        yield from closing.close(
            board,
            season,
            actor=actor,
            reason=reason,
            forced=now,
            timeout_s=timeout_s,
            on_waiting=on_waiting,
        )
        self._known.forget(board)
        return (yield from told_season(found, season))

    def close_due(
        self, *, actor: str, limit: int = _DUE_MAX, timeout_s: float = _WAIT_S
    ) -> Steps[list[Close]]:
        """Close what is to be closed by itself now, the oldest first. Workers do this.

        That is: on boards with `auto_close`, seasons that ended since it was switched on and whose
        grace is over; on all boards, sealed seasons whose hold is over. One that was tried and has
        to wait comes after those that were not.

        Args:
            actor: who does it, for the audit.
            limit: at most so many, 1 to 1000.
            timeout_s: how long to wait for transactions that began before, of each season.

        Returns:
            What was met, also where it has to wait: the next call goes on with it.
        """
        check_slice(limit, least=1)
        closes = yield from closing.close_due(
            actor=actor, limit=limit, timeout_s=timeout_s, patient=False
        )
        for each in closes:
            self._known.forget(each.board)
        return closes

    def reopen_season(self, board: str, season: str, *, actor: str, reason: str) -> Steps[bool]:
        """Let a season take events again, sealed or beyond its grace; True where it took none.

        It isn't closed by itself afterwards. A final season stays final: `SeasonFinal`.
        """
        reopened = yield from closing.reopen(board, season, actor=actor, reason=reason)
        self._known.forget(board)
        return reopened

    def revise_season(
        self,
        board: str,
        season: str,
        *,
        actor: str,
        reason: str,
        void: Sequence[str] = (),
        amend: str | None = None,
        value: int | str = 0,
        ties: Sequence[int] = (),
        correction_id: str | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[list[Revised]]:
        """Correct what a final season came to, as another numbered revision.

        Without an event, members' states of today are brought in: who was banned since gives up
        the place. What was settled before stays, under its number. All or nothing.

        Args:
            board: the board's key.
            season: its label.
            actor: who does it, for the audit.
            reason: why; it stands with the revision.
            void: ids of events that are to count no longer.
            amend: or the id of one event that is to count with another value.
            value: that value, in the board's unit.
            ties: its tie-breaks, on boards that have them.
            correction_id: names the amendment for ever.
            timeout_s: how long to try where others are in the way, in seconds.

        Returns:
            The season, then other final seasons in which those events count.

        Raises:
            NotSettled: the season isn't final: correct its events as usual.
            CommandError: an event can't be corrected; `reason` says why.
        """
        amendment = None if amend is None else (amend, value, ties, correction_id or "")
        revised = yield from closing.revise(
            board, season, actor=actor, reason=reason, void=void, amend=amendment,
            timeout_s=timeout_s,
        )  # fmt: skip
        self._known.forget(board)
        return revised

    def settlements(
        self,
        board: str,
        season: str,
        *,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[list[Settlement]]:
        """The revisions of a season's settlement, the newest first; none before it is final.

        Args:
            board: the board's key.
            season: its label.
            cohort: of this cohort of the season alone, by its number: it is settled with the
                season, and its revisions have the same numbers.
            cohort_of: or of the cohort that this member is in.

        Raises:
            NotInCohort: there is no such cohort.
            SeasonFrozen: the public is shown the season as it was, and so none of its cohorts.
        """
        asked = in_cohort(season, cohort, cohort_of)
        _, found = yield from self._found(board, asked, operator=self._known.operator)
        return (yield from revisions.list_settlements(found))

    def settlement_places(
        self,
        board: str,
        season: str,
        revision: int | None = None,
        *,
        limit: int = 1000,
        cursor: str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[SettledPlaces]:
        """The places of a settlement with everybody's own id: for who pays out.

        Args:
            board: the board's key.
            season: its label.
            revision: None: the newest, or that of the cursor.
            limit: 0 to 1000.
            cursor: `next` of the slice before; None: begin with the first place.
            cohort: of this cohort of the season alone, by its number.
            cohort_of: or of the cohort that this member is in.

        Raises:
            NotSettled: there is no such revision; `ready_at` says when the season may be final.
            NotInCohort: there is no such cohort.
            CursorGone: the cursor is of another season, or of another cohort.
        """
        kept, found = yield from self._found(board, in_cohort(season, cohort, cohort_of))
        return (yield from revisions.list_places(kept, found, revision, limit=limit, cursor=cursor))

    def settlement_changes(
        self,
        board: str,
        season: str,
        revision: int | None = None,
        *,
        since: int | None = None,
        limit: int = 1000,
        cursor: str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[SettlementChanges]:
        """In what a revision of a settlement differs from an earlier one.

        Args:
            board: the board's key.
            season: its label.
            revision: None: the newest, or that of the cursor.
            since: the earlier one; None: the one before, or that of the cursor.
            limit: 0 to 1000.
            cursor: `next` of the slice before. Where little differs, slices may be empty: go on
                until there is no next one.
            cohort: as in `settlement_places`.
            cohort_of: as in `settlement_places`.

        Raises:
            NotSettled: there is no such revision; `ready_at` says when the season may be final.
            NotInCohort: there is no such cohort.
            CursorGone: the cursor is of another season, or of another cohort.
        """
        kept, found = yield from self._found(board, in_cohort(season, cohort, cohort_of))
        return (
            yield from revisions.list_changes(
                kept, found, revision, since=since, limit=limit, cursor=cursor
            )
        )

    def settlement_excluded(
        self,
        board: str,
        season: str,
        revision: int | None = None,
        *,
        limit: int = 1000,
        cursor: str | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[SettlementExcluded]:
        """Who had a score and no place in a settlement, and why; in order of ids.

        Args:
            board: the board's key.
            season: its label.
            revision: None: the newest, or that of the cursor.
            limit: 0 to 1000.
            cursor: `next` of the slice before; None: begin with the first id.
            cohort: as in `settlement_places`.
            cohort_of: as in `settlement_places`.

        Raises:
            NotSettled: there is no such revision; `ready_at` says when the season may be final.
            NotInCohort: there is no such cohort.
            CursorGone: the cursor is of another season, or of another cohort.
        """
        kept, found = yield from self._found(board, in_cohort(season, cohort, cohort_of))
        return (
            yield from revisions.list_excluded(kept, found, revision, limit=limit, cursor=cursor)
        )

    def _found(
        self, board: str, asked: str | InCohort | None, *, operator: bool = True
    ) -> Steps[tuple[Board, Season]]:
        # What names everybody by id is for operators anyway.
        found, _ = yield from self._known.board(board)
        if isinstance(asked, InCohort):
            return found, (yield from cohort_season(found, asked, operator=operator))
        return found, (yield from find_season(found, asked))
