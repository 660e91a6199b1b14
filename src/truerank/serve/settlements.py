"""What final seasons came to."""

from starlette.requests import Request
from starlette.responses import Response

from truerank.read.settlement import settlement_json
from truerank.read.shapes import season_json
from truerank.serve.params import Params, board_of
from truerank.serve.replies import reply
from truerank.serve.service import service_of

_FOR_OPERATORS = ("actor", "reason")


async def show(request: Request) -> Response:
    """`GET /v1/boards/{board}/settlements?season=`: its revisions with their digests.

    The newest first; none before the season is final. Who settled it and why is for operators.
    """
    params = Params(request, ("season",))
    board, label = board_of(request), params.required("season")
    client = service_of(request).truerank
    season = await client.season(board, label)
    revisions = [
        {name: value for name, value in settlement_json(each).items() if name not in _FOR_OPERATORS}
        for each in await client.settlements(board, label)
    ]
    return reply({"board": board, "season": season_json(season), "settlements": revisions})
