"""One subscription of this process to the hints of the projection, shared by all it serves.

Messages lost while the connection was away can't be known, so every listener is told to look
again once the subscription stands. A connection that went silent is noticed by a PING.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Protocol

import structlog
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from truerank.ending import ended
from truerank.errors import ProjectionUnavailable
from truerank.projection.keys import GroupKeys
from truerank.projection.link import connection_options
from truerank.read import hints
from truerank.telemetry.meter import Meter

PING_S = 5.0  # a dead subscription is noticed within two of these
GAP_S = 0.25  # at most four notices a second to one stream
_BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_LISTENERS_MAX = 1000
_MOMENT_S = 2.0  # in which an interruption passes by itself


class Listener:
    """One stream: what it wasn't told yet, and a signal that something is."""

    def __init__(self) -> None:
        self.pending = hints.Pending(GAP_S)
        self.woken = asyncio.Event()
        self.began = False  # its reader was told where the stream begins

    def add(self, hint: hints.Hint) -> None:
        """Take a hint."""
        self.pending.add(hint)
        self.woken.set()

    def lost(self) -> None:
        """Take the news that hints may have been lost."""
        if self.began:
            self.pending.lost()
            self.woken.set()


class Follower(Protocol):
    """Who wants the hints of all boards at once."""

    def hinted(self, hint: hints.Hint) -> None:
        """A hint came."""

    def lost(self) -> None:
        """A subscription stands from now on: hints before it may have been lost."""


class Feed:
    """The subscription. It begins with the first that wants hints and stays until `close`.

    Args:
        redis_url: of the server that publishes.
        prefix: of the channels.
        timeout_ms: for a connection and a subscription.
        meter: told of every interruption; None: nobody is.
    """

    def __init__(
        self, redis_url: str, *, prefix: str, timeout_ms: int, meter: Meter | None = None
    ) -> None:
        self._error: str | None = None
        self._error_at = 0.0
        self._meter = meter or Meter()
        self._pool = ConnectionPool.from_url(
            redis_url, retry=Retry(NoBackoff(), 0), **connection_options(timeout_ms)
        )
        self._prefix = prefix
        self._timeout_s = timeout_ms / 1000
        self._listeners: dict[int, set[Listener]] = {}  # by board
        self._boards: dict[str, set[int]] = {}  # by channel: those that were ever listened to
        self._standing: dict[str, asyncio.Event] = {}  # by channel: set while subscribed
        self._channels: dict[int, str] = {}  # by group
        self._connection: AbstractConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._count = 0
        self.followers: list[Follower] = []

    @property
    def deaf(self) -> str | None:
        """Why no hints have arrived for more than a moment, or None."""
        return self._error if time.monotonic() - self._error_at > _MOMENT_S else None

    @property
    def full(self) -> bool:
        """Whether no more streams are taken."""
        return self._count >= _LISTENERS_MAX

    @contextlib.asynccontextmanager
    async def listen(self, board: int, group: int) -> AsyncIterator[Listener]:
        """Listen to one board; the subscription stands when this yields.

        Where Redis doesn't answer in time it yields all the same, and `lost` follows later.
        """
        listener = Listener()
        self._listeners.setdefault(board, set()).add(listener)
        self._count += 1
        try:
            channel = self._channel(group)
            self._boards.setdefault(channel, set()).add(board)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timeout_s):
                    await self._subscribed(channel)
            yield listener
        finally:
            self._count -= 1
            self._listeners[board].discard(listener)
            if not self._listeners[board]:
                del self._listeners[board]

    async def follow(self, group: int) -> None:
        """Begin to hear a group's hints for the followers; see `hears` for whether it has."""
        await self._subscribe(self._channel(group))

    def hears(self, group: int) -> bool:
        """Whether a group's hints arrive now, as far as is known."""
        standing = self._standing.get(self._channel(group))
        return standing is not None and standing.is_set()

    async def close(self) -> None:
        """End the subscription."""
        if self._task is not None:
            await ended(self._task)
        await self._pool.disconnect()

    def _channel(self, group: int) -> str:
        if group not in self._channels:
            self._channels[group] = GroupKeys(self._prefix, group).hints
        return self._channels[group]

    async def _subscribed(self, channel: str) -> None:
        await self._subscribe(channel)
        await self._standing[channel].wait()

    async def _subscribe(self, channel: str) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        if channel not in self._standing:
            self._standing[channel] = asyncio.Event()
            connection = self._connection
            # Where there is no connection now, the next one subscribes to everything.
            if connection is not None and connection.is_connected:
                with contextlib.suppress(RedisError, OSError):  # the reader notices it too
                    await connection.send_command("SUBSCRIBE", channel)

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                async with contextlib.aclosing(self._messages()) as messages:
                    async for message in messages:
                        failures = 0
                        self._take(message)
            except (RedisError, OSError) as exc:
                if self._error is None:
                    _log().warning("hints_interrupted", error=str(exc)[:300])
                self._interrupted(str(exc))
            except Exception as exc:  # noqa: BLE001 - nobody waits for this task to hear of it
                _log().exception("hints_crashed")
                self._interrupted(repr(exc))
            self._connection = None
            for standing in self._standing.values():
                standing.clear()
            await asyncio.sleep(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])
            failures += 1

    def _interrupted(self, error: str) -> None:
        if self._error is None:
            self._error_at = time.monotonic()
        self._error = error[:300]
        self._meter.failed("hints", ProjectionUnavailable.code)

    async def _messages(self) -> AsyncGenerator[list[Any]]:
        connection: AbstractConnection = await self._pool.get_connection()  # type: ignore[no-untyped-call]  # untyped there
        try:
            channels = list(self._standing)
            self._connection = connection
            if channels:
                await connection.send_command("SUBSCRIBE", *channels)
            asked = False
            while True:
                message = await connection.read_response(timeout=PING_S)
                if message is not None:
                    asked = False
                    yield message
                elif asked:
                    raise ConnectionError(f"no answer to PING within {PING_S:g} s")
                else:
                    asked = True
                    await connection.send_command("PING")
        finally:
            await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    def _take(self, message: list[Any]) -> None:
        kind, *rest = message
        if kind == b"message":
            hint = hints.parse(rest[1])
            if hint is not None:
                for listener in self._listeners.get(hint.board, ()):
                    listener.add(hint)
                for follower in self.followers:
                    follower.hinted(hint)
        elif kind == b"subscribe":
            if self._error is not None:
                self._error = None
                _log().info("hints_resumed")
            channel = rest[0].decode()
            self._standing[channel].set()
            for board in self._boards.get(channel, ()):
                for listener in self._listeners.get(board, ()):
                    listener.lost()
            for follower in self.followers:
                follower.lost()


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.serve")
    return log
