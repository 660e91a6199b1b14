"""Truerank: leaderboards with PostgreSQL as the truth and Valkey as a fast view of it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from truerank.client import Truerank, connect
    from truerank.command.submit import submit_score, submit_scores
    from truerank.errors import TruerankError
    from truerank.local import sandbox
    from truerank.model import (
        Award,
        AwardRule,
        Board,
        BoardSpec,
        Cohort,
        Consistency,
        Delivery,
        Entry,
        Erasure,
        Freeze,
        Freshness,
        League,
        LeaguePlace,
        LeagueRule,
        MemberChange,
        MemberScope,
        MemberState,
        Numbering,
        Operator,
        Order,
        Outcome,
        Page,
        Place,
        Profile,
        Receipt,
        ScoreEvent,
        Season,
        SeasonsFilling,
        Settlement,
        Source,
        Standing,
        StandingNow,
        TieBreak,
        Token,
        Webhook,
    )
    from truerank.read.showing import shows

__all__ = [
    "Award",
    "AwardRule",
    "Board",
    "BoardSpec",
    "Cohort",
    "Consistency",
    "Delivery",
    "Entry",
    "Erasure",
    "Freeze",
    "Freshness",
    "League",
    "LeaguePlace",
    "LeagueRule",
    "MemberChange",
    "MemberScope",
    "MemberState",
    "Numbering",
    "Operator",
    "Order",
    "Outcome",
    "Page",
    "Place",
    "Profile",
    "Receipt",
    "ScoreEvent",
    "Season",
    "SeasonsFilling",
    "Settlement",
    "Source",
    "Standing",
    "StandingNow",
    "TieBreak",
    "Token",
    "Truerank",
    "TruerankError",
    "Webhook",
    "connect",
    "sandbox",
    "shows",
    "submit_score",
    "submit_scores",
]

_ELSEWHERE = {
    "Truerank": "truerank.client",
    "TruerankError": "truerank.errors",
    "connect": "truerank.client",
    "sandbox": "truerank.local",
    "shows": "truerank.read.showing",
    "submit_score": "truerank.command.submit",
    "submit_scores": "truerank.command.submit",
}


def __getattr__(name: str) -> object:
    # Loaded when asked for: drivers take several times as long as a command line's `--help`.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_ELSEWHERE.get(name, "truerank.model")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
