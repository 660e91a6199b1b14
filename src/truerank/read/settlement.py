"""Closed seasons as plain values for JSON, the same over HTTP and in the command line."""

from dataclasses import asdict

from truerank.model import Close, Excluded, Revised, Settlement, SettlementChange
from truerank.read.shapes import Shape, time_text


def settlement_json(settlement: Settlement) -> Shape:
    """One revision of what a season came to; `total` is a string of digits."""
    return asdict(settlement) | {"settled_at": time_text(settlement.settled_at)}


def settlement_change_json(change: SettlementChange) -> Shape:
    """What a revision changed for one member; null on the side where it has no place."""
    return asdict(change)


def excluded_json(excluded: Excluded) -> Shape:
    """A member without a place: `{"member", "why", "score"}`."""
    return asdict(excluded)


def revised_json(revised: Revised) -> Shape:
    """A revised season: `{"season", "revision", "changed"}`."""
    return asdict(revised)


def close_json(close: Close) -> Shape:
    """A season that was to be closed: `{"board", "season", "waits"}`."""
    return asdict(close)
