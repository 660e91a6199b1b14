"""What readers ask for, and what they are answered."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from truerank.errors import InvalidInput
from truerank.model.members import MemberState
from truerank.model.scores import Token


class Numbering(StrEnum):
    """How places are counted among equals: 1234, 1224 or 1223."""

    ORDINAL = "ordinal"
    COMPETITION = "competition"
    DENSE = "dense"


class Source(StrEnum):
    """Where an answer came from."""

    PROJECTION = "projection"
    DATABASE = "database"


class Need(StrEnum):
    """What a reader needs of an answer; see `Consistency`."""

    ANY = "any"
    AT_LEAST = "at_least"
    MAX_AGE = "max_age"
    AUTHORITATIVE = "authoritative"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """How fresh an answer must be, and what to do where it isn't.

    Make one with the methods below. What the projection can't give comes from PostgreSQL, which
    is never behind; the answer says where it came from.

    Raises:
        InvalidInput: a value is missing, or of another need; a refused event has no token.
    """

    need: Need = Need.ANY
    token: Token | None = None
    max_age_ms: int | None = None
    wait_ms: int = 1000
    or_pending: bool = False
    monotonic: bool = False  # the answer carries a token of its own

    def __post_init__(self) -> None:
        if self.need not in tuple(Need):
            raise InvalidInput(f"need is one of {', '.join(Need)}", field="consistency")
        object.__setattr__(self, "need", Need(self.need))  # of its name, the need itself
        given: tuple[tuple[str, Need, object, type, str], ...] = (
            ("token", Need.AT_LEAST, self.token, str, "the token of a receipt or of an answer"),
            ("max_age", Need.MAX_AGE, self.max_age_ms, int, "a whole number of milliseconds"),
        )
        for name, need, value, kind, words in given:
            if self.need is need and (not isinstance(value, kind) or isinstance(value, bool)):
                raise InvalidInput(f"{need} needs {words}, not {type(value).__name__}", field=name)
            if self.need is not need and value is not None:
                raise InvalidInput(f"{name} is for {need}, not for {self.need}", field=name)

    @classmethod
    def any(cls) -> "Consistency":
        """Whatever the projection shows, as long as it is whole. The default."""
        return cls()

    @classmethod
    def at_least(
        cls, token: Token, *, wait_ms: int = 1000, or_pending: bool = False
    ) -> "Consistency":
        """An answer that shows the write, or the answer, behind a token.

        Args:
            token: of a receipt, or of the freshness of an answer.
            wait_ms: how long to wait for the projection before PostgreSQL is asked.
            or_pending: don't wait: answer at once, and where the write isn't shown yet with the
                places of the members asked for marked pending.
        """
        return cls(
            need=Need.AT_LEAST,
            token=token,
            wait_ms=wait_ms,
            or_pending=or_pending,
            monotonic=True,
        )

    @classmethod
    def monotonic_after(cls, token: Token | None, *, wait_ms: int = 1000) -> "Consistency":
        """Never older than the last answer; None for the first one. `freshness.token` is next."""
        if token is None:
            return cls(monotonic=True)
        return cls.at_least(token, wait_ms=wait_ms)

    @classmethod
    def max_age(cls, milliseconds: int) -> "Consistency":
        """An answer that misses nothing acknowledged longer ago than this."""
        return cls(need=Need.MAX_AGE, max_age_ms=milliseconds)

    @classmethod
    def authoritative(cls) -> "Consistency":
        """PostgreSQL's own answer, always."""
        return cls(need=Need.AUTHORITATIVE)

    @classmethod
    def settled(cls) -> "Consistency":
        """The final result of a closed season, and nothing else: what payouts may read.

        Before the season is final it is refused as `NotSettled`, which says when to come back.
        """
        return cls(need=Need.SETTLED)


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """How true an answer is, and as of when."""

    source: Source
    epoch: str
    generation: str | None  # None from the database
    tick: int | None  # None from the database
    projected_through: datetime | None  # all that was acknowledged before it is in the answer
    staleness_ms: int | None  # upper bound at the read; None: unknown
    settled: bool = False  # from a settlement: it is never older, and never changes
    partial: bool = False  # more than the tick is in the answer, but not yet all of the next
    token: Token | None = None  # for `Consistency.at_least`; where the reader asked for one
    lives: str | None = None  # of the source, with that: whose tokens the answer can be held to
    frozen_at: datetime | None = None  # where the public is shown what was, and not what is
    as_of: datetime | None = None  # the instant asked for: the answer is the board as it stood then


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown beside a member's id: a name, exact text, and details, any JSON of 1 KB."""

    member: str
    name: str | None = None
    details: Any = None


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One row of a ranking. `score` is text in the board's unit, exact: "12.345".

    `rank_before` is the rank at the page's `since`; None for one who had none then.
    """

    rank: int
    member: str
    score: str
    profile: Profile | None = None  # where names were asked for, and there is one
    rank_before: int | None = None  # where asked

    @property
    def change(self) -> int | None:
        """How many ranks better than before; negative: worse. None for one who is new."""
        return None if self.rank_before is None else self.rank_before - self.rank


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where one member stands; rank and score are None where it has no place.

    `state` says whether a place is withheld; that is for the member's own view, not the public's.
    Pending: a write of the reader's isn't shown yet, so neither is what stood there before.
    """

    member: str
    rank: int | None
    score: str | None
    pending: bool = False
    state: MemberState = MemberState.ACTIVE  # or hidden, banned, merged
    rank_among: int | None = None  # among the members asked for together; where asked
    percentile: float | None = None  # of the others, how many percent are below; where asked
    profile: Profile | None = None  # where names were asked for, and there is one
    rank_before: int | None = None  # as of an entry; also of one who has no place any more

    @property
    def change(self) -> int | None:
        """How many ranks better than before; None where it has no rank, or had none."""
        if self.rank is None or self.rank_before is None:
            return None
        return self.rank_before - self.rank


class ScoreCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many members are better than a score, and how many share it, whoever asks.

    `rank` is the one that whoever reached it now would have, in the numbering asked for.
    """

    score: str
    better: int
    equal: int
    rank: int


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One answer from one snapshot: a slice of a ranking, and whatever was asked beside it."""

    board: str
    season: str
    state: str  # of the season: open, sealed or final
    total: int  # members with a place in this season
    entries: tuple[Entry, ...]
    freshness: Freshness
    places: tuple[Place, ...] = ()  # of the members asked for, in the order asked
    around: tuple[Entry, ...] = ()  # neighbourhood of a member or a rank; no row of `entries`
    matching: int = 0  # members between the scores asked for; without such bounds `total`
    counts: tuple[ScoreCount, ...] = ()  # of the scores asked for, in the order asked
    next: str | None = None  # cursor of the page after this one; None where there is none
    previous: str | None = None  # cursor of the page before this one
    settled_at: datetime | None = None  # where the season is final
    revision: int | None = None  # of its settlement
    since: datetime | None = None  # the earlier instant that ranks are compared with; where asked
    cohort: int | None = None  # of this season, where the ranking is of one cohort alone


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """How many members have a score from `low` up to, not including, `high`; None: no bound."""

    low: str | None
    high: str | None
    members: int


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """How the scores of a season are spread, in one snapshot; low scores first on every board."""

    board: str
    season: str
    state: str
    total: int
    buckets: tuple[Bucket, ...]
    freshness: Freshness
    settled_at: datetime | None = None  # where the season is final
    revision: int | None = None  # of its settlement
    cohort: int | None = None  # as in `Page`


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to read of one ranking, in one snapshot. Offsets count from 0, limits are rows."""

    offset: int = 0
    limit: int = 0
    cursor: str | None = None  # `next` or `previous` of a page; takes the place of the offset
    score_min: int | str | None = None  # of the rows of the slice, in the board's unit
    score_max: int | str | None = None
    members: tuple[str, ...] = ()
    among: bool = False  # whether the members are also ranked among themselves
    percentile: bool = False
    around: str | None = None  # a member whose neighbourhood is wanted
    around_rank: int | None = None  # or a rank, from 1
    around_limit: int = 0
    scores: tuple[tuple[int | str, tuple[int, ...]], ...] = ()  # with tie-breaks, or without any
    numbering: Numbering = Numbering.COMPETITION
    token: bool = False  # whether the answer is to be compared with others
    as_of: datetime | None = None  # the board as it stood then; None: as it is
    since: datetime | None = None  # an earlier instant, whose ranks are wanted beside
