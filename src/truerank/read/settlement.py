"""Closed seasons and awards as plain values for JSON, over HTTP and in the command line alike."""

from dataclasses import asdict

from truerank.model import (
    Award,
    AwardRule,
    Close,
    Excluded,
    Revised,
    SettledPlace,
    SettledPlaces,
    Settlement,
    SettlementChange,
    SettlementChanges,
    SettlementExcluded,
)
from truerank.read.shapes import Shape, digits, time_text


def settlement_json(settlement: Settlement) -> Shape:
    """One revision of what a season came to; `total` is text. With `cohort` where it is of one."""
    shape = asdict(settlement) | {"settled_at": time_text(settlement.settled_at)}
    del shape["cohort"]
    return shape | _cohort(settlement)


def settlement_change_json(change: SettlementChange) -> Shape:
    """What a revision changed for one member; null on the side where it has no place."""
    return asdict(change)


def settlement_changes_json(changes: SettlementChanges) -> Shape:
    """A slice of changes: `{"since", "revision", "changes", "next"}`, of a cohort with `cohort`."""
    return {
        "since": changes.since,
        "revision": changes.revision,
        "changes": [settlement_change_json(each) for each in changes.changes],
        "next": changes.next,
    } | _cohort(changes)


def excluded_json(excluded: Excluded) -> Shape:
    """A member without a place: `{"member", "why", "score"}`."""
    return asdict(excluded)


def settlement_excluded_json(excluded: SettlementExcluded) -> Shape:
    """A slice of members without a place: `{"revision", "excluded", "next"}`, and `cohort`."""
    return {
        "revision": excluded.revision,
        "excluded": [excluded_json(each) for each in excluded.excluded],
        "next": excluded.next,
    } | _cohort(excluded)


def settled_place_json(place: SettledPlace) -> Shape:
    """A place with its three ranks; tie-breaks are strings of digits."""
    return asdict(place) | {
        "ties": [digits(tie) for tie in place.ties],
        "reached_at": time_text(place.reached_at),
    }


def settled_places_json(places: SettledPlaces) -> Shape:
    """A slice: `{"revision", "population", "digest", "places", "next"}`, of a cohort `cohort`."""
    return {
        "revision": places.revision,
        "population": places.population,
        "digest": places.digest,
        "places": [settled_place_json(each) for each in places.places],
        "next": places.next,
    } | _cohort(places)


def _cohort(of: Settlement | SettledPlaces | SettlementChanges | SettlementExcluded) -> Shape:
    return {} if of.cohort is None else {"cohort": of.cohort}


def revised_json(revised: Revised) -> Shape:
    """A revised season: `{"season", "revision", "changed"}`."""
    return asdict(revised)


def close_json(close: Close) -> Shape:
    """A season that was to be closed: `{"board", "season", "waits", "again_s"}`."""
    return asdict(close)


def award_rule_json(rule: AwardRule) -> Shape:
    """Who gets an award: `{"period", "name", "ranks", "numbering", "percent", "score"}`."""
    return asdict(rule) | {"numbering": rule.numbering.value}


def award_json(award: Award) -> Shape:
    """What a member got; `change` and `id` are strings of digits."""
    return asdict(award) | {
        "change": digits(award.change),
        "id": digits(award.id),
        "changed_at": time_text(award.changed_at),
        "acknowledged_at": time_text(award.acknowledged_at),
    }
