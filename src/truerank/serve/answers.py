"""Reads: every answer comes from one snapshot and says how fresh it is."""

from starlette.requests import Request
from starlette.responses import Response

from truerank.command.board import PERIODS
from truerank.errors import InvalidInput
from truerank.model import Numbering
from truerank.read.answers import LIMIT_MAX
from truerank.read.shapes import around_json, page_json, place_json, places_json, season_json
from truerank.serve.params import Params, board_of
from truerank.serve.replies import reply
from truerank.serve.service import service_of

TOP_ROWS = 10
AROUND_ROWS = 11
BESIDE_ROWS = 5  # of the neighbourhood beside a top list


async def top(request: Request) -> Response:
    """`GET /v1/boards/{board}/top?season=&limit=&offset=&member=&around=&numbering=`."""
    params = Params(request, ("season", "limit", "offset", "member", "around", "numbering"))
    member = params.text("member")
    if member is None and params.text("around") is not None:
        raise InvalidInput(
            "around says how many rows, of the member given beside it", field="around"
        )
    page = await service_of(request).truerank.top(
        board_of(request),
        params.text("season"),
        limit=params.number("limit", TOP_ROWS),
        offset=params.number("offset", 0),
        member=member,
        around_limit=params.number("around", BESIDE_ROWS),
        numbering=_numbering(params),
    )
    return reply(page_json(page))


async def place(request: Request) -> Response:
    """`GET /v1/boards/{board}/member?member=&season=&numbering=`."""
    params = Params(request, ("season", "member", "numbering"))
    page = await service_of(request).truerank.place(
        board_of(request),
        params.required("member"),
        params.text("season"),
        numbering=_numbering(params),
    )
    return reply(place_json(page))


async def places(request: Request) -> Response:
    """`GET /v1/boards/{board}/members?member=a&member=b&season=&numbering=`."""
    params = Params(request, ("season", "numbering"), repeated="member")
    if not params.many:
        raise InvalidInput(f"member is given 1 to {LIMIT_MAX} times", field="member")
    page = await service_of(request).truerank.places(
        board_of(request), params.many, params.text("season"), numbering=_numbering(params)
    )
    return reply(places_json(page))


async def around(request: Request) -> Response:
    """`GET /v1/boards/{board}/around?member=&limit=&season=&numbering=`."""
    params = Params(request, ("season", "member", "limit", "numbering"))
    page = await service_of(request).truerank.around(
        board_of(request),
        params.required("member"),
        params.text("season"),
        limit=params.number("limit", AROUND_ROWS),
        numbering=_numbering(params),
    )
    return reply(around_json(page))


async def seasons(request: Request) -> Response:
    """`GET /v1/boards/{board}/seasons?period=&limit=&offset=`."""
    params = Params(request, ("period", "limit", "offset"))
    period = params.text("period")
    if period is not None and period not in (*PERIODS, "custom"):
        words = ", ".join((*PERIODS, "custom"))
        raise InvalidInput(f"period is one of {words}", field="period")
    board = board_of(request)
    found = await service_of(request).truerank.seasons(
        board,
        period=period,
        limit=params.number("limit", LIMIT_MAX),
        offset=params.number("offset", 0),
    )
    return reply({"board": board, "seasons": [season_json(season) for season in found]})


def _numbering(params: Params) -> Numbering:
    return params.choice("numbering", Numbering, Numbering.COMPETITION)
