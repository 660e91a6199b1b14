"""Freeze seasons for the public, and reveal them: for operators."""

from starlette.requests import Request
from starlette.responses import Response

from truerank.instants import read_instant
from truerank.paging import LATEST
from truerank.read.members import freeze_json
from truerank.serve.bodies import convert, read_json
from truerank.serve.operators import ByIn, check_wait, operators_client
from truerank.serve.params import Params, board_of
from truerank.serve.replies import reply

_WAIT_S = 10.0


class FreezeIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which season the public is to be shown as it is, now or at an instant to come."""

    season: str | None = None
    every: bool = False
    at: str | None = None
    wait_s: float = _WAIT_S


class RevealIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which season is to be shown again as it is."""

    season: str | None = None
    every: bool = False


async def freeze(request: Request) -> Response:
    """`POST /v1/boards/{board}/seasons/freeze`: 200 where it is frozen, 202 where it will be."""
    Params(request, ())
    client, board = operators_client(request), board_of(request)
    given = convert(await read_json(request), FreezeIn)
    frozen = await client.freeze_season(
        board,
        given.season,
        actor=given.actor,
        reason=given.reason,
        every=given.every,
        at=None if given.at is None else read_instant(given.at, "at"),
        timeout_s=check_wait(given.wait_s),
    )
    return reply(freeze_json(frozen), 202 if frozen.frozen_at is None else 200)


async def reveal(request: Request) -> Response:
    """`POST /v1/boards/{board}/seasons/reveal`: show a season again as it is."""
    Params(request, ())
    client, board = operators_client(request), board_of(request)
    given = convert(await read_json(request), RevealIn)
    revealed = await client.reveal_season(
        board, given.season, actor=given.actor, reason=given.reason, every=given.every
    )
    return reply({"board": board, "revealed": revealed})


async def list_freezes(request: Request) -> Response:
    """`GET /v1/freezes?board=&limit=`: which seasons are frozen, or were, the latest first."""
    params = Params(request, ("board", "limit"))
    found = await operators_client(request).freezes(
        params.text("board"), limit=params.number("limit", LATEST)
    )
    return reply({"freezes": [freeze_json(each) for each in found]})
