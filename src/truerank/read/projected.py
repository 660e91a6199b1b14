"""Answers from Valkey: one script call, one snapshot, its age."""

from datetime import datetime
from functools import lru_cache
from struct import Struct
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
_KEYS_MAX = 1000  # rankings whose keys are kept spelt
# As page.lua packs them.
_HEAD = Struct(">7q")
_PLACE = Struct(">3I")
_STATES = {
    b"": MemberState.ACTIVE,
    b"h": MemberState.HIDDEN,
    b"b": MemberState.BANNED,
    b"m": MemberState.MERGED,
}


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
    if not keeps(board, request):
        raise NumberingNotKept(
            f"board {board.spec.key!r} isn't counted densely in the projection", field="numbering"
        )
    try:
        for _ in range(_MOVES_MAX):
            generation = pointers.get(board.group)
            if generation is None:
                pointed = yield Get(GroupKeys(prefix, board.group).pointer)
                generation = pointed.decode() if pointed else ""
            if not generation:
                raise ProjectionUnavailable(f"group {board.group} has no copy in Redis")
            reply, run_id = yield _call(prefix, generation, board, season, request)
            if reply[0] == PageReply.OK:
                pointers.set(board.group, generation)
                raw = _raw(request, generation, reply, run_id)
                if epoch is not None and raw.freshness.epoch != epoch:
                    raise ProjectionUnavailable(
                        f"the copy of group {board.group} is of another epoch"
                    )
                return decode(board, season, request, raw)
            if reply[0] != PageReply.MOVED:
                raise ProjectionUnavailable(_reason(reply[0], board, season))
            pointers.set(board.group, reply[1].decode())
    except ValueError as exc:
        raise ProjectionUnavailable(
            f"the copy of group {board.group} can't be read in Redis: {exc}"
        ) from exc
    raise ProjectionUnavailable(f"the copy of group {board.group} moved {_MOVES_MAX} times")


def keeps(board: Board, request: PageRequest) -> bool:
    """Whether the projection is kept for a question: places are counted there as asked."""
    return request.numbering is not Numbering.DENSE or board.spec.dense


def _reason(code: int, board: Board, season: Season) -> str:
    match code:
        case PageReply.MISSING:
            return f"the copy of group {board.group} lost its meta"
        case PageReply.NOT_DENSE:
            return (
                f"the copy of group {board.group} is from before board {board.spec.key!r} asked to"
                " be counted densely"
            )
        case _:
            return f"ranking {season.ranking} is damaged in Redis"


def _call(
    prefix: str, generation: str, board: Board, season: Season, request: PageRequest
) -> ScriptCall:
    asked = wanted(board, season, request)
    return ScriptCall(
        "page",
        _keys(prefix, board.group, generation, season.ranking, dense=asked.dense),
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


@lru_cache(maxsize=_KEYS_MAX)
def _keys(
    prefix: str, group: int, generation: str, ranking: int, *, dense: bool
) -> tuple[str, ...]:
    keys = GroupKeys(prefix, group)
    copy = keys.generation(generation)
    return (
        keys.pointer,
        copy.meta,
        copy.counts,
        copy.places(ranking),
        copy.shown(ranking),
        copy.members,
        *([copy.prefixes(ranking)] if dense else []),
    )


def _raw(request: PageRequest, generation: str, reply: list[Any], run_id: str | None) -> RawPage:
    _, head, rows, members, around, counts = reply
    total, first, better, low, high, around_first, around_better = _HEAD.unpack_from(head)
    (
        epoch, tick, pending, through, time_us, meta_run_id, seconds, micros, snapshot, lives,
    ) = head[_HEAD.size :].decode().split("\n")  # fmt: skip
    places = [_place(told) for told in members]
    staleness_ms = None
    if time_us and run_id is not None and meta_run_id == run_id:
        # One clock only, and rounded up: the bound must hold.
        age_us = int(seconds) * 1_000_000 + int(micros) - int(time_us)
        staleness_ms = -(-age_us // 1000) if age_us >= 0 else None
    return RawPage(
        total=total,
        slice=RawSlice(first=first, rows=rows, better=better),
        low=low,
        high=high,
        counts=counts,
        places=places[1:] if request.around is not None else places,
        around=None
        if around_first < 0
        else RawSlice(first=around_first, rows=around, better=around_better),
        freshness=Freshness(
            source=Source.PROJECTION,
            epoch=epoch,
            generation=generation,
            tick=int(tick),
            projected_through=datetime.fromisoformat(through) if through else None,
            staleness_ms=staleness_ms,
            partial=bool(pending),
            token=of_answer(snapshot, lives) if snapshot and lives else None,
            lives=lives or None,
        ),
    )


def _place(told: bytes) -> RawPlace | MemberState:
    if len(told) < _PLACE.size:
        return _STATES[told]
    before, better, up_to = _PLACE.unpack_from(told)
    return RawPlace(before=before, better=better, sort_key=told[_PLACE.size :], up_to=up_to)
