"""Values that cross a boundary, with their units in their names."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

import msgspec

Token = NewType("Token", str)  # opaque: hand it to a reader, "at least as fresh as this write"


class Operator(StrEnum):
    """How the events of one member become one score."""

    SUM = "sum"
    BEST = "best"
    LATEST = "latest"


class Order(StrEnum):
    """Which scores come first: `desc` the high ones, `asc` the low ones."""

    DESC = "desc"
    ASC = "asc"


class Numbering(StrEnum):
    """How places are counted among equals: 1234, 1224 or 1223."""

    ORDINAL = "ordinal"
    COMPETITION = "competition"
    DENSE = "dense"


class Outcome(StrEnum):
    """What became of a command."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REFUSED = "refused"


class MemberState(StrEnum):
    """What holds for a member on a board: the stricter of its states there and everywhere."""

    ACTIVE = "active"
    HIDDEN = "hidden"  # by its own wish
    BANNED = "banned"
    DELETED = "deleted"  # and nothing has come since
    MERGED = "merged"  # its events count for another member


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberScope:
    """What holds for a member on one board, or everywhere where `board` is None."""

    board: str | None
    state: MemberState
    until: datetime | None  # when a ban ends; None: never
    hides: bool  # by its own wish, also while it is banned
    changed_at: datetime
    merged_into: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChange:
    """What a command about a member has come to.

    `changed` is False where it held already. `pending`: the projection did not show it within the
    time that the caller gave it; it holds in PostgreSQL, and the token tells when it is shown.
    """

    member: str  # of one that was merged, the member it stands for
    board: str | None
    state: MemberState
    until: datetime | None
    changed: bool
    token: Token
    pending: bool
    merged_into: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The removal of a person from everything, and in the end the proof of it: it names nobody.

    The events keep board, value and time under stand-ins for the ids. `digest` is SHA-256 over the
    board's number (4 bytes), position, value and microseconds (8 bytes each) of each of them.
    """

    id: str
    asked_at: datetime
    erased_at: datetime | None  # None: outbox and Redis may still hold the id
    stand_ins: tuple[str, ...]
    events: int | None  # None: transactions under way may still add some
    digest: str | None  # hexadecimal

    @property
    def complete(self) -> bool:
        """Whether nothing names the person any more."""
        return self.erased_at is not None


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
    """

    need: Need = Need.ANY
    token: Token | None = None
    max_age_ms: int | None = None
    wait_ms: int = 1000
    or_pending: bool = False
    monotonic: bool = False  # the answer carries a token of its own

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TieBreak:
    """A column that decides between equal scores."""

    name: str
    order: Order = Order.DESC
    min: int = -(2**63)
    max: int = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSpec:
    """What a board is made of. Values, totals and ranges are in the board's unit, scaled.

    `seasons` are any of all, day, week, month, year; their bounds lie in `zone` (IANA). `dense`:
    the projection keeps what it takes to count places densely at any depth.
    """

    key: str
    operator: Operator = Operator.SUM
    order: Order = Order.DESC
    seasons: tuple[str, ...] = ("all", "week", "month")
    zone: str = "UTC"
    decimals: int = 0
    tie_breaks: tuple[TieBreak, ...] = ()
    value_min: int = -(2**63)
    value_max: int = 2**63 - 1
    total_min: int = -(2**63)
    total_max: int = 2**63 - 1
    dense: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board as it is stored: its number, its group, and what it is made of."""

    id: int
    group: int
    spec: BoardSpec
    custom_seasons: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Season:
    """One season of a board, `[starts_at, ends_at)`; None where it has no bound."""

    board: str
    label: str
    period: str  # all, day, week, month, year or custom
    starts_at: datetime | None
    ends_at: datetime | None
    state: str  # open, sealed or final
    ranking: int
    closes_at: datetime | None = None  # from when it may be closed; None: by force only
    hold_until: datetime | None = None  # where it is sealed: when it will be settled
    settled_at: datetime | None = None  # where it is final
    revision: int | None = None  # of its settlement, the newest one
    frozen_at: datetime | None = None  # where `ranking` is what it was then, and is shown instead
    projected: bool = True  # False: it is on its way to the projection, and not all there

    def settled(self, settled_at: datetime, revision: int) -> "Season":
        """The same, as it is known to be final."""
        return replace(self, state="final", settled_at=settled_at, revision=revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A season of which the public is shown what it was at an instant, or was shown that."""

    board: str
    season: str
    due_at: datetime
    frozen_at: datetime | None  # what is shown is no newer; None: it isn't frozen yet
    revealed_at: datetime | None  # None: it goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """A season that was to be closed, and who is in the way where it isn't yet."""

    board: str
    season: str
    waits: str | None  # None: it is sealed and held, or final


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementChange:
    """What a revision changed for one member; None on the side where it has no place."""

    member: str
    rank_before: int | None
    rank: int | None
    score_before: str | None
    score: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """A member without a place in a settlement, and why."""

    member: str
    why: str  # hidden, banned, merged or deleted, when the season was settled
    score: str | None  # None of one who was deleted before


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
    acknowledged_at: datetime | None
    acknowledged_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A transaction that a close waits for."""

    pid: int | None  # None: it waits for COMMIT PREPARED
    name: str | None  # of the application, or of the prepared transaction
    state: str | None
    age_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEvent:
    """One score command, named for ever by `event_id`.

    `value` is in the board's unit: an int, or a decimal string such as "12.345" with at most the
    board's `decimals` places. Without `occurred_at` the server's clock decides. `ties` are in the
    order of the board's tie-breaks.
    """

    event_id: str
    member: str
    value: int | str
    occurred_at: datetime | None = None
    ties: tuple[int, ...] = ()
    metadata: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingNow:
    """A member's absolute score in one season."""

    season: str
    score: str | None  # in the board's unit, exact; None: no standing any more
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What PostgreSQL holds for one member in one season, and the event it rests on."""

    board: str
    season: str
    member: str
    score: str  # in the board's unit, exact
    ties: tuple[int, ...]
    version: int
    reached_at: datetime  # since when the member has had this score
    event_id: str | None  # of the event the score rests on; None where it is forgotten
    occurred_at: datetime | None
    metadata: Any  # of that event


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What PostgreSQL holds for one member after one command."""

    event_id: str  # as the caller wrote it
    outcome: Outcome
    code: str | None = None  # why it was refused
    standings: tuple[StandingNow, ...] = ()  # one per season the event belongs to
    token: Token | None = None  # of the first write, also where this one is a duplicate


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


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown beside a member's id: a name, exact text, and details, any JSON of 1 KB."""

    member: str
    name: str | None = None
    details: Any = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of a ranking. `score` is text in the board's unit, exact: "12.345"."""

    rank: int
    member: str
    score: str
    profile: Profile | None = None  # where names were asked for, and there is one


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


class ScoreCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many members are better than a score, and how many share it, whoever asks."""

    score: str
    better: int
    equal: int


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
