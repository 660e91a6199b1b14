"""Boards, and their seasons."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class Operator(StrEnum):
    """How the events of one member become one score."""

    SUM = "sum"
    BEST = "best"
    LATEST = "latest"


class Order(StrEnum):
    """Which scores come first: `desc` the high ones, `asc` the low ones."""

    DESC = "desc"
    ASC = "asc"


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
    frozen_at: datetime | None = None  # the public is shown it as it was then; None: as it is
    projected: bool = True  # False: it is on its way to the projection, and not all there
    cohort: int | None = None  # where `ranking` is that of one of its cohorts: its number

    def settled(self, settled_at: datetime, revision: int) -> "Season":
        """The same, as it is known to be final."""
        return replace(self, state="final", settled_at=settled_at, revision=revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A season of which the public is shown what it was at an instant, or was shown that."""

    board: str
    season: str
    due_at: datetime
    frozen_at: datetime | None  # what had committed by then is shown; None: it isn't frozen yet
    revealed_at: datetime | None  # None: it goes on
    together: tuple[str, ...] = ()  # the seasons frozen at this instant in one step; none: it alone
    public: tuple[str, ...] = ()  # seasons that hold then, or now, and are shown as they are
