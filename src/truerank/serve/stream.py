"""Live hints as server-sent events: where the stream begins, then that something changed.

Nothing is queued for a stream: what its reader didn't take yet is merged into one notice. It
holds no connection of its own to either store.
"""

import asyncio
import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from truerank.errors import Busy, DatabaseUnavailable, ProjectionUnavailable
from truerank.model import Board
from truerank.read.hints import Kind, Notice, Waited, current
from truerank.serve.feed import Listener
from truerank.serve.params import Params, board_of
from truerank.serve.service import Service, service_of

HEARTBEAT_S = 15.0
_HEADERS = {
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",  # proxies pass each event on at once
    "x-content-type-options": "nosniff",
}
_BOARDS_MAX = 10_000


async def live(request: Request) -> Response:
    """`GET /v1/boards/{board}/live`."""
    service = service_of(request)
    Params(request, ())
    board = await _board(service, board_of(request))
    if service.feed.full:
        raise Busy("this process serves as many streams as it takes")
    if request.method == "HEAD":
        return Response(media_type="text/event-stream", headers=_HEADERS)
    return EventStream(service, board, again="last-event-id" in request.headers)


class EventStream(Response):
    """The events of one board, until the client goes or the service stops.

    Args:
        service: the running service.
        board: whose hints.
        again: the client was here before: nothing is kept to repeat, so it looks again.
    """

    media_type = "text/event-stream"

    def __init__(self, service: Service, board: Board, *, again: bool) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._service = service
        self._board = board
        self._started = False
        self._first = Kind.RESYNC if again else Kind.TICK

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until either side ends."""
        del scope
        sent = await self._service.while_wanted(self._send(send), receive)
        if self._service.closing.is_set():
            if not self._started:
                await send(self._start())
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        elif isinstance(sent, Exception) and not isinstance(sent, OSError):
            raise sent

    async def _send(self, send: Send) -> None:
        # Headers at once: a subscription may take a moment, and proxies wait for them.
        self._started = True
        await send(self._start())

        async def write(text: bytes) -> None:
            await send({"type": "http.response.body", "body": text, "more_body": True})

        await write(b": live hints; fetch the board after each\nretry: 1000\n\n")
        self._service.meter.streams_open(1)
        try:
            async with self._service.feed.listen(self._board.id, self._board.group) as listener:
                listener.began = True
                await write(await self._beginning())
                while True:
                    await write(await self._next(listener))
        finally:
            self._service.meter.streams_open(-1)

    def _start(self) -> Message:
        return {"type": "http.response.start", "status": 200, "headers": self.raw_headers}

    async def _beginning(self) -> bytes:
        try:
            generation, tick = await self._service.truerank.run(
                current(self._service.settings.prefix, self._board.group)
            )
        except ProjectionUnavailable:
            generation, tick = None, None
        return self._frame(Notice(kind=self._first, generation=generation, tick=tick))

    async def _next(self, listener: Listener) -> bytes:
        """The next event, or a comment where there was none for a while."""
        deadline = time.monotonic() + HEARTBEAT_S
        while True:
            now = time.monotonic()
            due_s = listener.pending.due_in(now)
            if due_s == 0:
                notice = await self._told(listener.pending.take())
                if notice is not None:
                    listener.pending.gave(now)
                    return self._frame(notice)
                continue
            if due_s is not None:
                await asyncio.sleep(due_s)
                continue
            listener.woken.clear()
            try:
                async with asyncio.timeout(max(0.0, deadline - now)):
                    await listener.woken.wait()
            except TimeoutError:
                return b": still here\n\n"

    async def _told(self, waited: Waited) -> Notice | None:
        client = self._service.truerank
        known = client.operations.known
        asking = self._service.naming.setdefault(self._board.id, asyncio.Lock())
        async with asking:
            unseen = await client.run(known.frozen(self._board.id))
            named = await client.run(known.named(waited.unnamed))
        return waited.told(named, unseen=unseen)

    def _frame(self, notice: Notice) -> bytes:
        data = {
            "board": self._board.spec.key,
            "seasons": notice.seasons,
            "cohorts": notice.cohorts,
            "generation": notice.generation,
            "tick": None if notice.tick is None else str(notice.tick),
        }
        # JSON escapes line breaks, so that no board's key can end the frame.
        return b"event: %b\nid: %b\ndata: %b\n\n" % (
            notice.kind.encode(),
            str(notice.tick or 0).encode(),
            msgspec.json.encode(data),
        )


async def _board(service: Service, key: str) -> Board:
    """A board; its number and group never change, so what was seen once serves an outage too."""
    try:
        board = await service.truerank.board(key)
    except (Busy, DatabaseUnavailable):
        if key not in service.boards_seen:
            raise
        return service.boards_seen[key]
    if len(service.boards_seen) >= _BOARDS_MAX:
        service.boards_seen.clear()
    service.boards_seen[key] = board
    return board
