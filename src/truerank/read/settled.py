"""Answers from the settlement of a final season: the same questions, and nothing moves them."""

from truerank.errors import NotSettled
from truerank.model import Board, Freshness, Page, PageRequest, Season, Source
from truerank.read.decode import RawPage, RawSlice, decode, raw_places
from truerank.read.encode import Wanted, wanted
from truerank.read.scores import row_bytes
from truerank.read.season import find_season
from truerank.steps import Query, Steps

# One statement, so one snapshot.
_PAGE = """
    SELECT p.* FROM truerank.read_settled(
        %s, NULL, %s, %s, %s, %s::text[], %s, %s, %s, %s, %s, %s, %s::bytea[], %s) AS p"""
_READY = "SELECT truerank.settles_at(%s, %s)"


def read_page(board: Board, season: Season, request: PageRequest) -> Steps[Page]:
    """Read one page of the newest settlement of a season.

    Places are those of the settlement. A member who is hidden, banned, merged or deleted by now
    keeps its place, under a stand-in instead of its id.

    Raises:
        NotSettled: the season isn't final; when that may be is in it.

    Source: `schema/functions/read_settled.sql`.
    """
    rows = yield Query(_PAGE, _parameters(board, season, wanted(board, season, request)))
    if not rows:
        raise (yield from not_settled(board, (yield from find_season(board, season.label))))
    (
        revision, settled_at, total, first, slice_rows, better, low, high, befores, betters, keys,
        up_tos, around_first, around_rows, around_better, counts, states, epoch,
    ) = rows[0]  # fmt: skip
    places = raw_places(befores, betters, keys, up_tos, states)
    around = None
    if around_first is not None:
        around = RawSlice(first=around_first, rows=around_rows or (), better=around_better or 0)
    return decode(
        board,
        season.settled(settled_at, revision),
        request,
        RawPage(
            total=total,
            slice=RawSlice(first=first, rows=slice_rows or (), better=better or 0),
            low=low,
            high=high,
            places=places[1:] if request.around is not None else places,
            around=around,
            counts=counts or (),
            freshness=Freshness(
                source=Source.DATABASE,
                epoch=epoch.hex,
                generation=None,
                tick=None,
                projected_through=settled_at,
                staleness_ms=0,
                settled=True,
            ),
        ),
    )


def not_settled(board: Board, season: Season) -> Steps[NotSettled]:
    """The refusal for a season that isn't final, and when to come back: its board's hold included.

    Source: `schema/functions/settles_at.sql`.
    """
    ((ready_at,),) = yield Query(_READY, (board.id, season.label))
    when = "" if ready_at is None else f"; not before {ready_at.isoformat()}"
    return NotSettled(
        f"season {season.label} of board {board.spec.key!r} is {season.state}{when}",
        ready_at=ready_at,
    )


def _parameters(board: Board, season: Season, asked: Wanted) -> tuple[object, ...]:
    return (
        season.ranking,
        row_bytes(board),
        asked.offset,
        asked.limit,
        list(asked.members),
        asked.around_limit,
        asked.start,
        asked.beside_key,
        asked.low,
        asked.high,
        asked.around_place,
        list(asked.marks),
        asked.dense,
    )
