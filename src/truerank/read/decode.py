"""From the bytes that both readers get to an answer: one decoding, so one answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from truerank.model import (
    Board,
    Entry,
    Freshness,
    Numbering,
    Order,
    Page,
    PageRequest,
    Place,
    Season,
)

_SIGN = 1 << 63
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPlace:
    """Where a member stands: how many come before it, how many are better, its sort key."""

    before: int
    better: int
    sort_key: bytes


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
    places: Sequence[RawPlace | None]
    around: RawSlice | None
    freshness: Freshness


def row_bytes(board: Board) -> int:
    """Leading bytes of a sort key in which equals agree: the score and every tie-break."""
    return _NUMBER_BYTES * (1 + len(board.spec.tie_breaks))


def key_bytes(board: Board) -> int:
    """Bytes of a sort key: score, tie-breaks, instant, position."""
    return row_bytes(board) + 2 * _NUMBER_BYTES


def score_text(board: Board, sort_key: bytes) -> str:
    """The score at the front of a sort key, exact, in the board's unit: `12.345`."""
    number = int.from_bytes(sort_key[:_NUMBER_BYTES]) - _SIGN
    if board.spec.order is Order.DESC:
        number = ~number
    if board.spec.decimals == 0:
        return str(number)
    return f"{Decimal(number).scaleb(-board.spec.decimals):f}"


def decode(board: Board, season: Season, request: PageRequest, raw: RawPage) -> Page:
    """Number the rows and name the scores."""
    ordinal = request.numbering is Numbering.ORDINAL
    places = tuple(
        Place(member=member, rank=None, score=None)
        if place is None
        else Place(
            member=member,
            rank=(place.before if ordinal else place.better) + 1,
            score=score_text(board, place.sort_key),
        )
        for member, place in zip(request.members, raw.places, strict=True)
    )
    return Page(
        board=board.spec.key,
        season=season.label,
        total=raw.total,
        entries=_entries(board, raw.slice, ordinal=ordinal),
        freshness=raw.freshness,
        places=places,
        around=_entries(board, raw.around, ordinal=ordinal) if raw.around else (),
    )


def _entries(board: Board, part: RawSlice, *, ordinal: bool) -> tuple[Entry, ...]:
    equal_bytes, whole_bytes = row_bytes(board), key_bytes(board)
    entries = []
    rank, shown = part.better + 1, b""
    for at, row in enumerate(part.rows):
        equals = row[:equal_bytes]
        if at and equals != shown:
            rank = part.first + at + 1
        shown = equals
        entries.append(
            Entry(
                rank=part.first + at + 1 if ordinal else rank,
                member=row[whole_bytes:].decode(),
                score=score_text(board, row),
            )
        )
    return tuple(entries)
