"""Which ranking a cohort of a season has, and what a place in it comes to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from truerank.command.submit import check_member, check_text
from truerank.errors import InvalidInput, NotInCohort, SeasonFrozen, SeasonUnknown
from truerank.model import Board, Cohort, Season, TierMember, Zone
from truerank.paging import check_slice, check_whole
from truerank.read.season import find_season
from truerank.steps import Query, Steps

_FIND = """
    SELECT season, ranking, number, tier, tier_name, promote, demote, frozen, moved, withheld,
           spared
    FROM truerank.find_cohort(%s, %s, %s::integer, %s)"""
_LIST = """
    SELECT number, tier, tier_name, key, size, members, population
    FROM truerank.cohorts(%s, %s, %s::integer, %s::integer)"""
_TIERS = """
    SELECT member, tier, tier_name, season
    FROM truerank.league_tiers(%s, %s, %s, %s::integer)"""
_NUMBER_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class InCohort:
    """One cohort of a season: by its number, or by one of its members."""

    season: str | None  # as for a season itself
    number: int | None
    member: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCohort:
    """A cohort, and who moves when its season is settled."""

    season: str
    ranking: int
    number: int
    tier: int
    tier_name: str | None
    promote: int
    demote: int
    frozen: bool
    moved: int | None  # by the settlement the member went up a tier, 1, or down, -1
    withheld: bool  # it is named by a member who is hidden, banned or deleted
    spared: int  # so many first ones go down in no tier

    def settled_zone(self) -> Zone:
        """What the member's place came to."""
        return {1: Zone.PROMOTION, -1: Zone.DEMOTION}.get(self.moved or 0, Zone.STAY)

    def zone(self, ordinal: int, population: int) -> Zone:
        """What a place in it comes to, if the season is settled as it stands."""
        if ordinal <= self.promote:
            return Zone.PROMOTION
        down = ordinal > max(population - self.demote, self.spared)
        return Zone.DEMOTION if down else Zone.STAY


def in_cohort(
    season: str | None, cohort: int | None, cohort_of: str | None
) -> str | InCohort | None:
    """What to ask about: a season, or one of its cohorts where one is named.

    Raises:
        InvalidInput: both name one, or one is malformed.
    """
    if cohort is None and cohort_of is None:
        return season
    if cohort is not None and cohort_of is not None:
        raise InvalidInput("a cohort is named by number or by a member", field="cohort_of")
    if cohort is not None:
        check_whole("cohort", cohort, _NUMBER_MAX, least=1)
    if cohort_of is not None:
        check_member(cohort_of)
    return InCohort(season, cohort, cohort_of)


def is_current(season: str | InCohort | None) -> bool:
    """Whether it names whatever season runs now."""
    return (season.season if isinstance(season, InCohort) else season) is None


def of_season(asked: str | InCohort | None, season: str) -> str | InCohort:
    """The same of the season with this label."""
    return replace(asked, season=season) if isinstance(asked, InCohort) else season


def find_cohort(board: Board, asked: InCohort, *, operator: bool) -> Steps[FoundCohort]:
    """The cohort that is asked for.

    Raises:
        SeasonUnknown: the board keeps no such season.
        NotInCohort: there is no such cohort, or the member is in none (yet), or withheld.
        SeasonFrozen: the public is shown the season as it was, and so none of its cohorts.

    Source: `schema/functions/find_cohort.sql`.
    """
    if asked.season is not None:
        check_text(asked.season, "season")
    rows = yield Query(_FIND, (board.id, asked.season, asked.number, asked.member))
    if not rows:
        raise SeasonUnknown(
            f"board {board.spec.key!r} has no season {asked.season!r}", field="season"
        )
    found = _found(rows[0])
    if found.frozen and not operator:
        raise cohorts_frozen(found.season)
    # Or everybody could learn where those are who are shown to nobody.
    if found.ranking is None or (found.withheld and not operator):
        named = (
            f"cohort {asked.number}"
            if asked.member is None
            else f"cohort that {asked.member!r} is in"
        )
        raise NotInCohort(
            f"season {found.season} of board {board.spec.key!r} has no {named}",
            field="cohort" if asked.member is None else "cohort_of",
        )
    return found


def cohort_season(board: Board, asked: InCohort, *, operator: bool) -> Steps[Season]:
    """The season that is asked about, with the ranking of one of its cohorts.

    Raises:
        SeasonUnknown, NotInCohort, SeasonFrozen: see `find_cohort`.
    """
    cohort = yield from find_cohort(board, asked, operator=operator)
    season = yield from find_season(board, cohort.season)
    return replace(season, ranking=cohort.ranking, cohort=cohort.number)


def cohorts_frozen(season: str) -> SeasonFrozen:
    """The refusal to show the public any cohort of a season that it is shown as it was."""
    return SeasonFrozen(
        f"season {season} is frozen: its cohorts are shown when it is revealed", field="season"
    )


def list_cohorts(
    board: Board, season: str | None, *, after: int, limit: int
) -> Steps[list[Cohort]]:
    """The cohorts of a season in order of their numbers, after one.

    Source: `schema/functions/cohorts.sql`.
    """
    check_slice(limit)
    check_whole("after", after, _NUMBER_MAX)
    rows = yield Query(_LIST, (board.id, season, after, limit))
    return [
        Cohort(
            number=number,
            tier=tier,
            tier_name=tier_name,
            key=key,
            size=size,
            members=members,
            population=population,
        )
        for number, tier, tier_name, key, size, members, population in rows
    ]


def list_tiers(board: Board, period: str, *, after: str, limit: int) -> Steps[list[TierMember]]:
    """Who is in another tier than the lowest, in order of ids after one.

    Source: `schema/functions/league_tiers.sql`.
    """
    check_slice(limit)
    check_text(after, "after")
    rows = yield Query(_TIERS, (board.id, period, after, limit))
    return [
        TierMember(member=member, tier=tier, tier_name=tier_name, season=season)
        for member, tier, tier_name, season in rows
    ]


def _found(row: Sequence[Any]) -> FoundCohort:
    season, ranking, number, tier, tier_name, promote, demote, frozen, moved, *rest = row
    withheld, spared = rest
    return FoundCohort(
        season=season,
        ranking=ranking,
        number=number,
        tier=tier,
        tier_name=tier_name,
        promote=promote,
        demote=demote,
        frozen=frozen,
        moved=moved,
        withheld=withheld,
        spared=spared,
    )
