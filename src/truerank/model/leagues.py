"""Leagues, and their cohorts."""

from dataclasses import dataclass
from enum import StrEnum

from truerank.model.answers import Freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class LeagueRule:
    """How a board's seasons of one period are divided into cohorts.

    The first `promote` of a cohort go up a tier when a season is settled, or stay in the
    highest; of the others the last `demote` go down, but never rank 1. Both by ordinal rank: of
    equals whoever was first stands higher.
    """

    period: str  # day, week, month, year; all and custom with one tier, and nobody moves
    size: int  # members of a cohort at most, 2 to 1000
    by_key: bool = False  # members with the same key share cohorts; else whoever comes first
    tiers: tuple[str, ...] = ("league",)  # the lowest first: everybody begins there
    promote: int = 0
    demote: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class League:
    """A rule of a board, and how far members have been divided by it."""

    board: str
    rule: LeagueRule
    from_season: str | None  # the first season that is divided; None: all custom ones
    scanned: bool  # standings from before it was set have been looked at
    undivided: int  # members that wait for a cohort; 10,000 are counted at most
    waits_for: str | None  # the season to be closed before those of the newest are divided


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Some members of a season with a ranking of their own."""

    number: int  # in its season, from 1
    tier: int  # from 0, the lowest
    tier_name: str | None  # None: the league has no such tier any more
    key: str  # what its members share; empty: nothing
    size: int  # members at most
    members: int  # places that were given away; who leaves gives none back
    population: int  # members with a standing now, but for those who are hidden or banned


@dataclass(frozen=True, slots=True, kw_only=True)
class TierMember:
    """A member in another tier than the lowest."""

    member: str
    tier: int
    tier_name: str
    season: str  # by whose settlement


class Zone(StrEnum):
    """What a place in a cohort comes to if the season is settled as it stands; later, came to."""

    PROMOTION = "promotion"
    STAY = "stay"
    DEMOTION = "demotion"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaguePlace:
    """A member's own view of a league."""

    board: str
    season: str
    member: str
    cohort: int | None = None  # its number; None: the member is in none, or in none yet
    tier: int | None = None
    tier_name: str | None = None
    rank: int | None = None  # ordinal, in the cohort; None: it has no place
    score: str | None = None
    population: int = 0  # members with a place in the cohort
    promote: int = 0  # how many of them go up; 0 in the highest tier
    demote: int = 0  # how many go down; 0 in the lowest
    zone: Zone | None = None
    freshness: Freshness
