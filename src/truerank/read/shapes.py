"""Answers as plain values for JSON, the same over HTTP and in the command line.

Scores, versions, ticks and the limits of a board are strings of digits, because a JavaScript
reader keeps only 53 bits of a number; ranks, totals and counts are numbers. Times are RFC 3339
in UTC with microseconds; null where there is none.
"""

from collections.abc import Collection, Iterable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from truerank.model import (
    Board,
    Delivery,
    Entry,
    Freshness,
    Histogram,
    Listed,
    MemberState,
    Page,
    Place,
    Profile,
    Receipt,
    Season,
    Webhook,
)
from truerank.read.status import Status

if TYPE_CHECKING:  # it loads a driver
    from truerank.read.exported import ExportHead

Shape = dict[str, Any]

_STATUS_DIGITS = {"last_tick", "floor_tick"}


def page_json(page: Page) -> Shape:
    """A slice of a ranking; with `place` and `around` where a member was asked for.

    Returns:
        `{"board", "season", "state", "total", "entries": [{"rank", "member", "score"}], "next",
        "previous", "freshness"}`; the cursors are null at the ends. Where ranks are compared with
        those at an earlier instant, also `since`, and in each row `rank_before` and `change`.
    """
    shape = _head(page) | {"entries": _entries(page, page.entries)}
    shape |= {"next": page.next, "previous": page.previous}
    if page.places:
        shape |= {"place": _place(page, page.places[0]), "around": _entries(page, page.around)}
    return shape | {"freshness": freshness_json(page.freshness)}


def place_json(page: Page, *, percentile: bool = False) -> Shape:
    """The place of the one member asked for; `rank` and `score` are null where it has none.

    Args:
        page: the answer.
        percentile: whether it was asked for.

    Returns:
        `{"board", "season", "state", "total", "place": {"rank", "member", "score"}, "freshness"}`;
        the place with its own `state` where it is withheld.
    """
    (place,) = page.places
    asked = ("percentile",) if percentile else ()
    return _head(page) | {
        "place": _place(page, place, asked),
        "freshness": freshness_json(page.freshness),
    }


def places_json(page: Page, *, among: bool = False, percentile: bool = False) -> Shape:
    """The places of all members asked for, in the order asked.

    Args:
        page: the answer.
        among: whether it was asked for.
        percentile: likewise.

    Returns:
        `{"board", "season", "state", "total", "places": [{"rank", "member", "score"}],
        "freshness"}`; each place with `rank_among` and `percentile` where asked for.
    """
    asked = [
        name for name, is_asked in (("rank_among", among), ("percentile", percentile)) if is_asked
    ]
    return _head(page) | {
        "places": [_place(page, place, asked) for place in page.places],
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
        "place": _place(page, place),
        "around": _entries(page, page.around),
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
        "around": _entries(page, page.around),
        "freshness": freshness_json(page.freshness),
    }


