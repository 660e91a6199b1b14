"""Answers that many ask for alike, from the pages that a process holds."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from truerank.model import Histogram, Need, Page
from truerank.read.cohorts import in_cohort
from truerank.serve.cache import Question
from truerank.serve.params import NEEDS, Params, board_of
from truerank.serve.replies import Encoded, answer
from truerank.serve.service import service_of


def within(params: Params) -> dict[str, Any]:
    """The cohort of a season that is asked about, as clients take it."""
    return {"cohort": params.number_or_none("cohort"), "cohort_of": params.text("cohort_of")}


async def answer_shared(
    request: Request,
    params: Params,
    asked: Callable[..., Awaitable[Page | Histogram]],
    shape: Callable[[Any], dict[str, Any]],
) -> Response:
    """Answer from what is held, or ask once for all who wait for the same.

    Args:
        request: what is answered.
        params: of the request.
        asked: asks, where nobody has; given `board`, `season`, `consistency`, and `source` where
            one is insisted on.
        shape: makes the plain value of what it gives.
    """
    board, season = board_of(request), params.text("season")
    consistency, source = params.consistency(), params.source()
    named = within(params)
    asked = partial(asked, board=board, season=season, **named)
    # Without a season it is the one that ran then, which need not be one that runs now.
    of_then = season is None and params.text("as_of") is not None
    if source is not None or of_then or consistency.need in {Need.AUTHORITATIVE, Need.SETTLED}:
        page = await asked(consistency=consistency, source=source)
        return answer(request, shape(page))
    question = Question(
        key=(shape, board, params.without(NEEDS)),
        board=board,
        season=in_cohort(season, named["cohort"], named["cohort_of"]),
        cursor=params.text("cursor"),
        read=lambda needed: asked(consistency=needed),
        encode=lambda page: Encoded(shape(page)),
    )
    return await service_of(request).pages.answer(request.scope, question, consistency)
