"""From the bytes that both readers get to an answer: one decoding, so one answer."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import repeat

import msgspec

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
from truerank.read.scores import exact_text, key_bytes, row_bytes, scaled, score_text, score_texts


class RawPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a member stands: how many come before it, how many are better, its sort key.

    Counted densely, those who are better are different scores and tie-breaks, not members.
    Where percentiles are asked for, also how many are equal or better.
    """

    before: int
    better: int
    sort_key: bytes
    up_to: int = 0


class RawSlice(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring rows (sort key and member), the offset of the first, how many are better."""

    first: int
    rows: Sequence[bytes]
    better: int


class RawPage(msgspec.Struct, frozen=True, kw_only=True):
    """What page.lua and read_page.sql answer, in the same terms."""

    total: int
    slice: RawSlice
    low: int  # places of the slice's bounds
    high: int
    counts: Sequence[int]  # of members; counted densely, then also of different scores
    places: Sequence[RawPlace | MemberState]  # where there is no place, whether one is withheld
    around: RawSlice | None
    freshness: Freshness


def raw_places(
    befores: Sequence[int] | None,
    betters: Sequence[int] | None,
    keys: Sequence[bytes | None] | None,
    up_tos: Iterable[int] | None,
    states: Sequence[str] | None,
) -> list[RawPlace | MemberState]:
    """The places of members as PostgreSQL gives them, column by column; None: of nobody."""
    return [
        MemberState(state)
        if key is None
        else RawPlace(before=before, better=better, sort_key=key, up_to=up_to)
        for before, better, key, state, up_to in zip(
            befores or (), betters or (), keys or (), states or (), up_tos or (), strict=True
        )
    ]


def decode(board: Board, season: Season, request: PageRequest, raw: RawPage) -> Page:
    """Number the rows and name the scores."""
    following, preceding = _cursors(season, raw)
    return Page(
        board=board.spec.key,
        season=season.label,
        cohort=season.cohort,
        state=season.state,
        settled_at=season.settled_at,
        revision=season.revision,
        total=raw.total,
        entries=_entries(board, raw.slice, request.numbering),
        freshness=raw.freshness,
        places=_places(board, request, raw),
        around=_around(board, request, raw) if raw.around else (),
        matching=max(0, raw.high - raw.low),
        counts=_counts(board, request, raw) if request.scores else (),
        next=following,
        previous=preceding,
    )


def _counts(board: Board, request: PageRequest, raw: RawPage) -> tuple[ScoreCount, ...]:
    asked = 2 * len(request.scores)
    betters, up_tos = raw.counts[:asked:2], raw.counts[1:asked:2]
    passed = {
        Numbering.ORDINAL: up_tos,  # being the last to reach it
        Numbering.COMPETITION: betters,
        Numbering.DENSE: raw.counts[asked::2],
    }[request.numbering]
    return tuple(
        ScoreCount(
            score=exact_text(board, scaled(board, score, "score")),
            better=better,
            equal=up_to - better,
            rank=before + 1,
        )
        for (score, _), better, up_to, before in zip(
            request.scores, betters, up_tos, passed, strict=True
        )
    )


def _places(board: Board, request: PageRequest, raw: RawPage) -> tuple[Place, ...]:
    """The places of the members asked for, in the order asked."""
    if not request.members:
        return ()
    ranks_among = _ranks_among(board, request, raw) if request.among else repeat(None)
    ordinal = request.numbering is Numbering.ORDINAL
    return tuple(
        [
            Place(member=member, rank=None, score=None, state=place)
            if isinstance(place, MemberState)
            else Place(
                member=member,
                rank=(place.before if ordinal else place.better) + 1,
                score=score_text(board, place.sort_key),
                rank_among=among,
                percentile=_percentile(raw.total, place) if request.percentile else None,
            )
            for member, place, among in zip(request.members, raw.places, ranks_among, strict=False)
        ]
    )


def _ranks_among(board: Board, request: PageRequest, raw: RawPage) -> list[int | None]:
    """The ranks that members have among themselves; None where one has no place."""
    asked = [
        place.sort_key + member.encode() if isinstance(place, RawPlace) else None
        for member, place in zip(request.members, raw.places, strict=True)
    ]
    rows = sorted({row for row in asked if row is not None})
    equal_bytes = None if request.numbering is Numbering.ORDINAL else row_bytes(board)
    heads = [row[:equal_bytes] for row in rows]
    if request.numbering is Numbering.DENSE:
        heads = sorted(set(heads))
    return [None if row is None else 1 + bisect_left(heads, row[:equal_bytes]) for row in asked]


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


def _around(board: Board, request: PageRequest, raw: RawPage) -> tuple[Entry, ...]:
    """The neighbourhood, without the rows that the slice of the same answer shows."""
    assert raw.around is not None, "asked for only where there is one"
    entries = _entries(board, raw.around, request.numbering)
    shown_from = max(0, raw.slice.first - raw.around.first)
    shown_to = max(shown_from, raw.slice.first + len(raw.slice.rows) - raw.around.first)
    return entries[:shown_from] + entries[shown_to:] if raw.slice.rows else entries


def _entries(board: Board, part: RawSlice, numbering: Numbering) -> tuple[Entry, ...]:
    if not part.rows:
        return ()
    equal_bytes, whole_bytes = row_bytes(board), key_bytes(board)
    heads = [row[:equal_bytes] for row in part.rows]
    ranks, scores = _ranks(part, numbering, heads), score_texts(board, heads)
    members = [row[whole_bytes:].decode() for row in part.rows]
    return tuple(map(Entry, ranks, members, scores))


def _ranks(part: RawSlice, numbering: Numbering, heads: Sequence[bytes]) -> Sequence[int]:
    following = range(part.first + 1, part.first + 1 + len(heads))
    if numbering is Numbering.ORDINAL:
        return following
    dense = numbering is Numbering.DENSE
    if len(set(heads)) == len(heads) and part.better == part.first:
        return following  # nobody shares a place: most pages, and a third of the time
    ranks = []
    rank, shown = part.better + 1, heads[0]
    for ordinal, head in zip(following, heads, strict=True):
        if head != shown:
            rank = rank + 1 if dense else ordinal
            shown = head
        ranks.append(rank)
    return ranks
