"""Answers from PostgreSQL: the same questions, the same signatures, the same bytes."""

from truerank.model import Board, Freshness, MemberState, Page, PageRequest, Season, Source
from truerank.read.decode import RawPage, RawPlace, RawSlice, decode
from truerank.read.encode import Wanted, wanted
from truerank.read.scores import row_bytes
from truerank.read.tokens import of_answer
from truerank.steps import Query, Steps

# One statement, so one snapshot.
_PAGE = """
    SELECT p.*, truerank.states_on(%s, %s::text[]), truerank.bans_ended(%s::text[])
    FROM truerank.read_page(
        %s, %s, %s, %s, %s::text[], %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::bytea[], %s) AS p"""
_LIFT = "SELECT truerank.lift_bans(%s::text[], %s)"


def read_page(board: Board, season: Season, request: PageRequest) -> Steps[Page]:
    """Read one page in one statement, so in one snapshot; always fresh.

    A ban of a member asked for whose time has passed is lifted first.

    Source: `schema/functions/read_page.sql`.
    """
    asked = wanted(board, season, request)
    ((*page, has_ended),) = yield Query(_PAGE, _parameters(board, season, asked))
    if has_ended:
        yield Query(_LIFT, (list(asked.members), len(asked.members)))
        ((*page, _),) = yield Query(_PAGE, _parameters(board, season, asked))
    (
        total, first, rows, better, low, high, befores, betters, keys, up_tos,
        around_first, around_rows, around_better, counts, epoch, read_at, snapshot, lives,
        states,
    ) = page  # fmt: skip
    places = [
        MemberState(state)
        if key is None
        else RawPlace(before=before, better=better_n, sort_key=bytes(key), up_to=up_to or 0)
        for before, better_n, key, up_to, state in zip(
            befores or (), betters or (), keys or (), up_tos or (), states, strict=True
        )
    ]
    around = None
    if around_first is not None:
        around = RawSlice(
            first=around_first,
            rows=[bytes(row) for row in around_rows or ()],
            better=around_better or 0,
        )
    raw = RawPage(
        total=total,
        slice=RawSlice(first=first, rows=[bytes(row) for row in rows or ()], better=better or 0),
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
            projected_through=read_at,
            staleness_ms=0,
            token=None if snapshot is None else of_answer(snapshot, lives),
            lives=lives,
        ),
    )
    return decode(board, season, request, raw)


def _parameters(board: Board, season: Season, asked: Wanted) -> tuple[object, ...]:
    members = list(asked.members)
    return (
        board.id,
        members,
        members,
        season.ranking,
        row_bytes(board),
        asked.offset,
        asked.limit,
        members,
        asked.around_limit,
        asked.token,
        asked.start,
        asked.beside_key,
        asked.beside_member,
        asked.low,
        asked.high,
        asked.around_place,
        asked.up_to,
        list(asked.marks),
        asked.dense,
    )
