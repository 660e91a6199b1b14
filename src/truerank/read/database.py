"""Answers from PostgreSQL: the same questions, the same signatures, the same bytes."""

from truerank.model import Board, Freshness, MemberState, Page, PageRequest, Season, Source
from truerank.read.decode import RawPage, RawPlace, RawSlice, decode
from truerank.read.encode import Wanted, wanted
from truerank.read.scores import row_bytes
from truerank.read.tokens import of_answer
from truerank.steps import Query, Steps

# What the function takes where nothing is said: to send it would only cost time.
_DEFAULTS = {
    "p_offset": 0,
    "p_limit": 0,
    "p_members": [],
    "p_around_limit": 0,
    "p_compared": False,
    "p_start": "at",
    "p_up_to": False,
    "p_marks": [],
    "p_dense": False,
}
_TYPES = {"p_members": "text[]", "p_marks": "bytea[]"}
_LIFT = "SELECT truerank.lift_bans(%s::text[], %s)"
_FOLD = "SELECT truerank.fold_populations(%s)"
_FOLDED_MAX = 10_000


def read_page(board: Board, season: Season, request: PageRequest) -> Steps[Page]:
    """Read one page in one statement, so in one snapshot; always fresh.

    A ban of a member asked for whose time has passed is lifted first. Changes of the population
    that no worker took in are taken in, for the readers to come.

    Source: `schema/functions/read_page.sql`.
    """
    asked = wanted(board, season, request)
    query = _query(board, season, asked)
    ((*page, ban_ended, fold_due),) = yield query
    if fold_due:
        yield Query(_FOLD, (_FOLDED_MAX,))
    if ban_ended:
        yield Query(_LIFT, (list(asked.members), len(asked.members)))
        ((*page, _, _),) = yield query
    (
        total, first, rows, better, low, high, befores, betters, keys, up_tos,
        around_first, around_rows, around_better, counts, epoch, read_at, snapshot, lives,
        states,
    ) = page  # fmt: skip
    places = [
        MemberState(state)
        if key is None
        else RawPlace(before=before, better=better_n, sort_key=bytes(key), up_to=up_to)
        for before, better_n, key, up_to, state in zip(
            befores or (), betters or (), keys or (), up_tos or [0] * len(keys or ()), states or (),
            strict=True,
        )
    ]  # fmt: skip
    around = None
    if around_first is not None:
        around = RawSlice(
            first=around_first,
            rows=list(map(bytes, around_rows or ())),
            better=around_better or 0,
        )
    raw = RawPage(
        total=total,
        slice=RawSlice(first=first, rows=list(map(bytes, rows or ())), better=better or 0),
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


def _query(board: Board, season: Season, asked: Wanted) -> Query:
    """One statement, so one snapshot."""
    named = {
        "p_ranking": season.ranking,
        "p_row_bytes": row_bytes(board),
        "p_offset": asked.offset,
        "p_limit": asked.limit,
        "p_members": list(asked.members),
        "p_around_limit": asked.around_limit,
        "p_compared": asked.token,
        "p_start": asked.start,
        "p_beside_key": asked.beside_key,
        "p_beside_member": asked.beside_member,
        "p_low": asked.low,
        "p_high": asked.high,
        "p_around_place": asked.around_place,
        "p_up_to": asked.up_to,
        "p_marks": list(asked.marks),
        "p_dense": asked.dense,
    }
    sent = {name: value for name, value in named.items() if value != _DEFAULTS.get(name)}
    placed = ", ".join(
        f"{name} => %s::{_TYPES[name]}" if name in _TYPES else f"{name} => %s" for name in sent
    )
    sql = f"SELECT * FROM truerank.read_page({placed})"  # noqa: S608 - the names are ours
    return Query(sql, tuple(sent.values()))
