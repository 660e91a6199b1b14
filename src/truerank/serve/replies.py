"""How answers and errors leave: JSON bytes, one error shape, headers."""

import hashlib
import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truerank.errors import NotSettled, TruerankError
from truerank.read.shapes import time_text
from truerank.serve.errors import RETRY_AFTER_S, HttpRefusal, status_of

_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
_MESSAGE_CHARS_MAX = 500
_AGE = "staleness_ms"
_AGE_HEADER = b"truerank-staleness-ms"
_JSON = (b"content-type", b"application/json")
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


class Encoded:
    """An answer as bytes, but for its age, which is written into it whenever it leaves.

    The tag names what is shown, not when: who has it already is told how fresh it is by now.

    Args:
        shape: with its freshness, which leaves as the last of its fields.
    """

    __slots__ = ("_after", "_before", "_fixed", "_staleness_ms", "etag")

    def __init__(self, shape: dict[str, Any]) -> None:
        freshness: dict[str, Any] = shape["freshness"]
        names = list(freshness)
        at = names.index(_AGE)
        self._staleness_ms: int | None = freshness[_AGE]
        head = _open({name: shape[name] for name in shape if name != "freshness"})
        self._before = b'%b"freshness":%b"%b":' % (
            head,
            _open({name: freshness[name] for name in names[:at]}),
            _AGE.encode(),
        )
        rest = msgspec.json.encode({name: freshness[name] for name in names[at + 1 :]})
        self._after = b"}}" if rest == b"{}" else b"," + rest[1:] + b"}"
        digest = hashlib.sha256(head + freshness["epoch"].encode()).hexdigest()
        self.etag = f'"{digest[:32]}"'
        headers = _HEADERS | {"cache-control": "private, no-cache", "etag": self.etag}
        headers |= {
            _header(name): str(value)
            for name, value in freshness.items()
            if value is not None and name not in {"partial", "settled", _AGE}
        }
        self._fixed = [(name.encode(), value.encode()) for name, value in headers.items()]

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self._before) + len(self._after)

    def response(self, scope: Scope, *, held_ms: int = 0) -> Response:
        """The answer, or 304 where the client has what it shows.

        Args:
            scope: of the request that is answered.
            held_ms: since it was read: it is so much older than it was then.
        """
        headers = self._fixed.copy()
        age = b"null"
        if self._staleness_ms is not None:
            age = b"%d" % (self._staleness_ms + held_ms)
            headers.append((_AGE_HEADER, age))
        for name, value in scope["headers"]:
            if name == b"if-none-match" and self.etag in _tags(value.decode("latin-1")):
                return _Bytes(304, b"", headers)
        body = b"%b%b%b" % (self._before, age, self._after)
        headers += (_JSON, (b"content-length", b"%d" % len(body)))
        return _Bytes(200, body, headers)


class _Bytes(Response):
    """A response whose bytes and headers are all made."""

    def __init__(self, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self.status_code = status
        self.body = body
        self.raw_headers = headers
        self.background = None


def answer(request: Request, shape: dict[str, Any]) -> Response:
    """An answer with its freshness in the body and in headers, or 304 where only that changed."""
    return Encoded(shape).response(request.scope)


def _open(fields: dict[str, Any]) -> bytes:
    """A JSON object that another field can follow."""
    return msgspec.json.encode(fields)[:-1] + b","


def _header(name: str) -> str:
    return f"truerank-{name.replace('_', '-')}"


def _tags(text: str) -> set[str]:
    """The tags of an If-None-Match header; weak ones name the same."""
    return {tag.strip().removeprefix("W/") for tag in text.split(",")}


def error_reply(error: TruerankError, **beside: Any) -> Response:
    """The one shape of every error: `{"code", "message", "field"}`, and what stands beside it.

    Where a season is to be settled at a known time, also `ready_at`.
    """
    status = status_of(error)
    headers = dict(error.headers) if isinstance(error, HttpRefusal) else {}
    if status == _UNAVAILABLE:
        headers.setdefault("retry-after", str(RETRY_AFTER_S))
    shape = {
        "code": error.reason,
        "message": _sendable(error.message),
        "field": None if error.field is None else _sendable(error.field),
    }
    if isinstance(error, NotSettled) and error.ready_at is not None:
        shape["ready_at"] = time_text(error.ready_at)
        wait_s = (error.ready_at - datetime.now(UTC)).total_seconds()
        headers.setdefault("retry-after", str(max(RETRY_AFTER_S, math.ceil(wait_s))))
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
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        if _without_port(host.decode("latin-1")) not in _LOOPBACK_NAMES:
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
