"""Answers from Valkey: one script call, one snapshot, its age."""

from datetime import datetime
from typing import Any

from truerank.errors import NumberingNotKept, ProjectionUnavailable
from truerank.model import (
    Board,
    Freshness,
    MemberState,
    Numbering,
    Page,
    PageRequest,
    Season,
    Source,
)
from truerank.projection.keys import GroupKeys
from truerank.projection.scripts import PageReply
from truerank.read.decode import RawPage, RawPlace, RawSlice, decode
from truerank.read.encode import wanted
from truerank.read.scores import row_bytes
from truerank.read.tokens import of_answer
from truerank.steps import Get, ScriptCall, Steps

_MOVES_MAX = 3
_STATES = {b"h": MemberState.HIDDEN, b"b": MemberState.BANNED, b"m": MemberState.MERGED}


class Pointers:
    """The generation last seen live of every group: what a reader believes in until told."""

    def __init__(self) -> None:
        self._live: dict[int, str] = {}

    def get(self, group: int) -> str | None:
        """The generation believed live."""
        return self._live.get(group)

    def set(self, group: int, generation: str) -> None:
        """Believe in another one; an empty name: in none, so that Redis is asked again."""
        if generation:
            self._live[group] = generation
        else:
            self._live.pop(group, None)


def read_page(
    board: Board,
    season: Season,
    request: PageRequest,
    *,
    prefix: str,
    pointers: Pointers,
    epoch: str | None,
) -> Steps[Page]:
    """Read one page in one script call.

    Args:
        board: whose ranking.
        season: which of its rankings.
        request: what to read.
        prefix: of all keys.
        pointers: the generations believed live; brought up to date here.
        epoch: of the source; a projection of another one is not served. None: not known.

    Raises:
        ProjectionUnavailable: no answer, no copy, a damaged ranking, or another epoch.
        NumberingNotKept: places are to be counted densely on a board that doesn't ask for it.

    Source: `projection/lua/page.lua`.
    """
    try:
        return (yield from _read(board, season, request, prefix, pointers=pointers, epoch=epoch))
    except ValueError as exc:
        raise ProjectionUnavailable(
            f"the copy of group {board.group} can't be read in Redis: {exc}"
        ) from exc


def _read(
    board: Board,
    season: Season,
    request: PageRequest,
    prefix: str,
    *,
    pointers: Pointers,
    epoch: str | None,
) -> Steps[Page]:
    if request.numbering is Numbering.DENSE and not board.spec.dense:
        raise NumberingNotKept(
            f"board {board.spec.key!r} isn't counted densely in the projection", field="numbering"
        )
    keys = GroupKeys(prefix, board.group)
    for _ in range(_MOVES_MAX):
        generation = pointers.get(board.group)
        if generation is None:
            pointed = yield Get(keys.pointer)
            generation = pointed.decode() if pointed else ""
        if not generation:
            raise ProjectionUnavailable(f"group {board.group} has no copy in Redis")
        reply, run_id = yield _call(keys, generation, board, season, request)
        if reply[0] == PageReply.MOVED:
            pointers.set(board.group, reply[1].decode())
            continue
        if reply[0] == PageReply.MISSING:
            raise ProjectionUnavailable(f"the copy of group {board.group} lost its meta")
        if reply[0] == PageReply.DAMAGED:
            raise ProjectionUnavailable(f"ranking {season.ranking} is damaged in Redis")
        if reply[0] == PageReply.NOT_DENSE:
            raise ProjectionUnavailable(
                f"the copy of group {board.group} is from before board {board.spec.key!r} asked to"
                " be counted densely"
            )
        pointers.set(board.group, generation)
        raw = _raw(request, generation, reply, run_id)
        if epoch is not None and raw.freshness.epoch != epoch:
            raise ProjectionUnavailable(f"the copy of group {board.group} is of another epoch")
        return decode(board, season, request, raw)
    raise ProjectionUnavailable(f"the copy of group {board.group} moved {_MOVES_MAX} times")


def _call(
    keys: GroupKeys, generation: str, board: Board, season: Season, request: PageRequest
) -> ScriptCall:
    copy = keys.generation(generation)
    asked = wanted(board, season, request)
    return ScriptCall(
        "page",
        [
            keys.pointer,
            copy.meta,
            copy.counts,
            copy.places(season.ranking),
            copy.shown(season.ranking),
            copy.members,
            *([copy.prefixes(season.ranking)] if asked.dense else []),
        ],
        [
            generation,
            season.ranking,
            row_bytes(board),
            int(asked.token),
            asked.start,
            asked.offset if asked.start == "at" else asked.beside,
            asked.low or "",
            asked.high or "",
            asked.limit,
            asked.around_limit,
            "" if asked.around_place is None else asked.around_place,
            int(asked.up_to),
            board.id,
            len(asked.members),
            *asked.members,
            *asked.marks,
        ],
    )


def _raw(request: PageRequest, generation: str, reply: list[Any], run_id: str | None) -> RawPage:
    _, meta, clock, total, (first, rows, better, low, high), members, around, counts = reply
    epoch, tick, pending, through, time_us, meta_run_id = meta[:6]
    snapshot, lives = (meta[6], (meta[7] or b"").decode()) if request.token else (None, "")
    places = [
        RawPlace(before=place[0], better=place[1], sort_key=place[2], up_to=place[3])
        if len(place) > 1
        else _STATES[place[0]]
        if place
        else MemberState.ACTIVE
        for place in members
    ]
    staleness_ms = None
    if time_us and run_id is not None and meta_run_id.decode() == run_id:
        # One clock only, and rounded up: the bound must hold.
        age_us = int(clock[0]) * 1_000_000 + int(clock[1]) - int(time_us)
        staleness_ms = -(-age_us // 1000) if age_us >= 0 else None
    return RawPage(
        total=total,
        slice=RawSlice(first=first, rows=rows, better=better),
        low=low,
        high=high,
        counts=counts,
        places=places[1:] if request.around is not None else places,
        around=RawSlice(first=around[0], rows=around[1], better=around[2]) if around else None,
        freshness=Freshness(
            source=Source.PROJECTION,
            epoch=epoch.decode(),
            generation=generation,
            tick=int(tick),
            projected_through=datetime.fromisoformat(through.decode()) if through else None,
            staleness_ms=staleness_ms,
            partial=bool(pending),
            token=None if not (snapshot and lives) else of_answer(snapshot.decode(), lives),
            lives=lives or None,
        ),
    )
