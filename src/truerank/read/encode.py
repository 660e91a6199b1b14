"""From what a reader asks to the bytes by which both stores look it up."""

from collections.abc import Sequence

import msgspec

from truerank.errors import InvalidInput
from truerank.model import Board, Numbering, Order, PageRequest, Season
from truerank.read import cursors
from truerank.read.scores import SIGN, key_after, key_bytes, number_bytes, scaled

_END = b"\xff" * 64  # after every sort key


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the terms of page.lua and read_page.sql."""

    start: str  # at, after, before
    offset: int
    beside_key: bytes | None
    beside_member: str | None
    low: bytes | None
    high: bytes | None
    limit: int
    members: Sequence[str]
    around_place: int | None
    around_limit: int
    up_to: bool
    marks: Sequence[bytes]
    token: bool
    dense: bool

    @property
    def beside(self) -> bytes:
        """The row of the cursor."""
        assert self.beside_key is not None, "asked for only where there is a cursor"
        assert self.beside_member is not None, "they come together"
        return self.beside_key + self.beside_member.encode()


def wanted(board: Board, season: Season, request: PageRequest) -> Wanted:
    """Look up what the request names by the bytes of this board's sort keys.

    Raises:
        InvalidInput: a score doesn't fit the board, or the text is no cursor.
        CursorGone: the cursor is of another board or season.
    """
    low, high = _bounds(board, request)
    start, row = "at", None
    if request.cursor is not None:
        cursor = cursors.parse(request.cursor)
        row = cursor.row_in(season, key_bytes(board))
        start = "before" if cursor.backward else "after"
    return Wanted(
        start=start,
        offset=0 if row is not None else request.offset,
        beside_key=None if row is None else row[: key_bytes(board)],
        beside_member=None if row is None else row[key_bytes(board) :].decode(),
        low=low,
        high=high,
        limit=request.limit,
        members=request.members if request.around is None else (request.around, *request.members),
        around_place=None if request.around_rank is None else request.around_rank - 1,
        around_limit=0
        if request.around is None and request.around_rank is None
        else request.around_limit,
        up_to=request.percentile,
        marks=[mark for score, ties in request.scores for mark in _marks(board, score, ties)],
        token=request.token,
        dense=request.numbering is Numbering.DENSE,
    )


def _bounds(board: Board, request: PageRequest) -> tuple[bytes | None, bytes | None]:
    if request.score_min is None and request.score_max is None:
        return None, None
    order = board.spec.order
    low, high = (
        None if score is None else scaled(board, score, name)
        for name, score in (("score_min", request.score_min), ("score_max", request.score_max))
    )
    if low is not None and high is not None and low > high:
        raise InvalidInput("score_min is above score_max", field="score_min")
    least, most = (None if each is None else number_bytes(order, each) for each in (low, high))
    first, last = (most, least) if order is Order.DESC else (least, most)
    return first, None if last is None else key_after(last)


def _marks(board: Board, score: object, ties: Sequence[int]) -> tuple[bytes, bytes]:
    if ties and len(ties) != len(board.spec.tie_breaks):
        raise InvalidInput(
            f"the board has {len(board.spec.tie_breaks)} tie-breaks, not {len(ties)}", field="ties"
        )
    prefix = number_bytes(board.spec.order, scaled(board, score, "scores"))
    for tie, value in zip(board.spec.tie_breaks, ties, strict=False):
        if type(value) is not int or not -SIGN <= value < SIGN:
            raise InvalidInput("a tie-break is a whole number of 64 bits", field="ties")
        prefix += number_bytes(tie.order, value)
    return prefix, key_after(prefix) or _END
