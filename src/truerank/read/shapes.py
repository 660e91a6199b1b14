"""Answers as plain values for JSON, the same over HTTP and in the command line.

Scores, versions, ticks and the limits of a board are strings of digits, because a JavaScript
reader keeps only 53 bits of a number; ranks, totals and counts are numbers. Times are RFC 3339
in UTC with microseconds; null where there is none.
"""

from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from truerank.model import Board, Entry, Freshness, Histogram, Page, Place, Profile, Receipt, Season
from truerank.read.status import Status

Shape = dict[str, Any]

_STATUS_DIGITS = {"last_tick", "floor_tick"}


def page_json(page: Page) -> Shape:
    """A slice of a ranking; with `place` and `around` where a member was asked for.

    Returns:
        `{"board", "season", "state", "total", "entries": [{"rank", "member", "score"}], "next",
        "previous", "freshness"}`; the cursors are null at the ends.
    """
    shape = _head(page) | {"entries": [entry_json(entry) for entry in page.entries]}
    shape |= {"next": page.next, "previous": page.previous}
    if page.places:
        shape |= {"place": _place(page.places[0]), "around": [entry_json(e) for e in page.around]}
    return shape | {"freshness": freshness_json(page.freshness)}


def place_json(page: Page) -> Shape:
    """The place of the one member asked for; `rank` and `score` are null where it has none.

    Returns:
        `{"board", "season", "state", "total", "place": {"rank", "member", "score"}, "freshness"}`.
    """
    (place,) = page.places
    return _head(page) | {"place": _place(place), "freshness": freshness_json(page.freshness)}


def places_json(page: Page) -> Shape:
    """The places of all members asked for, in the order asked.

    Returns:
        `{"board", "season", "state", "total", "places": [{"rank", "member", "score"}],
        "freshness"}`; each place with `rank_among` and `percentile` where asked for.
    """
    return _head(page) | {
        "places": [_place(place) for place in page.places],
        "freshness": freshness_json(page.freshness),
    }


def around_json(page: Page) -> Shape:
    """A member's place and neighbourhood.

    Returns:
        `{"board", "season", "state", "total", "place", "around": [{"rank", "member", "score"}],
        "freshness"}`; `around` is empty where the member has no place.
    """
    (place,) = page.places
    return _head(page) | {
        "place": _place(place),
        "around": [entry_json(entry) for entry in page.around],
        "freshness": freshness_json(page.freshness),
    }


def between_json(page: Page) -> Shape:
    """The members between two scores; `matching` is how many there are.

    Returns:
        As `page_json`, with `matching`.
    """
    return page_json(page) | {"matching": page.matching}


def window_json(page: Page) -> Shape:
    """The neighbourhood of a rank.

    Returns:
        `{"board", "season", "state", "total", "around": [{"rank", "member", "score"}],
        "freshness"}`.
    """
    return _head(page) | {
        "around": [entry_json(entry) for entry in page.around],
        "freshness": freshness_json(page.freshness),
    }


def counts_json(page: Page) -> Shape:
    """How many are better than each score, and how many share it.

    Returns:
        `{"board", "season", "state", "total", "counts": [{"score", "better", "equal"}],
        "freshness"}`.
    """
    return _head(page) | {
        "counts": [
            {"score": count.score, "better": count.better, "equal": count.equal}
            for count in page.counts
        ],
        "freshness": freshness_json(page.freshness),
    }


def histogram_json(histogram: Histogram) -> Shape:
    """How the scores of a season are spread; null where a bucket has no bound.

    Returns:
        `{"board", "season", "state", "total", "buckets": [{"low", "high", "members"}],
        "freshness"}`.
    """
    return _head(histogram) | {
        "buckets": [
            {"low": bucket.low, "high": bucket.high, "members": bucket.members}
            for bucket in histogram.buckets
        ],
        "freshness": freshness_json(histogram.freshness),
    }


def entry_json(entry: Entry) -> Shape:
    """One row of a ranking; with `name` and `details` where names were asked for and known."""
    shape = {"rank": entry.rank, "member": entry.member, "score": entry.score}
    return shape | _profile(entry.profile)


