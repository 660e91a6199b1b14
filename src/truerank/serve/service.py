"""What the routes of one process share: opened once, closed once."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.types import Receive

from truerank.aio import Truerank
from truerank.ending import ended
from truerank.gather import Gather
from truerank.model import Board
from truerank.serve.cache import Pages
from truerank.serve.checks import LiveChecks
from truerank.serve.feed import Feed
from truerank.serve.slots import Slots
from truerank.settings import Settings
from truerank.telemetry.meter import Meter
from truerank.writing import Writer

_CLOSE_S_MAX = 3.0


@dataclass(eq=False)
class Service:
    """The open connections of one process, and the signal that it stops."""

    settings: Settings
    truerank: Truerank
    gather: Gather
    feed: Feed
    pages: Pages
    meter: Meter
    exports: Slots
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    # By board: streams of one wake together, and one of them asks what hints are about.
    naming: WeakValueDictionary[int, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    boards_seen: dict[str, Board] = field(default_factory=dict)

    async def while_wanted(self, sending: Coroutine[Any, Any, None], receive: Receive) -> Any:
        """Send an answer until its end, or until the client goes or the service stops.

        Returns:
            The exception that ended it, if one did.
        """
        ends = [
            asyncio.create_task(sending),
            asyncio.create_task(_gone(receive)),
            asyncio.create_task(self.closing.wait()),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sent, *_ = await ended(*ends)
        return sent


@asynccontextmanager
async def open_service(settings: Settings, meter: Meter) -> AsyncIterator[Service]:
    """Open what the routes need. Neither store has to answer yet.

    Raises:
        SettingsInvalid: an address is missing.
    """
    async with Truerank(settings, meter) as truerank:
        assert settings.redis_url is not None, "the client checks both addresses"
        writer = Writer(settings, meter)
        await writer.open()
        feed = Feed(
            settings.redis_url,
            prefix=settings.prefix,
            timeout_ms=settings.redis_timeout_ms,
            meter=meter,
        )
        gather = Gather(writer.submit, wait_s_max=settings.database_timeout_ms / 1000)
        pages = Pages(truerank, feed, settings, meter)
        checks = LiveChecks(truerank, meter, percent=settings.live_checks_percent)
        service = Service(
            settings=settings,
            truerank=truerank,
            gather=gather,
            feed=feed,
            pages=pages,
            meter=meter,
            exports=Slots(settings.exports_max, "exports"),
        )
        try:
            yield service
        finally:
            service.closing.set()
            await checks.close()
            await pages.close()
            await feed.close()
            await gather.close(timeout_s=_CLOSE_S_MAX)
            await writer.close()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def service_of(request: Request) -> Service:
    """The running service behind a request."""
    service: Service = request.app.state.service
    return service
