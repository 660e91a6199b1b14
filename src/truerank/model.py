"""Values that cross a boundary, with their units in their names."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

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
    """How places are counted among equals: 1234 or 1224."""

    ORDINAL = "ordinal"
    COMPETITION = "competition"


class Outcome(StrEnum):
    """What became of a command."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REFUSED = "refused"


class Source(StrEnum):
    """Where an answer came from."""

    PROJECTION = "projection"
    DATABASE = "database"


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

    `seasons` are any of all, day, week, month, year; their bounds lie in `zone` (IANA).
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How true an answer is, and as of when."""

    source: Source
    epoch: str
    generation: str | None  # None from the database
    tick: int | None  # None from the database
    projected_through: datetime | None  # all that was acknowledged before it is in the answer
    staleness_ms: int | None  # upper bound at the read; None: unknown
    partial: bool = False  # more than the tick is in the answer, but not yet all of the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a ranking. `score` is text in the board's unit, exact: "12.345"."""

    rank: int
    member: str
    score: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one member stands; rank and score are None where it has no standing."""

    member: str
    rank: int | None
    score: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer from one snapshot: a slice of a ranking, and whatever was asked beside it."""

    board: str
    season: str
    total: int  # members with a place in this season
    entries: tuple[Entry, ...]
    freshness: Freshness
    places: tuple[Place, ...] = ()  # of the members asked for, in the order asked
    around: tuple[Entry, ...] = field(default=())  # neighbourhood of the asking member


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What to read of one ranking, in one snapshot. Offsets count from 0, limits are rows."""

    offset: int = 0
    limit: int = 0
    members: tuple[str, ...] = ()
    around: str | None = None  # a member whose neighbourhood is wanted
    around_limit: int = 0
    numbering: Numbering = Numbering.COMPETITION
