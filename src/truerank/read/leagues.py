"""Leagues as plain values for JSON, the same over HTTP and in the command line."""

from truerank.model import Cohort, League, LeaguePlace, Listed, TierMember
from truerank.read.shapes import Shape, freshness_json


def league_json(league: League) -> Shape:
    """A league and how far members have been divided."""
    return {
        "board": league.board,
        "period": league.rule.period,
        "size": league.rule.size,
        "by_key": league.rule.by_key,
        "tiers": list(league.rule.tiers),
        "promote": league.rule.promote,
        "demote": league.rule.demote,
        "from_season": league.from_season,
        "scanned": league.scanned,
        "undivided": league.undivided,
        "waits_for": league.waits_for,
    }


def cohorts_json(board: str, found: Listed[Cohort]) -> Shape:
    """The cohorts of a season, with its label and state."""
    season = found.season
    assert season is not None, "they are of one"
    return {
        "board": board,
        "season": season.label,
        "state": season.state,
        "cohorts": [cohort_json(each) for each in found],
        "freshness": freshness_json(found.freshness),
    }


def cohort_json(cohort: Cohort) -> Shape:
    """A cohort; `members` are places given away, `population` who has a standing now."""
    return {
        "cohort": cohort.number,
        "tier": cohort.tier,
        "tier_name": cohort.tier_name,
        "key": cohort.key,
        "size": cohort.size,
        "members": cohort.members,
        "population": cohort.population,
    }


def tier_json(member: TierMember) -> Shape:
    """A member in another tier than the lowest, and by whose settlement."""
    return {
        "member": member.member,
        "tier": member.tier,
        "tier_name": member.tier_name,
        "season": member.season,
    }


def league_place_json(place: LeaguePlace) -> Shape:
    """A member's own view of a league; `cohort` is null where it is in none, or in none yet."""
    return {
        "board": place.board,
        "season": place.season,
        "member": place.member,
        "cohort": place.cohort,
        "tier": place.tier,
        "tier_name": place.tier_name,
        "rank": place.rank,
        "score": place.score,
        "population": place.population,
        "promote": place.promote,
        "demote": place.demote,
        "zone": None if place.zone is None else place.zone.value,
        "freshness": freshness_json(place.freshness),
    }
