"""A whole season over HTTP, streamed as it is read from PostgreSQL, a bounded number at a time."""

import asyncio
from typing import Any
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from truerank.errors import TruerankError
from truerank.exporting import AsyncExport
from truerank.model import Numbering
from truerank.read.exported import ExportHead
from truerank.read.shapes import export_json
from truerank.serve.operators import operators_client
from truerank.serve.params import Params, board_of
from truerank.serve.replies import freshness_headers
from truerank.serve.service import Service, service_of
from truerank.serve.sharing import within

_MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8; header=present",
    "ndjson": "application/x-ndjson",
}
STALL_S_MAX = 30.0  # for a client to take what was sent: PostgreSQL keeps the snapshot meanwhile


async def export(request: Request) -> Response:
    """`GET /v1/boards/{board}/export?season=&format=&numbering=&settled=&revision=&cohort=`."""
    params = Params(
        request,
        ("season", "format", "numbering", "settled", "revision", "cohort", "cohort_of"),
    )
    settled = params.flag("settled")
    # Under the own ids of those who are hidden today, which others are not told.
    client = operators_client(request) if settled else service_of(request).truerank
    kind: Any = params.text("format") or "csv"
    exported: AsyncExport[bytes] = client.export(
        board_of(request),
        params.text("season"),
        format=kind,
        numbering=params.choice("numbering", Numbering, Numbering.COMPETITION),
        settled=settled,
        revision=params.number("revision", 0) if params.text("revision") else None,
        **within(params),
    )
    return ExportStream(service_of(request), exported, kind)


class ExportStream(Response):
    """The lines of an export; whatever ends it early ends its transaction.

    Args:
        service: the running service.
        exported: not yet opened.
        kind: the format.
    """

    def __init__(self, service: Service, exported: AsyncExport[bytes], kind: str) -> None:
        super().__init__(media_type=_MEDIA_TYPES[kind])
        del self.headers["content-length"]
        self._service = service
        self._exported = exported
        self._kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the last row, or until either side goes."""
        sent = await self._service.while_wanted(self._send(scope, send), receive)
        if isinstance(sent, Exception) and not isinstance(sent, OSError):
            raise sent

    async def _send(self, scope: Scope, send: Send) -> None:
        with self._service.exports.one():
            async with self._exported as exported:
                await send(self._start(exported.head))
                whole = scope["method"] == "HEAD" or await _send_rows(exported, send)
        # Whoever got the end may ask for the next at once. Where the rows broke off, the status is
        # sent already: by a body without an end a client is told so.
        if whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _start(self, head: ExportHead) -> Message:
        cohort = "" if head.season.cohort is None else f"-cohort-{head.season.cohort}"
        name = quote(f"{head.board.spec.key}-{head.season.label}{cohort}.{self._kind}", safe="")
        self.headers["content-disposition"] = f"attachment; filename*=UTF-8''{name}"
        self.headers["cache-control"] = "no-store"
        self.headers["x-content-type-options"] = "nosniff"
        self.headers.update(freshness_headers(export_json(head)))
        return {"type": "http.response.start", "status": 200, "headers": self.raw_headers}


async def _send_rows(exported: AsyncExport[bytes], send: Send) -> bool:
    """Send all rows; False where that wasn't possible."""
    try:
        async for lines in exported.batches():
            async with asyncio.timeout(STALL_S_MAX):
                await send(
                    {"type": "http.response.body", "body": b"".join(lines), "more_body": True}
                )
    except (TruerankError, TimeoutError) as exc:
        board = exported.head.board.spec.key
        _log().warning("export_broken", board=board, error=str(exc) or "the client takes nothing")
        return False
    return True


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.serve")
    return log
