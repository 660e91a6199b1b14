"""Boards: list, look at, make."""

from starlette.requests import Request
from starlette.responses import Response

from truerank.read.shapes import board_json
from truerank.serve.bodies import BoardIn, convert, read_json, tie_break, whole
from truerank.serve.params import Params, board_of
from truerank.serve.replies import reply
from truerank.serve.service import service_of


async def list_boards(request: Request) -> Response:
    """`GET /v1/boards`: all boards, in order of their keys."""
    Params(request, ())
    boards = await service_of(request).truerank.boards()
    return reply({"boards": [board_json(board) for board in boards]})


async def show(request: Request) -> Response:
    """`GET /v1/boards/{board}`."""
    Params(request, ())
    return reply(board_json(await service_of(request).truerank.board(board_of(request))))


async def create(request: Request) -> Response:
    """`POST /v1/boards`: 201 where it is new, 200 where it exists with the same settings."""
    Params(request, ())
    given = convert(await read_json(request), BoardIn)
    truerank = service_of(request).truerank
    created = await truerank.create_board(
        given.board,
        operator=given.operator,
        order=given.order,
        seasons=given.seasons,
        zone=given.zone,
        decimals=given.decimals,
        tie_breaks=[tie_break(tie, at) for at, tie in enumerate(given.tie_breaks)],
        value_min=whole(given.value_min, "value_min"),
        value_max=whole(given.value_max, "value_max"),
        total_min=whole(given.total_min, "total_min"),
        total_max=whole(given.total_max, "total_max"),
        dense=given.dense,
    )
    return reply(board_json(await truerank.board(given.board)), 201 if created else 200)
