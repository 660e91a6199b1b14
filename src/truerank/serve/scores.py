"""`POST /v1/boards/{board}/scores`: one event or many."""

from starlette.requests import Request
from starlette.responses import Response

from truerank.command.submit import failure
from truerank.errors import BoardUnknown
from truerank.read.shapes import receipt_json
from truerank.serve.bodies import read_events, read_json
from truerank.serve.params import Params, board_of
from truerank.serve.replies import error_reply, reply
from truerank.serve.service import service_of


async def submit(request: Request) -> Response:
    """Apply one event, or several with an outcome each.

    One: 200 with its receipt; 409 and 422 where it conflicts or is refused. Several: 200 with
    `results` in the order given; a conflict or refusal of one leaves the others applied.
    """
    Params(request, ())
    board = board_of(request)
    events, season, operator, several = read_events(await read_json(request))
    receipts = await service_of(request).gather.submit(board, events, season, operator)
    error = failure(board, receipts[0])
    if isinstance(error, BoardUnknown):
        raise error
    if several:
        return reply({"results": [receipt_json(receipt) for receipt in receipts]})
    if error is not None:
        return error_reply(error, event_id=receipts[0].event_id)
    return reply(receipt_json(receipts[0]))
