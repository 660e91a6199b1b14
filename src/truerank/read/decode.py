"""From the bytes that both readers get to an answer: one decoding, so one answer."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from truerank.model import (
    Board,
    Entry,
    Freshness,
    MemberState,
    Numbering,
    Page,
    PageRequest,
    Place,
    ScoreCount,
    Season,
)
from truerank.read import cursors
from truerank.read.scores import exact_text, key_bytes, row_bytes, scaled, score_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPlace:
    """Where a member stands: how many come before it, how many are better, its sort key.

    Counted densely, those who are better are different scores and tie-breaks, not members.
    Where percentiles are asked for, also how many are equal or better.
    """

    before: int
    better: int
    sort_key: bytes
    up_to: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSlice:
    """Neighbouring rows (sort key and member), the offset of the first, how many are better."""

    first: int
    rows: Sequence[bytes]
    better: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage:
    """What page.lua and read_page.sql answer, in the same terms."""

    total: int
    slice: RawSlice
    low: int  # places of the slice's bounds
    high: int
    counts: Sequence[int]
    places: Sequence[RawPlace | MemberState]  # where there is no place, whether one is withheld
    around: RawSlice | None
    freshness: Freshness


def decode(board: Board, season: Season, request: PageRequest, raw: RawPage) -> Page:
    """Number the rows and name the scores."""
    following, preceding = _cursors(season, raw)
    return Page(
        board=board.spec.key,
        season=season.label,
        state=season.state,
        total=raw.total,
        entries=_entries(board, raw.slice, request.numbering),
        freshness=raw.freshness,
        places=_places(board, request, raw),
        around=_entries(board, raw.around, request.numbering) if raw.around else (),
        matching=max(0, raw.high - raw.low),
        counts=tuple(
            ScoreCount(
                score=exact_text(board, scaled(board, score, "score")),
                better=better,
                equal=up_to - better,
            )
            for (score, _), better, up_to in zip(
                request.scores, raw.counts[::2], raw.counts[1::2], strict=True
            )
        ),
        next=following,
        previous=preceding,
    )


def _places(board: Board, request: PageRequest, raw: RawPage) -> tuple[Place, ...]:
    """The places of the members asked for, in the order asked."""
    equal_bytes = row_bytes(board)
    rows = sorted(
        {
            place.sort_key + member.encode()
            for member, place in zip(request.members, raw.places, strict=True)
            if isinstance(place, RawPlace)
        }
        if request.among
        else ()
    )
    equals = [row[:equal_bytes] for row in rows]
    if request.numbering is Numbering.DENSE:
        equals = sorted(set(equals))
    ordinal = request.numbering is Numbering.ORDINAL
    places = []
    for member, place in zip(request.members, raw.places, strict=True):
        if isinstance(place, MemberState):
            places.append(Place(member=member, rank=None, score=None, state=place))
            continue
        among = None
        if request.among:
            among = 1 + (
                bisect_left(rows, place.sort_key + member.encode())
                if ordinal
                else bisect_left(equals, place.sort_key[:equal_bytes])
            )
        places.append(
            Place(
                member=member,
                rank=(place.before if ordinal else place.better) + 1,
                score=score_text(board, place.sort_key),
                rank_among=among,
                percentile=_percentile(raw.total, place) if request.percentile else None,
            )
        )
    return tuple(places)


def _percentile(total: int, place: RawPlace) -> float:
    # One who is alone is below nobody.
    return 100.0 if total == 1 else 100 * (total - place.up_to) / (total - 1)


def _cursors(season: Season, raw: RawPage) -> tuple[str | None, str | None]:
    rows, first = raw.slice.rows, raw.slice.first
    if not rows:
        return None, None
    more = first + len(rows) < raw.high
    return (
        cursors.text_of(season, rows[-1], backward=False) if more else None,
        cursors.text_of(season, rows[0], backward=True) if first > raw.low else None,
    )


def _entries(board: Board, part: RawSlice, numbering: Numbering) -> tuple[Entry, ...]:
    equal_bytes, whole_bytes = row_bytes(board), key_bytes(board)
    entries = []
    rank, shown = part.better + 1, b""
    for at, row in enumerate(part.rows):
        equals = row[:equal_bytes]
        if at and equals != shown:
            rank = rank + 1 if numbering is Numbering.DENSE else part.first + at + 1
        shown = equals
        entries.append(
            Entry(
                rank=part.first + at + 1 if numbering is Numbering.ORDINAL else rank,
                member=row[whole_bytes:].decode(),
                score=score_text(board, row),
            )
        )
    return tuple(entries)
