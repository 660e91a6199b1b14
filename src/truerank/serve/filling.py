"""Seasons of another period on a board that has a past: for operators."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from truerank.operations.filling import SLICE_MEMBERS
from truerank.read.filling import filled_json, seasons_filling_json
from truerank.serve.bodies import convert, read_json
from truerank.serve.operators import ByIn, operators_board, operators_client
from truerank.serve.params import Params, board_of
from truerank.serve.replies import reply


class AddIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which period a board is to keep seasons, too."""

    period: str


class FillIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many members one slice computes."""

    members_max: int = SLICE_MEMBERS


async def add_seasons(request: Request) -> Response:
    """`POST /v1/boards/{board}/seasons/add`: 202 while its past is being computed, else 200."""
    client, board = operators_board(request)
    given = convert(await read_json(request), AddIn)
    added = await client.add_seasons(board, given.period, actor=given.actor, reason=given.reason)
    filling = await client.seasons_filling(board)
    return reply(
        {"board": board, "period": given.period, "added": added, "periods": filling.periods},
        202 if given.period in filling.periods else 200,
    )


async def fill_seasons(request: Request) -> Response:
    """`POST /v1/boards/{board}/seasons/fill`: compute added seasons for the next members."""
    client, board = operators_board(request)
    given = convert(await read_json(request), FillIn)
    filled = await client.fill_seasons(board, members_max=given.members_max)
    return reply({"board": board} | filled_json(filled))


async def seasons_filling(request: Request) -> Response:
    """`GET /v1/boards/{board}/seasons/filling?count=`: how far added seasons are computed."""
    client, params = operators_client(request), Params(request, ("count",))
    filling = await client.seasons_filling(board_of(request), count=params.flag("count"))
    return reply(seasons_filling_json(filling))
