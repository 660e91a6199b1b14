"""Connections to one server, lent to those who call it: so many at a time, and each in turn.

redis-py makes and checks them. Its own pools count and time every loan for its instruments, which
takes longer than the server needs for an answer.
"""

import asyncio
import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import redis
from redis.exceptions import RedisError


class Crowded(redis.ConnectionError):
    """All connections are in use, and none became free in time: no fault of the server."""


class Pool:
    """Lends blocking connections to threads.

    Args:
        make: one more connection, not connected yet.
        connections_max: at the same time.
        wait_s: for one to become free, in seconds.
    """

    def __init__(self, make: Callable[[], Any], *, connections_max: int, wait_s: float) -> None:
        self._make = make
        self._connections_max = connections_max
        self._wait_s = wait_s
        self._begin()

    def borrow(self) -> Any:
        """A connection that is ready for a command.

        Raises:
            Crowded: all are in use.
            RedisError, OSError: the server can't be reached.
        """
        if self._process != os.getpid():
            self._begin()  # those it was forked with belong to its parent
        try:
            self._free.get(timeout=self._wait_s)
        except Empty as exc:
            raise _crowded() from exc
        try:
            return self._ready()
        except BaseException:
            self._free.put(None)
            raise

    def give_back(self, connection: Any) -> None:
        """Let others have it; one that was disconnected is connected again for them."""
        self._idle.append(connection)
        self._free.put(None)

    def close(self) -> None:
        """Close all connections, also those that are lent."""
        for connection in self._made:
            connection.disconnect()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._made: list[Any] = []
        self._idle: list[Any] = []
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._connections_max):
            self._free.put(None)

    def _ready(self) -> Any:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._make()
            self._made.append(connection)
        try:
            if not connection.is_connected:
                connection.connect()
            elif _is_stale(connection):
                connection.disconnect()
                connection.connect()
        except BaseException:
            self._idle.append(connection)
            raise
        return connection


class AsyncPool:
    """Lends asyncio connections to the tasks of one event loop; arguments as for `Pool`."""

    def __init__(self, make: Callable[[], Any], *, connections_max: int, wait_s: float) -> None:
        self._make = make
        self._wait_s = wait_s
        self._made: list[Any] = []
        self._idle: list[Any] = []
        self._free = asyncio.Semaphore(connections_max)

    async def borrow(self) -> Any:
        """See `Pool.borrow`."""
        if self._free.locked():
            try:
                async with asyncio.timeout(self._wait_s):
                    await self._free.acquire()
            except TimeoutError as exc:
                raise _crowded() from exc
        else:
            await self._free.acquire()  # at once
        try:
            return await self._ready()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, connection: Any) -> None:
        """See `Pool.give_back`."""
        self._idle.append(connection)
        self._free.release()

    async def close(self) -> None:
        """See `Pool.close`."""
        for connection in self._made:
            await connection.disconnect()

    async def _ready(self) -> Any:
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = self._make()
            self._made.append(connection)
        try:
            if not connection.is_connected:
                await connection.connect()
            elif await _is_stale_async(connection):
                await connection.disconnect(nowait=True)
                await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            self._idle.append(connection)
            raise
        return connection


def _is_stale(connection: Any) -> bool:
    # The server ended it while it lay there, or a reply was left: both can be read.
    try:
        stale: bool = connection.can_read()
    except (RedisError, OSError):
        return True
    return stale


async def _is_stale_async(connection: Any) -> bool:
    try:
        stale: bool = await connection.can_read()
    except (RedisError, OSError):
        return True
    return stale


def _crowded() -> Crowded:
    return Crowded("all connections are in use")
