"""What final seasons came to; whom it concerns by id, and who settled it, is for operators."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from truerank.errors import NotSettled
from truerank.model import Settlement
from truerank.paging import LIMIT_MAX
from truerank.read.revisions import as_settled
from truerank.read.settlement import (
    settled_places_json,
    settlement_changes_json,
    settlement_excluded_json,
    settlement_json,
)
from truerank.read.shapes import Shape, season_json
from truerank.serve.operators import operators_client
from truerank.serve.params import Params, board_of
from truerank.serve.replies import reply
from truerank.serve.service import service_of
from truerank.serve.sharing import within

_FOR_OPERATORS = ("actor", "reason", "excluded")
_SLICE = ("season", "revision", "limit", "cursor", "cohort", "cohort_of")


async def show(request: Request) -> Response:
    """`GET /v1/boards/{board}/settlements?season=&cohort=`: its revisions with their digests.

    The newest first; none before the season is final. Who settled it and why is for operators, and
    so is how many have no place: that somebody hides is nobody's business.
    """
    params = Params(request, ("season", "cohort", "cohort_of"))
    board, label = board_of(request), params.required("season")
    service = service_of(request)
    season = await service.truerank.season(board, label)
    if season.frozen_at is not None:
        raise NotSettled(f"season {season.label!r} is frozen until it is revealed")
    found = await service.truerank.settlements(board, label, **within(params))
    revisions = settlements_json(found, operator=service.settings.operator)
    shown = season_json(as_settled(season, found))
    return reply({"board": board, "season": shown, "settlements": revisions})


async def places(request: Request) -> Response:
    """`GET /v1/boards/{board}/settlements/places?season=&revision=&cohort=&limit=&cursor=`."""
    client, params = operators_client(request), Params(request, _SLICE)
    board, label = board_of(request), params.required("season")
    found = await client.settlement_places(
        board,
        label,
        params.number_or_none("revision"),
        limit=params.number("limit", LIMIT_MAX),
        cursor=params.text("cursor"),
        **within(params),
    )
    return reply({"board": board, "season": label} | settled_places_json(found))


async def changes(request: Request) -> Response:
    """`GET /v1/boards/{board}/settlements/changes?season=&revision=&since=&cohort=&limit=&cursor=`.

    First those who have a place now.
    """
    client, params = operators_client(request), Params(request, (*_SLICE, "since"))
    board, label = board_of(request), params.required("season")
    found = await client.settlement_changes(
        board,
        label,
        params.number_or_none("revision"),
        since=params.number_or_none("since"),
        limit=params.number("limit", LIMIT_MAX),
        cursor=params.text("cursor"),
        **within(params),
    )
    return reply({"board": board, "season": label} | settlement_changes_json(found))


async def excluded(request: Request) -> Response:
    """`GET /v1/boards/{board}/settlements/excluded?season=&revision=&cohort=&limit=&cursor=`."""
    client, params = operators_client(request), Params(request, _SLICE)
    board, label = board_of(request), params.required("season")
    found = await client.settlement_excluded(
        board,
        label,
        params.number_or_none("revision"),
        limit=params.number("limit", LIMIT_MAX),
        cursor=params.text("cursor"),
        **within(params),
    )
    return reply({"board": board, "season": label} | settlement_excluded_json(found))


def settlements_json(settlements: Sequence[Settlement], *, operator: bool) -> list[Shape]:
    """Revisions as plain values; who settled, why and without whom only for operators."""
    hidden = () if operator else _FOR_OPERATORS
    return [
        {name: value for name, value in settlement_json(each).items() if name not in hidden}
        for each in settlements
    ]