def freshness_json(freshness: Freshness) -> Shape:
    """How true an answer is; `token` only where asked for.

    `frozen_at`, `partial` and `settled` only where they hold.
    """
    shape: Shape = {
        "source": freshness.source.value,
        "epoch": freshness.epoch,
        "generation": freshness.generation,
        "tick": digits(freshness.tick),
        "projected_through": time_text(freshness.projected_through),
        "staleness_ms": freshness.staleness_ms,
    }
    if freshness.frozen_at is not None:
        shape["frozen_at"] = time_text(freshness.frozen_at)
    if freshness.partial:
        shape["partial"] = True
    if freshness.settled:
        shape["settled"] = True
    if freshness.token is not None:
        shape["token"] = freshness.token
    return shape


def receipt_json(receipt: Receipt) -> Shape:
    """What became of one command; `code` only where it was refused.

    Returns:
        `{"event_id", "outcome", "code"?, "standings": [{"season", "score", "version"}], "token"}`.
    """
    shape: Shape = {"event_id": receipt.event_id, "outcome": receipt.outcome.value}
    if receipt.code is not None:
        shape["code"] = receipt.code
    shape["standings"] = [
        {"season": now.season, "score": now.score, "version": digits(now.version)}
        for now in receipt.standings
    ]
    return shape | {"token": receipt.token}


def season_json(season: Season) -> Shape:
    """One season; `closes_at` is when it may be closed, null where it has no end.

    Returns:
        `{"season", "period", "starts_at", "ends_at", "state", "closes_at", "hold_until"}`; of a
        final one also `settled_at` and `revision`, of its newest settlement.
    """
    return {
        "season": season.label,
        "period": season.period,
        "starts_at": time_text(season.starts_at),
        "ends_at": time_text(season.ends_at),
        "state": season.state,
        "closes_at": time_text(season.closes_at),
        "hold_until": time_text(season.hold_until),
    } | _settled(season)


def board_json(board: Board) -> Shape:
    """What a board is made of; its limits are scaled by `decimals`, as they are stored."""
    spec = board.spec
    return {
        "board": spec.key,
        "operator": spec.operator.value,
        "order": spec.order.value,
        "seasons": list(spec.seasons),
        "custom_seasons": board.custom_seasons,
        "zone": spec.zone,
        "decimals": spec.decimals,
        "tie_breaks": [
            {
                "name": tie.name,
                "order": tie.order.value,
                "min": digits(tie.min),
                "max": digits(tie.max),
            }
            for tie in spec.tie_breaks
        ],
        "value_min": digits(spec.value_min),
        "value_max": digits(spec.value_max),
        "total_min": digits(spec.total_min),
        "total_max": digits(spec.total_max),
        "dense": spec.dense,
        "group": board.group,
    }


def status_json(status: Status) -> Shape:
    """One look at both stores, field by field as in `truerank.read.status.Status`."""
    shape: Shape = {}
    for field in fields(status):
        value = getattr(status, field.name)
        if isinstance(value, datetime):
            value = time_text(value)
        elif field.name in _STATUS_DIGITS:
            value = digits(value)
        elif field.name in {"problems", "held_back", "fillings"}:
            value = [asdict(each) for each in value]
        shape[field.name] = value
    return shape


def digits(number: int | None) -> str | None:
    """A number of up to 64 bits as JSON readers keep it whole."""
    return None if number is None else str(number)


def time_text(instant: datetime | None) -> str | None:
    """An instant as `2026-08-29T12:00:00.000000Z`."""
    if instant is None:
        return None
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _head(page: Page | Histogram) -> Shape:
    return {
        "board": page.board,
        "season": page.season,
        "state": page.state,
        "total": page.total,
    } | _settled(page)


def _settled(of: Page | Histogram | Season) -> Shape:
    if of.settled_at is None:
        return {}
    return {"settled_at": time_text(of.settled_at), "revision": of.revision}


def _place(place: Place) -> Shape:
    shape: Shape = {"rank": place.rank, "member": place.member, "score": place.score}
    if place.pending:
        shape["pending"] = True
    if place.rank_among is not None:
        shape["rank_among"] = place.rank_among
    if place.percentile is not None:
        shape["percentile"] = place.percentile
    return shape | _profile(place.profile)


def _profile(profile: Profile | None) -> Shape:
    if profile is None:
        return {}
    return {"name": profile.name, "details": profile.details}
