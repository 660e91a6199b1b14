"""How answers and errors leave: JSON bytes, one error shape, headers."""

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truerank.errors import NotSettled, SeasonNotOver, TruerankError
from truerank.read.shapes import time_text
from truerank.serve.errors import RETRY_AFTER_S, HttpRefusal, status_of

_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
_HOSTS_REMEMBERED = 64
_MESSAGE_CHARS_MAX = 500
_AGE = "staleness_ms"
_AGE_HEADER = b"truerank-staleness-ms"
_BESIDE_FRESHNESS = ("season", "state", "settled_at", "revision", "cohort")
_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')  # RFC 9110, 8.8.3
_BLANKS = " \t"
_PLAIN = "!#$&'()*+,/:;=?@[]"  # what isn't encoded of a label, beside letters, digits and `_.-~`
_IF_NONE_MATCH = b"if-none-match"
_JSON = (b"content-type", b"application/json")
_UNAVAILABLE = 503
_INTERNAL = 500
_METHOD_NOT_ALLOWED = 405
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

    The tag names what is shown, not when: who has it already is told how fresh it is by now. So it
    is a weak one (RFC 9110, 8.8.1): two answers of one tag may differ in their age.

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
        self.etag = f'W/"{digest[:32]}"'
        headers = _HEADERS | {"cache-control": "private, no-cache", "etag": self.etag}
        headers |= freshness_headers(shape)
        headers.pop(_AGE_HEADER.decode(), None)  # it is another one whenever it leaves
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
        if has_already(scope, self.etag):
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it in answer to an HTTP request; nothing is to be done after it."""
        del scope, receive
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        await send({"type": "http.response.body", "body": self.body})


def answer(request: Request, shape: dict[str, Any]) -> Response:
    """An answer with its freshness in the body and in headers, or 304 where only that changed."""
    return Encoded(shape).response(request.scope)


def _open(fields: dict[str, Any]) -> bytes:
    """A JSON object that another field can follow."""
    return msgspec.json.encode(fields)[:-1] + b","


def freshness_headers(shape: Mapping[str, Any]) -> dict[str, str]:
    """How true an answer is, as headers: what is null or absent in its JSON has none.

    Args:
        shape: of the answer, with its freshness, and the season and its state where it is of one.

    Returns:
        `truerank-` and the name of each, the label of the season percent-encoded.
    """
    told = {name: shape[name] for name in _BESIDE_FRESHNESS if name in shape}
    told |= {name: value for name, value in shape["freshness"].items() if value is not None}
    if "season" in told:
        told["season"] = quote(told["season"], safe=_PLAIN)
    return {_header(name): "true" if value is True else str(value) for name, value in told.items()}


def has_already(scope: Scope, etag: str) -> bool:
    """Whether the client has what this tag names: what If-None-Match says (RFC 9110, 13.1.2).

    Compared weakly: `W/` makes no difference. A header that can't be read says nothing.
    """
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == _IF_NONE_MATCH]
    if not lines or scope["method"] == "POST":
        return False
    given = ",".join(lines)
    if given.strip(_BLANKS) == "*":
        return True
    # A tag may hold commas, so they are taken out before the list is; its elements may be empty.
    between = {element.strip(_BLANKS) for element in _TAG.sub("\0", given).split(",")}
    return between <= {"\0", ""} and etag.removeprefix("W/") in _TAG.findall(given)


def _header(name: str) -> str:
    return f"truerank-{name.replace('_', '-')}"


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
    if isinstance(error, NotSettled | SeasonNotOver) and error.ready_at is not None:
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
    headers = exc.headers
    if exc.status_code == _METHOD_NOT_ALLOWED:
        # The router names the methods of the address's first route alone.
        taken = {
            method
            for route in request.app.routes
            if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
            for method in route.methods or ()
        }
        headers = {"allow": ", ".join(sorted(taken))}
    return error_reply(HttpRefusal(exc.status_code, code, message, headers=headers))


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
        if not names_loopback(scope):
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


def names_loopback(scope: Scope) -> bool:
    """Whether a request's Host is a name of this machine's loopback."""
    for name, value in scope["headers"]:
        if name == b"host":
            return _is_loopback(value)
    return False


@lru_cache(maxsize=_HOSTS_REMEMBERED)
def _is_loopback(host: bytes) -> bool:
    return _without_port(host.decode("latin-1")) in _LOOPBACK_NAMES


def _sendable(text: str) -> str:
    # A message may quote what was refused, half a surrogate pair for one.
    return text[:_MESSAGE_CHARS_MAX].encode(errors="backslashreplace").decode()


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name.lower() if colon and port.isdigit() else host.lower()


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.serve")
    return log
