"""How answers and errors leave: JSON bytes, one error shape, headers."""

from typing import Any

import msgspec
import structlog
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truerank.errors import TruerankError
from truerank.serve.errors import RETRY_AFTER_S, HttpRefusal, status_of

_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
_MESSAGE_CHARS_MAX = 500
_UNAVAILABLE = 503
_INTERNAL = 500
_ROUTE_ERRORS = {404: ("route_unknown", "nothing is served at this address")}


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer that nobody may keep: its age is in it."""
    return Response(
        msgspec.json.encode(value),
        status_code=status,
        media_type="application/json",
        headers=_HEADERS | (headers or {}),
    )


def error_reply(error: TruerankError, **beside: Any) -> Response:
    """The one shape of every error: `{"code", "message", "field"}`, and what stands beside it."""
    status = status_of(error)
    headers = dict(error.headers) if isinstance(error, HttpRefusal) else {}
    if status == _UNAVAILABLE:
        headers.setdefault("retry-after", str(RETRY_AFTER_S))
    shape = {
        "code": error.reason,
        "message": _sendable(error.message),
        "field": None if error.field is None else _sendable(error.field),
    }
    return reply(shape | beside, status, headers)


async def answer_truerank_error(_: Request, exc: Exception) -> Response:
    """Answer an error that was raised on purpose."""
    assert isinstance(exc, TruerankError), "registered for this class"
    if status_of(exc) >= _INTERNAL:
        _log().warning("request_failed", code=exc.reason, error=exc.message[:300])
    return error_reply(exc)


async def answer_route_error(request: Request, exc: Exception) -> Response:
    """Answer what no route takes, in the shape of every error."""
    assert isinstance(exc, HTTPException), "registered for this class"
    code, message = _ROUTE_ERRORS.get(
        exc.status_code, ("method_not_allowed", f"{request.method} is not taken here")
    )
    return error_reply(HttpRefusal(exc.status_code, code, message, headers=exc.headers))


class Edge:
    """Around everything: refuses other hosts' names, and turns a failure into one JSON answer.

    The service has no keys yet. A page of another site whose name was pointed at this machine
    must not read or write it through a visitor's browser, so only names of the loopback are taken.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")
        if _without_port(host) not in _LOOPBACK_NAMES:
            refusal = HttpRefusal(
                421, "host_unknown", "this service answers at 127.0.0.1 and localhost only"
            )
            await error_reply(refusal)(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as exc:
            _log().exception("request_crashed", method=scope["method"], path=scope["path"])
            if started:
                raise
            refusal = HttpRefusal(_INTERNAL, "internal", "something went wrong; it was logged")
            refusal.__cause__ = exc
            await error_reply(refusal)(scope, receive, send)


def _sendable(text: str) -> str:
    # A message may quote what was refused, half a surrogate pair for one.
    return text[:_MESSAGE_CHARS_MAX].encode(errors="backslashreplace").decode()


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.serve")
    return log
