"""Counts requests by route and status, and how long each waited for the first byte.

What is held is answered here already: it costs so little that what stands around the routes would
cost as much again.
"""

import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truerank.serve.replies import names_loopback
from truerank.telemetry.meter import Meter

_NO_ROUTE = "none"


class Counted:
    """Around everything; a route is named as it is declared, so names are few.

    Args:
        app: what answers.
        meter: told of every answer.
        at_hand: given the scope of a GET to this machine's own name, the answer that is held to it.
    """

    def __init__(
        self, app: ASGIApp, meter: Meter, at_hand: Callable[[Scope], Response | None] | None = None
    ) -> None:
        self._app = app
        self._meter = meter
        self._at_hand = at_hand
        self._names: dict[object, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        if self._at_hand is not None and scope["method"] == "GET" and names_loopback(scope):
            held = self._at_hand(scope)
            if held is not None:
                seconds = time.monotonic() - began
                self._meter.request_answered(self._route(scope), held.status_code, seconds)
                await held(scope, receive, send)
                return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = time.monotonic() - began
                self._meter.request_answered(self._route(scope), message["status"], seconds)
            await send(message)

        await self._app(scope, receive, sending)

    def _route(self, scope: Scope) -> str:
        if not self._names:
            app: Starlette = scope["app"]
            self._names = {
                route.endpoint: f"{min(route.methods - {'HEAD'})} {route.path}"
                for route in reversed(app.routes)
                if isinstance(route, Route) and route.methods
            }
        return self._names.get(scope.get("endpoint"), _NO_ROUTE)
