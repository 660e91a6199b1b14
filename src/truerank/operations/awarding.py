"""Who gets what of settled seasons."""

from collections.abc import Sequence

from truerank.command import awards
from truerank.errors import InvalidInput
from truerank.model import Award, AwardRule
from truerank.operations.base import Base, retried
from truerank.paging import check_slice, check_whole
from truerank.read.cohorts import InCohort, find_cohort, in_cohort
from truerank.read.season import find_season
from truerank.read.settled import not_settled
from truerank.steps import Steps


class Awarding(Base):
    """Rules, awards, and what was dealt with."""

    def make_award_rule(
        self, board: str, rule: AwardRule, *, actor: str, reason: str
    ) -> Steps[bool]:
        """Say who gets an award of a board's seasons of one period; True where the rule is new.

        It holds for seasons that are settled from now on. To change it, drop it and make another.

        Raises:
            InvalidInput: it makes no sense, or another one of this period has its name.
            BoardUnknown: no board has this key.
        """
        return (yield from awards.make_rule(board, rule, actor=actor, reason=reason))

    def drop_award_rule(
        self, board: str, period: str, name: str, *, actor: str, reason: str
    ) -> Steps[None]:
        """Let a rule hold no longer for seasons that are settled from now on; what it gave stays.

        Raises:
            InvalidInput: there is no such rule.
        """
        yield from awards.drop_rule(board, period, name, actor=actor, reason=reason)

    def award_rules(self, board: str) -> Steps[list[AwardRule]]:
        """The rules of a board, by period and name."""
        found, _ = yield from self._known.board(board)
        return (yield from awards.list_rules(found.id))

    def awards(
        self,
        board: str | None = None,
        season: str | None = None,
        *,
        after: int = 0,
        limit: int = 1000,
        unacknowledged: bool = False,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Steps[list[Award]]:
        """What members got, in the order in which it was given or withdrawn.

        Read on with the `change` of the last one: none is missed, and one that a revision changes
        comes again, with the same `id`. With everybody's own id: this is for who pays out. To pay
        nothing twice, pay where `state` is given and `acknowledged_state` isn't, and take back
        where `state` is withdrawn and `acknowledged_state` is given.

        Args:
            board: None: of all boards.
            season: a label; None: of all final seasons.
            after: a change.
            limit: 0 to 1000.
            unacknowledged: only those that weren't dealt with since they changed.
            cohort: only those of members of this cohort of the season, by its number.
            cohort_of: or of the cohort that this member is in.

        Raises:
            InvalidInput: a season without its board, a cohort without its season, or numbers out
                of range.
            NotSettled: the season isn't final; `ready_at` says when that may be.
            NotInCohort: there is no such cohort.
        """
        check_slice(limit)
        check_whole("after", after)
        if board is None and season is not None:
            raise InvalidInput("a season is named with its board", field="board")
        asked = in_cohort(season, cohort, cohort_of)
        if season is None and asked is not None:
            raise InvalidInput("a cohort is named with its season", field="season")
        ranking = board_id = within = None
        if board is not None:
            found, _ = yield from self._known.board(board)
            board_id = found.id
            if season is not None:
                named = yield from find_season(found, season)
                if named.state != "final":
                    raise (yield from not_settled(found, named))
                ranking = named.ranking
            if isinstance(asked, InCohort):
                within = (yield from find_cohort(found, asked, operator=True)).ranking
        return (
            yield from awards.list_awards(
                board_id,
                ranking,
                cohort=within,
                after=after,
                limit=limit,
                unacknowledged=unacknowledged,
            )
        )

    def acknowledge_awards(self, changes: Sequence[int], *, actor: str) -> Steps[int]:
        """Note that awards were dealt with, by their changes; safe to repeat.

        Of one that a revision has changed since, what it was is noted as dealt with, and what it is
        now stays open. Returns how many there are of these changes.
        """
        return (yield from retried(lambda: awards.acknowledge(changes, actor=actor)))
