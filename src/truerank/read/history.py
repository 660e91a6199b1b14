"""A board as it stood at an instant, from its events, and who stood where at an earlier one.

Exact, and always PostgreSQL's own answer. It costs a pass over all events of the board for each
instant, unlike any other read.
"""

from collections.abc import Sequence
from dataclasses import replace as with_values
from datetime import datetime

from msgspec.structs import replace

from truerank.errors import BoardUnknown, HistoryForgotten, InvalidInput
from truerank.model import (
    Board,
    Consistency,
    Entry,
    Freshness,
    Need,
    Page,
    PageRequest,
    Season,
    Source,
)
from truerank.read.database import lifting
from truerank.read.decode import RawPage, RawSlice, decode, raw_places
from truerank.read.encode import Wanted, wanted
from truerank.read.scores import key_bytes
from truerank.steps import Query, Steps

_PAGE = """
    SELECT refused, exact_from, ban_ended, epoch, read_at, age_ms, state, settled_at, revision,
           total, slice, slice_better, slice_before, member_places, member_better, member_keys,
           member_up_to, member_before, states, around_first, around, around_better, around_before
    FROM truerank.read_history(%s, %s, %s, %s, %s, %s, %s, %s, %s::text[], %s, %s)"""

Befores = dict[str, int | None]  # by member


def looks_back(request: PageRequest) -> bool:
    """Whether it takes the history to answer."""
    return request.as_of is not None or request.since is not None


def check_asked(request: PageRequest, consistency: Consistency, source: Source | None) -> None:
    """Refuse what the history can't answer.

    Raises:
        InvalidInput: `field` names what doesn't go with `as_of` or `since`, or isn't an instant.
    """
    for name, instant in (("as_of", request.as_of), ("since", request.since)):
        if instant is not None and (
            not isinstance(instant, datetime) or instant.utcoffset() is None
        ):
            raise InvalidInput(f"{name} is a time with an offset", field=name)
    if request.as_of is not None and request.since is not None and request.since > request.as_of:
        raise InvalidInput("since is an instant before as_of", field="since")
    asked = "since" if request.as_of is None else "as_of"
    if source is Source.PROJECTION:
        raise InvalidInput(f"{asked} is answered by PostgreSQL alone", field="source")
    if consistency.monotonic or consistency.need not in {Need.ANY, Need.AUTHORITATIVE}:
        need = "monotonic" if consistency.need is Need.ANY else str(consistency.need)
        raise InvalidInput(f"{asked} is always authoritative, never {need}", field=need)
    if request.cursor is not None:
        raise InvalidInput(f"pages with {asked} are told by offset", field="cursor")
    for name in ("score_min", "score_max", "scores"):
        if getattr(request, name) not in {None, ()}:
            raise InvalidInput(f"{name} doesn't go with {asked}", field=name)


def read_page(board: Board, season: Season, shown: Season, request: PageRequest) -> Steps[Page]:
    """Read one page in one statement, so in one snapshot.

    Args:
        board: whose.
        season: as it is.
        shown: as readers are shown it: of a frozen one they see nothing later.
        request: with `as_of`, `since` or both; see `check_asked`.

    Raises:
        InvalidInput: an instant is yet to come.
        HistoryForgotten: it isn't known any more.
        BoardUnknown: it was deleted just now.

    Source: `schema/functions/read_history.sql`.
    """
    asked = wanted(board, season, request)
    query = _query(season, shown, request, asked)
    rows = yield query
    if rows and rows[0][2]:
        yield lifting(asked.members)
        rows = yield query
    if not rows:
        raise BoardUnknown(f"there is no board {board.spec.key!r}", field="board")
    (
        refused, exact_from, _, epoch, read_at, age_ms, state, settled_at, revision,
        total, listed, better, before, places, betters, keys, up_tos, members_before, states,
        around_first, around_rows, around_better, around_before,
    ) = rows[0]  # fmt: skip
    if refused is not None:
        raise _refusal(board, season, request, refused, exact_from)
    own = raw_places(places, betters, keys, up_tos, states)
    around = None
    if around_first is not None:
        around = RawSlice(first=around_first, rows=around_rows or (), better=around_better or 0)
    raw = RawPage(
        total=total,
        slice=RawSlice(first=asked.offset, rows=listed or (), better=better or 0),
        low=0,
        high=total,
        counts=(),
        places=own[1:] if request.around is not None else own,
        around=around,
        freshness=Freshness(
            source=Source.DATABASE,
            epoch=epoch.hex,
            generation=None,
            tick=None,
            projected_through=read_at,
            staleness_ms=age_ms,
            as_of=request.as_of,
        ),
    )
    stood = with_values(season, state=state, settled_at=settled_at, revision=revision)
    page = replace(decode(board, stood, request, raw), next=None, previous=None)
    if request.since is None:
        return page
    told = (*raw.slice.rows, *(raw.around.rows if raw.around else ()))
    ranks = (*(before or ()), *(around_before or ()))
    befores: Befores = dict(zip(asked.members, members_before or (), strict=True))
    befores |= {
        row[key_bytes(board) :].decode(): rank for row, rank in zip(told, ranks, strict=True)
    }
    return _compared(page, befores, request.since)


def _compared(page: Page, befores: Befores, since: datetime) -> Page:
    def compared(entries: Sequence[Entry]) -> tuple[Entry, ...]:
        return tuple(replace(entry, rank_before=befores[entry.member]) for entry in entries)

    return replace(
        page,
        since=since,
        entries=compared(page.entries),
        around=compared(page.around),
        places=tuple(replace(each, rank_before=befores[each.member]) for each in page.places),
    )


def _query(season: Season, shown: Season, request: PageRequest, asked: Wanted) -> Query:
    parameters = (
        season.ranking,
        shown.ranking,
        shown.frozen_at,
        request.as_of,
        request.since,
        str(request.numbering),
        asked.offset,
        asked.limit,
        list(asked.members),
        asked.around_limit,
        asked.around_place,
    )
    return Query(_PAGE, parameters)


def _refusal(
    board: Board, season: Season, request: PageRequest, refused: str, exact_from: datetime | None
) -> InvalidInput | HistoryForgotten:
    if refused == "future":
        field = "since" if request.as_of is None else "as_of"
        return InvalidInput(f"{field} is yet to come", field=field)
    told = f"the events of season {season.label} of board {board.spec.key!r} are forgotten"
    if exact_from is None:
        return HistoryForgotten(told)
    return HistoryForgotten(
        f"{told} in part: how it stood is known from {exact_from.isoformat()} on",
        exact_from=exact_from,
    )
