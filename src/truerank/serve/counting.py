"""Counts requests by route and status, and how long each waited for the first byte."""

import time

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truerank.telemetry.meter import Meter

_NO_ROUTE = "none"


class Counted:
    """Around everything; a route is named as it is declared, so names are few.

    Args:
        app: what answers.
        meter: told of every answer.
    """

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self._app = app
        self._meter = meter
        self._names: dict[object, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

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
