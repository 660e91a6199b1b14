"""Answers from PostgreSQL: the same questions, the same signatures, the same bytes."""

from truerank.model import Board, Freshness, Page, PageRequest, Season, Source
from truerank.read.decode import RawPage, RawPlace, RawSlice, decode, row_bytes
from truerank.steps import Query, Steps

_PAGE = "SELECT * FROM truerank.read_page(%s, %s, %s, %s, %s::text[], %s)"


def read_page(board: Board, season: Season, request: PageRequest) -> Steps[Page]:
    """Read one page in one statement, so in one snapshot; always fresh.

    Source: `schema/functions/read_page.sql`.
    """
    members = list(request.members)
    if request.around is not None:
        members.insert(0, request.around)
    ((
        total, rows, better, befores, betters, keys, around_first, around_rows, around_better,
        epoch, read_at,
    ),) = yield Query(
        _PAGE,
        (
            season.ranking,
            row_bytes(board),
            request.offset,
            request.limit,
            members,
            request.around_limit if request.around is not None else 0,
        ),
    )  # fmt: skip
    places = [
        None if key is None else RawPlace(before=before, better=better_n, sort_key=bytes(key))
        for before, better_n, key in zip(befores or (), betters or (), keys or (), strict=True)
    ]
    around = None
    if around_first is not None:
        around = RawSlice(
            first=around_first, rows=[bytes(row) for row in around_rows], better=around_better
        )
    raw = RawPage(
        total=total,
        slice=RawSlice(
            first=request.offset, rows=[bytes(row) for row in rows or ()], better=better or 0
        ),
        places=places[1:] if request.around is not None else places,
        around=around,
        freshness=Freshness(
            source=Source.DATABASE,
            epoch=epoch.hex,
            generation=None,
            tick=None,
            projected_through=read_at,
            staleness_ms=0,
        ),
    )
    return decode(board, season, request, raw)
