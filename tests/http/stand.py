"""A worker that a test steps, and an application beside it that holds pages for long."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
from starlette.applications import Starlette

from tests.projection.pipeline import Pipeline
from truerank.projection.projector import Projector
from truerank.serve.app import create_app
from truerank.serve.feed import Feed
from truerank.telemetry.metrics import Metrics

DEADLINE_S = 20.0
TOP = "/v1/boards/b/top"


class Stand:
    """A worker that a test steps, and the application beside it in this event loop."""

    def __init__(self, pipeline: Pipeline, projector: Projector) -> None:
        self.pipeline = pipeline
        self.projector = projector

    @asynccontextmanager
    async def serving(self, **changes: Any) -> AsyncIterator["Served"]:
        """Serve with these settings; hints arrive, unless there is no Redis."""
        settings = msgspec.structs.replace(self.pipeline.settings, **changes)
        app = create_app(settings, metrics := Metrics())
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                base_url="http://127.0.0.1", transport=httpx.ASGITransport(app)
            ) as client,
        ):
            yield Served(app, client, metrics)

    def write(self, scores: dict[str, int], board: str = "b") -> str:
        """Submit, and show it; the token."""
        (*_, receipt) = self.pipeline.submit(board, scores)
        self.pipeline.settle(self.projector)
        assert receipt.token is not None
        return receipt.token


class Served:
    """What a test asks of a running application."""

    def __init__(self, app: Starlette, client: httpx.AsyncClient, metrics: Metrics) -> None:
        self.app = app
        self.client = client
        self.metrics = metrics

    async def top(self, **params: Any) -> httpx.Response:
        return await self.client.get(TOP, params=params)

    async def scores(self, **params: Any) -> dict[str, str]:
        page = (await self.top(**params)).raise_for_status().json()
        return {entry["member"]: entry["score"] for entry in page["entries"]}

    async def hearing(self) -> None:
        """Return once hints arrive, and nothing is held from before."""
        await self.top()
        feed: Feed = self.app.state.service.feed

        async def is_heard() -> bool:
            return feed.hears(0)

        await until(is_heard, "hints to arrive")

    @property
    def reads(self) -> float:
        """How often Redis was asked for a page."""
        return self.metrics.registry.get_sample_value(
            "truerank_script_calls_total", {"script": "page", "reply": "ok"}
        ) or 0.0  # fmt: skip


async def until(condition: Callable[[], Awaitable[bool]], awaited: str) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + DEADLINE_S
    while not await condition():
        assert time.monotonic() < deadline, f"still waiting for {awaited}"
        await asyncio.sleep(0.01)


def deafen(served: Served, *, noticed: bool) -> None:
    """Let no hint arrive any more, whether or not the process has noticed it."""
    feed = served.app.state.service.feed
    feed.followers.clear()
    feed.hears = lambda _group: not noticed
