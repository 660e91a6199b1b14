"""Closed seasons: settlements, revisions, awards."""

from dataclasses import dataclass
from datetime import datetime

from truerank.model.answers import Numbering


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """A season that was to be closed, and who is in the way where it isn't yet."""

    board: str
    season: str
    waits: str | None  # None: it is sealed and held, or final
    again_s: float | None = None  # where it waits: workers try again in so many seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """One revision of what a final season came to."""

    revision: int
    settled_at: datetime
    actor: str
    reason: str
    population: int  # members with a place
    different: int  # different scores with their tie-breaks: the last dense rank
    total: str  # of all scores, in the board's unit
    excluded: int  # members who had a score, or had had one, and no place
    changed: int  # places that differ from the revision before
    digest: str  # 64 hexadecimal digits; see truerank.settlement_digest
    cohort: int | None = None  # of the season, where it is of one alone: its number


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementChange:
    """What a revision changed for one member; None on the side where it has no place."""

    member: str
    rank_before: int | None
    rank: int | None
    score_before: str | None
    score: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementChanges:
    """A slice of what differs between two revisions.

    First those who have a place now, in its order; then those who have none any more.
    """

    since: int  # the earlier revision
    revision: int
    changes: tuple[SettlementChange, ...]  # may be none, where more follow
    next: str | None  # a cursor; None: these were the last
    cohort: int | None = None  # of the season, where it is of one alone: its number


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A member without a place in a settlement, and why."""

    member: str
    why: str  # hidden, banned, merged or deleted, when the season was settled
    score: str | None  # None of one who was deleted before


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementExcluded:
    """A slice of who has no place in a revision, in order of ids."""

    revision: int
    excluded: tuple[Excluded, ...]
    next: str | None  # a cursor; None: these were the last
    cohort: int | None = None  # of the season, where it is of one alone: its number


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPlace:
    """A place in a settlement, for who pays out: with the member's own id."""

    ordinal: int
    competition: int
    dense: int
    member: str  # the stand-in of one who was deleted since
    score: str
    ties: tuple[int, ...]
    reached_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPlaces:
    """A slice of a settlement's places, in their order."""

    revision: int
    population: int
    digest: str
    places: tuple[SettledPlace, ...]
    next: str | None  # a cursor; None: these were the last
    cohort: int | None = None  # of the season, where it is of one alone: its number


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """A season whose settlement a correction has reached."""

    season: str
    revision: int  # the newest there is
    changed: int  # places that differ from the one before; 0: there is no new revision


@dataclass(frozen=True, slots=True, kw_only=True)
class AwardRule:
    """Who gets an award of a board's seasons of one period, once they are settled.

    One of three: `ranks` (first, last) in a numbering, `percent` of the members, rounded up, or
    `score` and better. With competition ranks and by percent, equals at the edge all get it; with
    ordinal ranks those who were first.
    """

    period: str
    name: str
    ranks: tuple[int, int] | None = None
    numbering: Numbering = Numbering.COMPETITION
    percent: str | None = None  # more than 0, at most 100
    score: str | None = None  # in the board's unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Award:
    """What a member got by the settlement of a season, or no longer gets by a revision."""

    change: int  # rises with each change of any award: read on after the last one
    id: int  # stays the same
    board: str
    season: str
    rule: str
    member: str
    state: str  # given or withdrawn
    revision: int  # of the settlement that said so
    rank: int
    score: str
    changed_at: datetime
    acknowledged_at: datetime | None  # None again after a change
    acknowledged_by: str | None
    acknowledged_state: str | None  # what was dealt with last, given or withdrawn: stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A transaction that a close waits for, or the computing of added seasons."""

    pid: int | None  # None: it waits for COMMIT PREPARED
    name: str | None  # of the application, or of the prepared transaction
    state: str | None
    age_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonsFilling:
    """How far the seasons of periods that were added to a board are computed."""

    board: str
    periods: tuple[str, ...]  # those that aren't all there; none: nothing is to be computed
    members_done: int  # looked at so far
    members: int | None  # how many there were when they were counted; None: nobody has counted
    waits_for: tuple[Writer, ...]  # transactions that don't know of the period
