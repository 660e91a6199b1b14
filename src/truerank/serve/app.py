"""The application: its routes, its errors, what it opens and closes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Lifespan, Scope

from truerank.aio import Truerank
from truerank.errors import TruerankError
from truerank.serve import (
    answers,
    awarding,
    boards,
    closing,
    delivering,
    erasing,
    exports,
    filling,
    freezing,
    health,
    leagues,
    members,
    metrics,
    profiles,
    scores,
    settlements,
    stream,
)
from truerank.serve.counting import Counted
from truerank.serve.page import page_routes
from truerank.serve.replies import Edge, answer_route_error, answer_truerank_error
from truerank.serve.service import open_service
from truerank.serve.watch import Watch
from truerank.settings import Settings
from truerank.telemetry.metrics import Metrics

_WATCH_POOL_MAX = 2
_WATCH_MS_MAX = 2000
_WATCHED = (
    Route("/metrics", metrics.metrics, methods=["GET"]),
    Route("/healthz", health.live, methods=["GET"]),
    Route("/readyz", health.ready, methods=["GET"]),
    Route("/health/live", health.live, methods=["GET"]),
    Route("/health/ready", health.ready, methods=["GET"]),
)


def create_app(settings: Settings, numbers: Metrics | None = None) -> Starlette:
    """The ASGI application of one process; its lifespan opens and closes the connections.

    Args:
        settings: with both URLs.
        numbers: what this process counts, where other parts of it count too.
    """
    counted = numbers or Metrics()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with (
            open_service(settings, counted) as service,
            _watch(settings, counted, lambda: service.feed.deaf) as watch,
        ):
            app.state.service = service
            app.state.closing = service.closing
            app.state.watch = watch
            yield

    return _app(
        [
            *_WATCHED,
            *page_routes(),
            Route("/v1/boards", boards.list_boards, methods=["GET"]),
            Route("/v1/boards", boards.create, methods=["POST"]),
            Route("/v1/boards/{board}", boards.show, methods=["GET"]),
            Route("/v1/boards/{board}/scores", scores.submit, methods=["POST"]),
            Route("/v1/profiles", profiles.set_profiles, methods=["POST"]),
            Route("/v1/boards/{board}/top", answers.top, methods=["GET"]),
            Route("/v1/boards/{board}/place", answers.place, methods=["GET"]),
            Route("/v1/boards/{board}/places", answers.places, methods=["GET"]),
            Route("/v1/boards/{board}/places", answers.post_places, methods=["POST"]),
            Route("/v1/boards/{board}/around", answers.around, methods=["GET"]),
            Route("/v1/boards/{board}/between", answers.between, methods=["GET"]),
            Route("/v1/boards/{board}/counts", answers.counts, methods=["GET"]),
            Route("/v1/boards/{board}/counts", answers.post_counts, methods=["POST"]),
            Route("/v1/boards/{board}/histogram", answers.histogram, methods=["GET"]),
            Route("/v1/boards/{board}/histogram", answers.post_histogram, methods=["POST"]),
            Route("/v1/boards/{board}/seasons", answers.seasons, methods=["GET"]),
            Route("/v1/boards/{board}/seasons/freeze", freezing.freeze, methods=["POST"]),
            Route("/v1/boards/{board}/seasons/reveal", freezing.reveal, methods=["POST"]),
            Route("/v1/freezes", freezing.list_freezes, methods=["GET"]),
            Route("/v1/members/hide", members.hide, methods=["POST"]),
            Route("/v1/members/show", members.show, methods=["POST"]),
            Route("/v1/members/ban", members.ban, methods=["POST"]),
            Route("/v1/members/unban", members.unban, methods=["POST"]),
            Route("/v1/members/reset", members.reset, methods=["POST"]),
            Route("/v1/members/delete", members.delete, methods=["POST"]),
            Route("/v1/members/merge", members.merge, methods=["POST"]),
            Route("/v1/members/states", members.states, methods=["GET"]),
            Route("/v1/members/erase", erasing.erase, methods=["POST"]),
            Route("/v1/erasures", erasing.list_erasures, methods=["GET"]),
            Route("/v1/boards/{board}/seasons/close", closing.close, methods=["POST"]),
            Route("/v1/boards/{board}/seasons/reopen", closing.reopen, methods=["POST"]),
            Route("/v1/boards/{board}/seasons/revise", closing.revise, methods=["POST"]),
            Route("/v1/boards/{board}/seasons/add", filling.add_seasons, methods=["POST"]),
            Route("/v1/boards/{board}/seasons/fill", filling.fill_seasons, methods=["POST"]),
            Route("/v1/boards/{board}/seasons/filling", filling.seasons_filling, methods=["GET"]),
            Route("/v1/seasons/close-due", closing.close_due, methods=["POST"]),
            Route("/v1/boards/{board}/export", exports.export, methods=["GET"]),
            Route("/v1/boards/{board}/settlements", settlements.show, methods=["GET"]),
            Route("/v1/boards/{board}/settlements/places", settlements.places, methods=["GET"]),
            Route("/v1/boards/{board}/settlements/changes", settlements.changes, methods=["GET"]),
            Route("/v1/boards/{board}/settlements/excluded", settlements.excluded, methods=["GET"]),
            Route("/v1/boards/{board}/award-rules", awarding.list_rules, methods=["GET"]),
            Route("/v1/boards/{board}/award-rules", awarding.make_rule, methods=["POST"]),
            Route("/v1/boards/{board}/award-rules/drop", awarding.drop_rule, methods=["POST"]),
            Route("/v1/awards", awarding.list_awards, methods=["GET"]),
            Route("/v1/awards/acknowledge", awarding.acknowledge, methods=["POST"]),
            Route("/v1/webhooks", delivering.list_webhooks, methods=["GET"]),
            Route("/v1/webhooks", delivering.add, methods=["POST"]),
            Route("/v1/webhooks/change", delivering.change, methods=["POST"]),
            Route("/v1/webhooks/rotate", delivering.rotate, methods=["POST"]),
            Route("/v1/webhooks/remove", delivering.remove, methods=["POST"]),
            Route("/v1/webhooks/deliveries", delivering.deliveries, methods=["GET"]),
            Route("/v1/webhooks/retry", delivering.retry, methods=["POST"]),
            Route("/v1/webhooks/test", delivering.attempt, methods=["POST"]),
            Route("/v1/boards/{board}/leagues/place", leagues.place, methods=["GET"]),
            Route("/v1/boards/{board}/cohorts", leagues.list_cohorts, methods=["GET"]),
            Route("/v1/boards/{board}/leagues", leagues.list_leagues, methods=["GET"]),
            Route("/v1/boards/{board}/leagues", leagues.set_league, methods=["POST"]),
            Route("/v1/boards/{board}/leagues/drop", leagues.drop_league, methods=["POST"]),
            Route("/v1/boards/{board}/leagues/assign", leagues.assign_key, methods=["POST"]),
            Route("/v1/boards/{board}/leagues/tiers", leagues.list_tiers, methods=["GET"]),
            Route("/v1/boards/{board}/live", stream.live, methods=["GET"]),
        ],
        lifespan,
        counted,
        at_hand=lambda scope: scope["app"].state.service.pages.at_hand(scope),
    )


def create_watch_app(settings: Settings, numbers: Metrics) -> Starlette:
    """Metrics and health alone, for a process that serves nothing else.

    Args:
        settings: with both URLs.
        numbers: what this process counts.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with _watch(settings, numbers) as watch:
            app.state.closing = asyncio.Event()
            app.state.watch = watch
            yield

    return _app(list(_WATCHED), lifespan, numbers)


@asynccontextmanager
async def _watch(
    settings: Settings, numbers: Metrics, deaf: Callable[[], str | None] = lambda: None
) -> AsyncIterator[Watch]:
    # Connections of its own: a pool that requests have used up must not look like an outage. And
    # nobody is told of its calls: a look is not what this process does.
    short = msgspec.structs.replace(
        settings,
        pool_max=_WATCH_POOL_MAX,
        database_timeout_ms=min(settings.database_timeout_ms, _WATCH_MS_MAX),
        redis_timeout_ms=min(settings.redis_timeout_ms, _WATCH_MS_MAX),
    )
    async with Truerank(short) as client:
        yield Watch(client.status, numbers, deaf)


def _app(
    routes: Sequence[Route],
    lifespan: Lifespan[Starlette],
    numbers: Metrics,
    at_hand: Callable[[Scope], Response | None] | None = None,
) -> Starlette:
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Counted, meter=numbers, at_hand=at_hand), Middleware(Edge)],
        exception_handlers={
            HTTPException: answer_route_error,
            TruerankError: answer_truerank_error,
        },
        lifespan=lifespan,
    )
    # A redirect to an address without the slash would lose the body of a POST.
    app.router.redirect_slashes = False
    return app
