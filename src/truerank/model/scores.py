"""Score commands, and what became of them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

Token = NewType("Token", str)  # opaque: hand it to a reader, "at least as fresh as this write"


class Outcome(StrEnum):
    """What became of a command."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REFUSED = "refused"


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
    frozen_at: datetime | None = None  # it is shown as of then; None: the season isn't frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What PostgreSQL holds for one member after one command."""

    event_id: str  # as the caller wrote it
    outcome: Outcome
    code: str | None = None  # why it was refused
    standings: tuple[StandingNow, ...] = ()  # one per season the event belongs to
    token: Token | None = None  # of the first write, also where this one is a duplicate
