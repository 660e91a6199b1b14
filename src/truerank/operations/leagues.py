"""Leagues: cohorts of a season's members, and the tiers they move between."""

from truerank.command import leagues
from truerank.command.submit import check_member
from truerank.errors import NotInCohort
from truerank.model import (
    Cohort,
    Consistency,
    League,
    LeaguePlace,
    LeagueRule,
    Listed,
    Numbering,
    PageRequest,
    Source,
    TierMember,
)
from truerank.operations.base import Base
from truerank.operations.choosing import consistency_named, source_named
from truerank.read.answers import ANY
from truerank.read.cohorts import (
    InCohort,
    cohorts_frozen,
    find_cohort,
    list_cohorts,
    list_tiers,
)
from truerank.read.season import fresh_from_now
from truerank.steps import Steps


class Leagues(Base):
    """How seasons are divided, and where members are."""

    def set_league(
        self,
        board: str,
        rule: LeagueRule,
        *,
        from_season: str | None = None,
        actor: str,
        reason: str,
    ) -> Steps[bool]:
        """Let seasons of a period be divided into cohorts; True where anything changed.

        Workers divide: who scores in a season for the first time is in a cohort within a second,
        and nobody who submits waits for that. Members of a season that is under way are divided as
        well, in the order of their first events. Of several tiers, those of a season decide who is
        where in the next: it isn't divided before the one before it is closed.

        Args:
            board: the board's key.
            rule: how. Of one that is changed, another size holds for cohorts that are made from
                now on, and all else for seasons that are settled from now on.
            from_season: the label of the first season that is divided; None: the current one, or
                of a league that is there, its own.
            actor: who does it, for the audit.
            reason: why, for the audit.

        Raises:
            InvalidInput: the rule makes no sense.
            BoardUnknown, SeasonUnknown: there is none.
            Contended: others hold the board's settings.
        """
        return (
            yield from leagues.set_league(
                board, rule, from_season=from_season, actor=actor, reason=reason
            )
        )

    def drop_league(self, board: str, period: str, *, actor: str, reason: str) -> Steps[None]:
        """Divide no more members of these seasons, and move none; cohorts that are there go on.

        Raises:
            InvalidInput: there is no such league.
        """
        yield from leagues.drop_league(board, period, actor=actor, reason=reason)

    def leagues(self, board: str | None = None) -> Steps[list[League]]:
        """The leagues of one board or of all, and how far members have been divided."""
        return (yield from leagues.list_leagues(board))

    def assign_league_key(self, board: str, member: str, key: str | None) -> Steps[bool]:
        """Say with whom a member is to share cohorts; True where that is new.

        It holds for cohorts into which the member is put from now on, where the league divides by
        key. Members without a key are together.

        Args:
            board: the board's key.
            member: whose.
            key: 1 to 100 characters; None: the member has none any more.
        """
        return (yield from leagues.assign_key(board, member, key))

    def divide_members(self, members_max: int = 500) -> Steps[int]:
        """Put some waiting members into cohorts; 0 where nothing is to be done. Workers do this.

        Args:
            members_max: no more are divided in this call.
        """
        return (yield from leagues.divide(members_max))

    def cohorts(
        self, board: str, season: str | None = None, *, after: int = 0, limit: int = 1000
    ) -> Steps[Listed[Cohort]]:
        """The cohorts of a season in order of their numbers: a list with `freshness` and `season`.

        Args:
            board: the board's key.
            season: as in `top`.
            after: only those with higher numbers.
            limit: 0 to 1000.

        Raises:
            SeasonFrozen: the public is shown the season as it was.
        """
        found, _ = yield from self._known.board(board)
        shown = yield from self._known.shown(found, season, anew=True)
        if shown.frozen_at is not None:
            raise cohorts_frozen(shown.label)
        freshness = yield from fresh_from_now()
        rows = yield from list_cohorts(found, shown.label, after=after, limit=limit)
        return Listed(rows, freshness, shown)

    def league_tiers(
        self, board: str, period: str, *, after: str = "", limit: int = 1000
    ) -> Steps[list[TierMember]]:
        """Who is in another tier than the lowest, in order of ids; with everybody's own id.

        Args:
            board: the board's key.
            period: of the league.
            after: only ids after this one.
            limit: 0 to 1000.
        """
        leagues.check_period(period)
        found, _ = yield from self._known.board(board)
        return (yield from list_tiers(found, period, after=after, limit=limit))

    def league_place(
        self,
        board: str,
        member: str,
        season: str | None = None,
        *,
        consistency: Consistency | str = ANY,
        source: Source | str | None = None,
    ) -> Steps[LeaguePlace]:
        """A member's own view of a league: its cohort, its tier, and what its place comes to.

        Args:
            board: the board's key.
            member: whose.
            season: as in `top`.
            consistency: as in `top`.
            source: as in `top`.

        Returns:
            `cohort` is None where the member is in none, or in none yet; and, but for operators,
            where it is hidden, banned or deleted.

        Raises:
            SeasonFrozen: the public is shown the season as it was.
        """
        needed, insisted = consistency_named(consistency), source_named(source)
        found, _ = yield from self._known.board(board)
        check_member(member)
        asked = InCohort(season, None, member)
        try:
            cohort = yield from find_cohort(found, asked, operator=self._known.operator)
        except NotInCohort:
            freshness = yield from fresh_from_now()
            label = (yield from self._known.season(found, season)).label
            return LeaguePlace(board=board, season=label, member=member, freshness=freshness)
        request = PageRequest(members=(member,), numbering=Numbering.ORDINAL)
        page = yield from self._answers.page(
            board,
            InCohort(cohort.season, cohort.number, None),
            request,
            consistency=needed,
            source=insisted,
        )
        (place,) = page.places
        zone = None
        if page.state == "final":
            zone = cohort.settled_zone()
        elif place.rank is not None:
            zone = cohort.zone(place.rank, page.total)
        return LeaguePlace(
            board=board,
            season=cohort.season,
            member=member,
            cohort=cohort.number,
            tier=cohort.tier,
            tier_name=cohort.tier_name,
            rank=place.rank,
            score=place.score,
            population=page.total,
            promote=cohort.promote,
            demote=cohort.demote,
            zone=zone,
            freshness=page.freshness,
        )
