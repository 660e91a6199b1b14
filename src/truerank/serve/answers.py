"""Reads: every answer comes from one snapshot and says how fresh it is.

What names no member is asked by many alike, and may be answered from what is held.
"""

from functools import partial

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from truerank.command.board import PERIODS
from truerank.errors import InvalidInput
from truerank.model import MemberState, Numbering, Page
from truerank.operations.choosing import called
from truerank.paging import LIMIT_MAX
from truerank.read.shapes import (
    around_json,
    between_json,
    counts_json,
    histogram_json,
    page_json,
    place_json,
    places_json,
    seasons_json,
    window_json,
)
from truerank.serve.bodies import read_json
from truerank.serve.params import NEEDS, Params, board_of
from truerank.serve.replies import answer
from truerank.serve.service import service_of
from truerank.serve.sharing import answer_shared, within

TOP_ROWS = 10
AROUND_ROWS = 11
BESIDE_ROWS = 5  # of the neighbourhood beside a top list
_EVERY = ("season", "cohort", "cohort_of", "source", *NEEDS)
_BACK = ("as_of", "since")


async def top(request: Request) -> Response:
    """`GET .../top?season=&limit=&offset=&cursor=&member=&around_limit=&numbering=`."""
    params = Params(
        request,
        (
            *_EVERY,
            *_BACK,
            "limit",
            "offset",
            "cursor",
            "member",
            "around_limit",
            "numbering",
            "names",
        ),
    )
    member = params.text("member")
    if member is None and params.text("around_limit") is not None:
        raise InvalidInput(
            "around_limit says how many rows, of the member given beside it", field="around_limit"
        )
    asked = partial(
        service_of(request).truerank.top,
        limit=params.number("limit", TOP_ROWS),
        offset=params.number("offset", 0),
        cursor=params.text("cursor"),
        member=member,
        around_limit=params.number("around_limit", BESIDE_ROWS),
        names=params.flag("names"),
        numbering=_numbering(params),
        as_of=params.instant("as_of"),
        since=params.instant("since"),
    )
    if member is None:
        return await answer_shared(request, params, asked, page_json)
    page = await asked(
        board_of(request),
        params.text("season"),
        consistency=params.consistency(),
        source=params.source(),
        **within(params),
    )
    return answer(request, page_json(_seen_by(request, page)))


async def place(request: Request) -> Response:
    """`GET /v1/boards/{board}/place?member=&season=&percentile=&numbering=`."""
    params = Params(request, (*_EVERY, *_BACK, "member", "percentile", "numbering", "names"))
    percentile = params.flag("percentile")
    page = await service_of(request).truerank.place(
        board_of(request),
        params.required("member"),
        params.text("season"),
        percentile=percentile,
        names=params.flag("names"),
        numbering=_numbering(params),
        as_of=params.instant("as_of"),
        since=params.instant("since"),
        consistency=params.consistency(),
        source=params.source(),
        **within(params),
    )
    return answer(request, place_json(_seen_by(request, page), percentile=percentile))


async def places(request: Request) -> Response:
    """`GET /v1/boards/{board}/places?member=a&member=b&season=&among=&percentile=&numbering=`."""
    params = Params(
        request,
        (*_EVERY, *_BACK, "among", "percentile", "numbering", "names"),
        repeated="member",
        body=await _body(request),
    )
    if not params.many:
        raise InvalidInput(f"member is given 1 to {LIMIT_MAX} times", field="member")
    among, percentile = params.flag("among"), params.flag("percentile")
    with called(members="member"):
        page = await service_of(request).truerank.places(
            board_of(request),
            params.many,
            params.text("season"),
            among=among,
            percentile=percentile,
            names=params.flag("names"),
            numbering=_numbering(params),
            as_of=params.instant("as_of"),
            since=params.instant("since"),
            consistency=params.consistency(),
            source=params.source(),
            **within(params),
        )
    shape = places_json(_seen_by(request, page), among=among, percentile=percentile)
    return answer(request, shape)


