"""Answers from PostgreSQL: the same questions, the same signatures, the same bytes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from truerank.model import Board, Freshness, MemberState, Page, PageRequest, Season, Source
from truerank.read.decode import RawPage, RawPlace, RawSlice, decode, raw_places
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
# What is read of the answer: always, and where something is sent. The rest would be empty.
_ALWAYS = ("total", "slice_first", "slice_low", "slice_high", "epoch", "read_at", "fold_due")
_COLUMNS = {
    "p_limit": ("slice", "slice_better"),
    "p_members": (
        "member_places", "member_better", "member_keys", "member_up_to", "member_states",
        "ban_ended",
    ),
    "p_around_limit": ("around_first", "around", "around_better"),
    "p_compared": ("snapshot", "lives"),
    "p_marks": ("counts",),
}  # fmt: skip
_LIFT = "SELECT truerank.lift_bans(%s::text[], NULL)"
_FOLD = "SELECT truerank.fold_populations(%s)"
_FOLDED_MAX = 10_000
_STATEMENTS_MAX = 256
_APART_MAX = 4  # members: for the driver, to write an array of one is as much work as the rest


def read_page(board: Board, season: Season, request: PageRequest) -> Steps[Page]:
    """Read one page in one statement, so in one snapshot; always fresh.

    A ban of a member asked for whose time has passed is lifted first. Changes of the population
    that no worker took in are taken in, for the readers to come.

    Source: `schema/functions/read_page.sql`.
    """
    asked = wanted(board, season, request)
    query, columns = _query(board, season, asked)
    (row,) = yield query
    answer = dict(zip(columns, row, strict=True))
    if answer["fold_due"]:
        yield Query(_FOLD, (_FOLDED_MAX,))
    if answer.get("ban_ended"):
        yield lifting(asked.members)
        (row,) = yield query
        answer = dict(zip(columns, row, strict=True))
    places = _places(answer) if asked.members else []
    raw = RawPage(
        total=answer["total"],
        slice=_slice(answer, "slice"),
        low=answer["slice_low"],
        high=answer["slice_high"],
        places=places[1:] if request.around is not None else places,
        around=None if answer.get("around_first") is None else _slice(answer, "around"),
        counts=answer.get("counts", ()),
        freshness=Freshness(
            source=Source.DATABASE,
            epoch=answer["epoch"].hex,
            generation=None,
            tick=None,
            projected_through=answer["read_at"],
            staleness_ms=0,
            token=of_answer(answer["snapshot"], answer["lives"])
            if answer.get("snapshot") is not None
            else None,
            lives=answer.get("lives"),
        ),
    )
    return decode(board, season, request, raw)


def lifting(members: Sequence[str]) -> Query:
    """The statement that lifts the bans of these members whose time has passed.

    Source: `schema/functions/lift_bans.sql`.
    """
    return Query(_LIFT, (list(members),))


def _slice(answer: Mapping[str, Any], name: str) -> RawSlice:
    return RawSlice(
        first=answer[f"{name}_first"],
        rows=answer.get(name) or (),
        better=answer.get(f"{name}_better") or 0,
    )


def _places(answer: Mapping[str, Any]) -> list[RawPlace | MemberState]:
    befores = answer["member_places"]
    return raw_places(
        befores,
        answer["member_better"],
        answer["member_keys"],
        answer.get("member_up_to") or repeat(0, len(befores)),
        answer["member_states"],
    )


def _query(board: Board, season: Season, asked: Wanted) -> tuple[Query, Sequence[str]]:
    """One statement, so one snapshot; and the names of its columns."""
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
    apart = len(asked.members) if len(asked.members) <= _APART_MAX else 0
    sql, columns = _statement(tuple(sent), apart)
    params: list[Any] = []
    for name, value in sent.items():
        if apart and name == "p_members":
            params += asked.members
        else:
            params.append(value)
    return Query(sql, params), columns


@lru_cache(maxsize=_STATEMENTS_MAX)
def _statement(names: Sequence[str], apart: int) -> tuple[str, Sequence[str]]:
    """The statement that sends these parameters, and the columns that it reads.

    The same object each time: the driver then keeps what it knows of it.

    Args:
        names: of the parameters.
        apart: so many members are sent one by one; 0: as an array.
    """
    columns = [*_ALWAYS, *(column for name in names for column in _COLUMNS.get(name, ()))]
    values = {name: f"%s::{kind}" for name, kind in _TYPES.items()}
    if apart:
        values["p_members"] = f"ARRAY[{', '.join(['%s'] * apart)}]::text[]"
    placed = ", ".join(f"{name} => {values.get(name, '%s')}" for name in names)
    asked = ", ".join(columns)
    sql = f"SELECT {asked} FROM truerank.read_page({placed})"  # noqa: S608 - the names are ours
    return sql, columns
