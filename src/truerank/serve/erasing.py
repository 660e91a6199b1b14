"""Remove people from everything, and prove it: for operators."""

from starlette.requests import Request
from starlette.responses import Response

from truerank.paging import LATEST
from truerank.read.members import erasure_json
from truerank.serve.bodies import convert, read_json
from truerank.serve.operators import ByIn, check_wait, operators_client
from truerank.serve.params import Params
from truerank.serve.replies import reply
from truerank.serve.service import service_of

_WAIT_S = 2.0


class EraseIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is to be removed from everything; the reason should not name the person."""

    member: str
    wait_s: float = _WAIT_S


async def erase(request: Request) -> Response:
    """`POST /v1/members/erase`: 202 until nothing names the person any more."""
    Params(request, ())
    client = operators_client(request)
    given = convert(await read_json(request), EraseIn)
    erasure = await client.erase_member(
        given.member,
        actor=given.actor,
        reason=given.reason,
        timeout_s=check_wait(given.wait_s),
    )
    service_of(request).pages.clear()
    return reply(erasure_json(erasure), 200 if erasure.complete else 202)


async def list_erasures(request: Request) -> Response:
    """`GET /v1/erasures?erasure=&limit=`: the latest first, or the one of an id."""
    params = Params(request, ("erasure", "limit"))
    erasures = await operators_client(request).erasures(
        params.text("erasure"), limit=params.number("limit", LATEST)
    )
    return reply({"erasures": [erasure_json(each) for each in erasures]})