async def post_places(request: Request) -> Response:
    """`POST /v1/boards/{board}/places`: the same, with parameters in the body, `member` a list."""
    return await places(request)


async def around(request: Request) -> Response:
    """`GET /v1/boards/{board}/around?member=&rank=&limit=&season=&numbering=`."""
    params = Params(request, (*_EVERY, *_BACK, "member", "rank", "limit", "numbering", "names"))
    member, rank = params.text("member"), params.number_or_none("rank")
    asked = partial(
        service_of(request).truerank.around,
        member=member,
        rank=rank,
        limit=params.number("limit", AROUND_ROWS),
        names=params.flag("names"),
        numbering=_numbering(params),
        as_of=params.instant("as_of"),
        since=params.instant("since"),
    )
    if member is None:
        return await answer_shared(request, params, asked, window_json)
    page = await asked(
        board=board_of(request),
        season=params.text("season"),
        consistency=params.consistency(),
        source=params.source(),
        **within(params),
    )
    return answer(request, around_json(_seen_by(request, page)))


async def between(request: Request) -> Response:
    """`GET .../between?score_min=&score_max=&season=&limit=&offset=&cursor=&numbering=`."""
    params = Params(
        request,
        (*_EVERY, "score_min", "score_max", "limit", "offset", "cursor", "numbering", "names"),
    )
    asked = partial(
        service_of(request).truerank.between,
        score_min=params.text("score_min"),
        score_max=params.text("score_max"),
        limit=params.number("limit", TOP_ROWS),
        offset=params.number("offset", 0),
        cursor=params.text("cursor"),
        names=params.flag("names"),
        numbering=_numbering(params),
    )
    return await answer_shared(request, params, asked, between_json)


async def counts(request: Request) -> Response:
    """`GET /v1/boards/{board}/counts?score=a&score=b&season=&ties=&numbering=`."""
    params = Params(
        request,
        (*_EVERY, "ties", "numbering"),
        repeated="score",
        body=await _body(request),
    )
    if not params.many:
        raise InvalidInput(f"score is given 1 to {LIMIT_MAX} times", field="score")
    asked = partial(
        service_of(request).truerank.counts,
        scores=params.many,
        ties=params.numbers("ties"),
        numbering=_numbering(params),
    )
    with called(scores="score"):
        return await answer_shared(request, params, asked, counts_json)


async def post_counts(request: Request) -> Response:
    """`POST /v1/boards/{board}/counts`: the same, with parameters in the body, `score` a list."""
    return await counts(request)


async def histogram(request: Request) -> Response:
    """`GET /v1/boards/{board}/histogram?edge=a&edge=b&season=`."""
    params = Params(request, _EVERY, repeated="edge", body=await _body(request))
    if not params.many:
        raise InvalidInput(f"edge is given 1 to {LIMIT_MAX} times", field="edge")
    asked = partial(service_of(request).truerank.histogram, edges=params.many)
    with called(edges="edge"):
        return await answer_shared(request, params, asked, histogram_json)


async def post_histogram(request: Request) -> Response:
    """`POST /v1/boards/{board}/histogram`: the same, with parameters in the body, `edge` a list."""
    return await histogram(request)


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
    return answer(request, seasons_json(board, found))


async def _body(request: Request) -> object:
    """What a POST asks; None: another method has no body."""
    if request.method != "POST":
        return None
    body = await read_json(request)
    return () if body is None else body


def _seen_by(request: Request, page: Page) -> Page:
    """The page as who asks may see it: why a member has no place is for itself and operators.

    This service can't tell who asks. A product shows members their own view by an operators' server
    or by the client, having made sure who they are.
    """
    if service_of(request).settings.operator:
        return page
    places = tuple(replace(place, state=MemberState.ACTIVE) for place in page.places)
    return replace(page, places=places)


def _numbering(params: Params) -> Numbering:
    return params.choice("numbering", Numbering, Numbering.COMPETITION)
