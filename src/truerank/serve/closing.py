"""Close seasons, open them again, and correct what they came to: for operators."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from truerank.command.closing import OVER
from truerank.errors import InvalidInput
from truerank.read.revisions import as_settled
from truerank.read.settlement import close_json, revised_json
from truerank.read.shapes import season_json
from truerank.serve.bodies import convert, read_json, score_value
from truerank.serve.operators import ByIn, check_wait, operators_board, operators_client
from truerank.serve.params import Params
from truerank.serve.replies import reply
from truerank.serve.settlements import settlements_json

_WAIT_S = 10.0


class CloseIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which season is to be closed; a reason takes only who doesn't wait for its end."""

    season: str
    reason: str = OVER
    now: bool = False
    wait_s: float = _WAIT_S


class CloseDueIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who closes what is due."""

    reason: str = OVER
    wait_s: float = _WAIT_S


class ReopenIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which season is to take events again."""

    season: str


class ReviseIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a final season is to be corrected."""

    season: str
    void: tuple[str, ...] = ()
    amend: str | None = None
    value: Any = None
    ties: tuple[int, ...] = ()
    correction_id: str | None = None


async def close(request: Request) -> Response:
    """`POST /v1/boards/{board}/seasons/close`: what the season is now, sealed or final."""
    client, board = operators_board(request)
    given = convert(await read_json(request), CloseIn)
    if given.now and given.reason == OVER:
        raise InvalidInput("to close a season now takes a reason", field="reason")
    closed = await client.close_season(
        board,
        given.season,
        actor=given.actor,
        reason=given.reason,
        now=given.now,
        timeout_s=check_wait(given.wait_s),
    )
    found = await client.settlements(board, given.season)
    shown = season_json(as_settled(closed, found))
    settlements = settlements_json(found, operator=True)
    return reply({"board": board, "season": shown, "settlements": settlements})


async def close_due(request: Request) -> Response:
    """`POST /v1/seasons/close-due`: close what is to be closed by itself now."""
    client = operators_client(request)
    Params(request, ())
    given = convert(await read_json(request), CloseDueIn)
    closes = await client.close_due(actor=given.actor, timeout_s=check_wait(given.wait_s))
    return reply({"closed": [close_json(each) for each in closes]})


async def reopen(request: Request) -> Response:
    """`POST /v1/boards/{board}/seasons/reopen`: let a sealed season take events again."""
    client, board = operators_board(request)
    given = convert(await read_json(request), ReopenIn)
    reopened = await client.reopen_season(
        board, given.season, actor=given.actor, reason=given.reason
    )
    return reply({"board": board, "season": given.season, "reopened": reopened})


async def revise(request: Request) -> Response:
    """`POST /v1/boards/{board}/seasons/revise`: correct a final season by another revision."""
    client, board = operators_board(request)
    given = convert(await read_json(request), ReviseIn)
    if (given.amend is None) != (given.value is None):
        raise InvalidInput("amend and value come together", field="value")
    value = 0 if given.value is None else score_value(given.value)
    revised = await client.revise_season(
        board,
        given.season,
        actor=given.actor,
        reason=given.reason,
        void=given.void,
        amend=given.amend,
        value=value,
        ties=given.ties,
        correction_id=given.correction_id or f"{given.amend}={given.value}",
        timeout_s=_WAIT_S,
    )
    return reply({"board": board, "revised": [revised_json(each) for each in revised]})