def counts_json(page: Page) -> Shape:
    """How many are better than each score, how many share it, and which rank it would be.

    Returns:
        `{"board", "season", "state", "total", "counts": [{"score", "better", "equal", "rank"}],
        "freshness"}`.
    """
    return _head(page) | {
        "counts": [
            {
                "score": count.score,
                "better": count.better,
                "equal": count.equal,
                "rank": count.rank,
            }
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


def export_json(head: "ExportHead") -> Shape:
    """What the rows of an export are of.

    Returns:
        `{"board", "season", "state", "freshness"}`; of one cohort with its number in `cohort`.
    """
    season = head.season
    return (
        {"board": season.board, "season": season.label, "state": season.state}
        | _settled(season)
        | ({} if season.cohort is None else {"cohort": season.cohort})
        | {"freshness": freshness_json(head.freshness)}
    )


def entry_json(entry: Entry) -> Shape:
    """One row of a ranking; with `name` and `details` where names were asked for and known."""
    shape = {"rank": entry.rank, "member": entry.member, "score": entry.score}
    return shape | _profile(entry.profile)


def freshness_json(freshness: Freshness) -> Shape:
    """How true an answer is; `token` only where asked for.

    `as_of` where the board was asked for as it stood then; `frozen_at`, `partial` and `settled`
    only where they hold.
    """
    shape: Shape = {
        "source": freshness.source.value,
        "epoch": freshness.epoch,
        "generation": freshness.generation,
        "tick": digits(freshness.tick),
        "projected_through": time_text(freshness.projected_through),
        "staleness_ms": freshness.staleness_ms,
    }
    if freshness.as_of is not None:
        shape["as_of"] = time_text(freshness.as_of)
    if freshness.frozen_at is not None:
        shape["frozen_at"] = time_text(freshness.frozen_at)
    if freshness.partial:
        shape["partial"] = True
    if freshness.settled:
        shape["settled"] = True
    if freshness.token is not None:
        shape["token"] = freshness.token
        if freshness.lives is not None:
            shape["lives"] = freshness.lives
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


def seasons_json(board: str, seasons: Listed[Season]) -> Shape:
    """The seasons of a board.

    Returns:
        `{"board", "seasons": [{"season", "period", ...}], "freshness"}`.
    """
    return {
        "board": board,
        "seasons": [season_json(season) for season in seasons],
        "freshness": freshness_json(seasons.freshness),
    }


def season_json(season: Season) -> Shape:
    """One season; `closes_at` is when it may be closed, null where it has no end.

    Returns:
        `{"season", "period", "starts_at", "ends_at", "state", "closes_at", "hold_until"}`; of a
        final one also `settled_at` and `revision`, of its newest settlement; `frozen_at` where the
        public is shown it as it was then.
    """
    frozen = {} if season.frozen_at is None else {"frozen_at": time_text(season.frozen_at)}
    return {
        "season": season.label,
        "period": season.period,
        "starts_at": time_text(season.starts_at),
        "ends_at": time_text(season.ends_at),
        "state": season.state,
        "closes_at": time_text(season.closes_at),
        "hold_until": time_text(season.hold_until),
    } | (_settled(season) | frozen)


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


def webhook_json(webhook: Webhook) -> Shape:
    """A receiver, field by field as in `truerank.Webhook`; without what may be a secret."""
    shape = asdict(webhook) | {"url": webhook.shown_url, "kinds": list(webhook.kinds)}
    for name in ("former_until", "paused_until", "made_at", "oldest_at"):
        shape[name] = time_text(shape[name])
    return shape


def delivery_json(delivery: Delivery) -> Shape:
    """A delivery, field by field as in `truerank.Delivery`."""
    shape = asdict(delivery) | {"id": digits(delivery.id)}
    for name in ("occurred_at", "attempted_at", "due_at", "ended_at"):
        shape[name] = time_text(shape[name])
    return shape


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
        **({} if page.cohort is None else {"cohort": page.cohort}),
        **_since(page),
    } | _settled(page)


def _since(page: Page | Histogram) -> Shape:
    if isinstance(page, Histogram) or page.since is None:
        return {}
    return {"since": time_text(page.since)}


def _settled(of: Page | Histogram | Season) -> Shape:
    if of.settled_at is None:
        return {}
    return {"settled_at": time_text(of.settled_at), "revision": of.revision}


def _entries(page: Page, entries: Iterable[Entry]) -> list[Shape]:
    return [_moved(page, entry_json(entry), entry) for entry in entries]


def _moved(page: Page, shape: Shape, row: Entry | Place) -> Shape:
    """With the rank at an earlier instant, and the change since, where the page tells them."""
    if page.since is None:
        return shape
    return shape | {"rank_before": row.rank_before, "change": row.change}


def _place(page: Page, place: Place, asked: Collection[str] = ()) -> Shape:
    shape: Shape = {"rank": place.rank, "member": place.member, "score": place.score}
    if place.pending:
        shape["pending"] = True
    if place.state is not MemberState.ACTIVE:
        shape["state"] = place.state.value
    for name in ("rank_among", "percentile"):
        if name in asked:
            shape[name] = getattr(place, name)
    return _moved(page, shape | _profile(place.profile), place)


def _profile(profile: Profile | None) -> Shape:
    if profile is None:
        return {}
    return {"name": profile.name, "details": profile.details}
