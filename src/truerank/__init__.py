"""Truerank: leaderboards with PostgreSQL as the truth and Valkey as a fast view of it."""

from truerank.client import Truerank, connect
from truerank.command.submit import submit_score, submit_scores
from truerank.errors import TruerankError
from truerank.local import sandbox
from truerank.model import (
    Board,
    BoardSpec,
    Entry,
    Freshness,
    Numbering,
    Operator,
    Order,
    Outcome,
    Page,
    Place,
    Receipt,
    ScoreEvent,
    Season,
    Source,
    StandingNow,
    TieBreak,
    Token,
)

__all__ = [
    "Board",
    "BoardSpec",
    "Entry",
    "Freshness",
    "Numbering",
    "Operator",
    "Order",
    "Outcome",
    "Page",
    "Place",
    "Receipt",
    "ScoreEvent",
    "Season",
    "Source",
    "StandingNow",
    "TieBreak",
    "Token",
    "Truerank",
    "TruerankError",
    "connect",
    "sandbox",
    "submit_score",
    "submit_scores",
]
