"""The application: its routes, its errors, what it opens and closes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from truerank.errors import TruerankError
from truerank.serve import answers, boards, health, scores, stream
from truerank.serve.page import page_routes
from truerank.serve.replies import Edge, answer_route_error, answer_truerank_error
from truerank.serve.service import open_service
from truerank.settings import Settings


def create_app(settings: Settings) -> Starlette:
    """The ASGI application of one process; its lifespan opens and closes the connections.

    Args:
        settings: with both URLs.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with open_service(settings) as service:
            app.state.service = service
            yield

    app = Starlette(
        routes=[
            *page_routes(),
            Route("/v1/boards", boards.list_boards, methods=["GET"]),
            Route("/v1/boards", boards.create, methods=["POST"]),
            Route("/v1/boards/{board}", boards.show, methods=["GET"]),
            Route("/v1/boards/{board}/scores", scores.submit, methods=["POST"]),
            Route("/v1/boards/{board}/top", answers.top, methods=["GET"]),
            Route("/v1/boards/{board}/member", answers.place, methods=["GET"]),
            Route("/v1/boards/{board}/members", answers.places, methods=["GET"]),
            Route("/v1/boards/{board}/around", answers.around, methods=["GET"]),
            Route("/v1/boards/{board}/seasons", answers.seasons, methods=["GET"]),
            Route("/v1/boards/{board}/live", stream.live, methods=["GET"]),
            Route("/health/live", health.live, methods=["GET"]),
            Route("/health/ready", health.ready, methods=["GET"]),
        ],
        middleware=[Middleware(Edge)],
        exception_handlers={
            HTTPException: answer_route_error,
            TruerankError: answer_truerank_error,
        },
        lifespan=lifespan,
    )
    # A redirect to an address without the slash would lose the body of a POST.
    app.router.redirect_slashes = False
    return app
