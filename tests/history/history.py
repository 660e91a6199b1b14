"""What was sent, acknowledged and read, and what the database says of it: data, and no judgement.

Times are microseconds since 1970 by the clock of the machine, which all processes share.
"""

import time
from dataclasses import dataclass, field
from datetime import datetime

DAY_US = 86_400_000_000
_INDEX_ZERO = 1 << 31
_KINDS = {1: "all", 2: "day", 6: "custom"}


def now_us() -> int:
    """The clock that every time of a history is of."""
    return time.time_ns() // 1000


def instant_us(at: datetime) -> int:
    """An aware time, exactly."""
    seconds = int(at.replace(microsecond=0).timestamp())
    return seconds * 1_000_000 + at.microsecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A command that somebody sent at least once. A void names its target and has no value."""

    board: str
    event_id: str
    member: str = ""
    value: int = 0
    occurred_us: int = 0
    void: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """An answer to a command: it was received, so it holds."""

    sent_us: int
    received_us: int
    board: str
    event_id: str
    void: bool = False
    outcome: str = "applied"  # applied, duplicate or refused
    xid: int | None = None  # in the token
    member: str = ""
    standings: tuple[tuple[str, int | None, int | None], ...] = ()  # season, score, version


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A whole ranking as a reader was shown it, and what it was told of its freshness."""

    session: str
    asked_us: int  # before it waited for anything
    sent_us: int
    received_us: int
    mode: str
    board: str
    season: str
    source: str  # projection or database
    total: int
    rows: tuple[tuple[int, str, int], ...]  # rank, member, score
    generation: str | None = None
    tick: int | None = None
    partial: bool = False
    through_us: int | None = None
    staleness_ms: int | None = None
    snapshot: str | None = None  # of the answer's own token
    at_least: int | None = None  # the transaction of a token that the answer must show
    after: str | None = None  # the snapshot of a token that the answer must contain
    max_age_ms: int | None = None  # the age that the reader allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A moment that rules depend on.

    `stopped`: no faults and no writes come any more; `settled`: both ends were found equal; with
    the newest tick. `closed`: a season takes nothing any more; with the snapshot after the last
    writer. `went_back`: between `at_us` and `until_us` Redis lost what it had acknowledged.
    """

    kind: str
    at_us: int
    until_us: int = 0
    tick: int = 0
    board: str = ""
    season: str = ""
    snapshot: str = ""


@dataclass(slots=True)
class History:
    """All of it, each list in the order in which it happened to its thread."""

    sent: list[Sent] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    marked: list[Marked] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A row of the database's events; of a void, `event_id` is that of its target."""

    board: str
    event_id: str
    void: bool = False
    member: str = ""
    value: int = 0
    occurred_us: int = 0
    position: int = 0
    xid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A standing as one statement left it, or a row of the outbox; no sort key: it went."""

    ranking: int
    member: str
    version: int
    xid: int
    sort_key: bytes | None
    score: int | None = None  # None in the outbox, whose sort key holds it


@dataclass(slots=True, kw_only=True)
class Source:
    """What the database holds at the end, and every change on the way there.

    `changes` are in the order in which they happened to each standing, `outbox` in no order.
    """

    boards: dict[str, tuple[int, str]]  # by key: number, operator
    custom: dict[int, tuple[str, int, int]] = field(default_factory=dict)  # season, start, end
    events: list[Event] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    outbox: list[Change] = field(default_factory=list)
    standings: list[Change] = field(default_factory=list)
    ticks: dict[int, str] = field(default_factory=dict)  # the snapshot of each

    def season(self, ranking: int) -> tuple[int, str, int, int]:
        """Board, label, first instant and the one after the last of a ranking."""
        board, kind, index = ranking >> 36, ranking >> 32 & 15, (ranking & 0xFFFFFFFF) - _INDEX_ZERO
        match _KINDS[kind]:
            case "all":
                return board, "all", -(2**63), 2**63
            case "day":
                day = datetime.fromordinal(719163 + index).date().isoformat()
                return board, day, index * DAY_US, (index + 1) * DAY_US
            case _:
                return board, *self.custom[ranking]
