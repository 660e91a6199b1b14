"""Which events a member's score is made of, and how each counts."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from truerank.model import Board, Season
from truerank.steps import Query, Steps

_EXPLAIN = "SELECT * FROM truerank.explain_standing(%s, %s, %s, %s, %s, %s)"
_ROWS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedEvent:
    """One event of a member in one season. Values are exact, in the board's unit."""

    event_id: str | None  # None: forgotten events, by what they came to
    occurred_at: datetime
    received_at: datetime | None  # None likewise
    position: int
    value: Decimal  # what counts
    first_value: Decimal  # what was submitted
    ties: tuple[int, ...]
    state: str  # counted, amended, void, ended, merged, or carried: see event_id
    source: str | None
    metadata: Any


def explain(board: Board, season: Season, member: str) -> Steps[list[ExplainedEvent]]:
    """All events of a member in a season, in the order in which they count.

    Source: `schema/functions/explain_standing.sql`.
    """
    events: list[ExplainedEvent] = []
    after_at, after_position = None, None
    while True:
        rows = yield Query(
            _EXPLAIN, (board.id, season.ranking, member, _ROWS_MAX, after_at, after_position)
        )
        events += [_event(row) for row in rows]
        if len(rows) < _ROWS_MAX:
            return events
        after_at, after_position = events[-1].occurred_at, events[-1].position


def _event(row: tuple[Any, ...]) -> ExplainedEvent:
    (event_id, occurred_at, received_at, position, value, first_value, ties, state, source,
     metadata) = row  # fmt: skip
    return ExplainedEvent(
        event_id=event_id,
        occurred_at=occurred_at,
        received_at=received_at,
        position=position,
        value=value,
        first_value=first_value,
        ties=tuple(ties or ()),
        state=state,
        source=source,
        metadata=metadata,
    )
