"""The connections of `truerank.projection.link`, for asyncio."""

from collections.abc import Sequence
from typing import Any

import redis
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from truerank.errors import ProjectionUnavailable
from truerank.projection.breaker import Breaker
from truerank.projection.link import (
    connection_options,
    eval_body,
    evalsha,
    packed,
    refusal,
    run_id_in,
)
from truerank.projection.pools import AsyncPool, Crowded
from truerank.projection.scripts import reply_name
from truerank.steps import ScriptCall
from truerank.telemetry.meter import Meter


class AsyncLink:
    """A pool of asyncio connections to one server; arguments as for `Link`."""

    def __init__(
        self,
        url: str,
        *,
        timeout_ms: int,
        connections_max: int = 10,
        meter: Meter | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self.meter = meter or Meter()
        self.breaker = breaker or Breaker(told=self.meter.breaker_changed)
        made = ConnectionPool.from_url(
            url,
            redis_connect_func=_greet,
            retry=Retry(NoBackoff(), 0),
            **connection_options(timeout_ms),
        )
        self._pool = AsyncPool(
            made.make_connection, connections_max=connections_max, wait_s=timeout_ms / 1000
        )

    async def call(self, call: ScriptCall) -> tuple[Any, str | None]:
        """Call one script; return its reply and the run id of the server that gave it.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        with self.meter.timing(call.script):
            return await self._call(call)

    async def _call(self, call: ScriptCall) -> tuple[Any, str | None]:
        async with _Borrowed(self._pool, self.breaker) as connection:
            (reply,) = await _exchange(connection, [evalsha(call)])
            if isinstance(reply, NoScriptError):
                (reply,) = await _exchange(connection, [eval_body(call)])
            self.meter.script_replied(call.script, reply_name(call.script, reply))
            run_id: str | None = connection.truerank_run_id
        if isinstance(reply, ResponseError):
            raise ProjectionUnavailable(f"{call.script}: {reply}") from reply
        return reply, run_id

    async def command(self, *words: str | bytes | int) -> Any:
        """Send one command; see `commands`."""
        (reply,) = await self.commands([words])
        return reply

    async def commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """Send several commands in one round trip.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        if not commands:
            return []
        with self.meter.timing(str(commands[0][0])):
            replies = await self._commands(commands)
        for words, reply in zip(commands, replies, strict=True):
            if isinstance(reply, ResponseError):
                raise ProjectionUnavailable(f"{words[0]!r}: {reply}") from reply
        return replies

    async def _commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        async with _Borrowed(self._pool, self.breaker) as connection:
            return await _exchange(connection, commands)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()


async def _greet(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("INFO", "server")
    try:
        connection.truerank_run_id = run_id_in(await connection.read_response())
    except ResponseError:
        # Access rules may forbid INFO: then nothing is known of the server's clock.
        connection.truerank_run_id = None


async def _exchange(connection: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    await connection.send_packed_command(packed(commands))
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(await connection.read_response())
        except ResponseError as exc:
            replies.append(exc)
    return replies


class _Borrowed:
    """A pooled connection; thrown away unless its replies were all read, also when cancelled."""

    def __init__(self, pool: AsyncPool, breaker: Breaker) -> None:
        self._pool = pool
        self._breaker = breaker

    async def __aenter__(self) -> Any:
        if not self._breaker.admit():
            raise refusal(self._breaker)
        try:
            self._connection: Any = await self._pool.borrow()
        except (RedisError, OSError) as exc:
            if not isinstance(exc, Crowded):
                self._breaker.failed()
            raise ProjectionUnavailable(f"no connection to Redis: {exc}") from exc
        return self._connection

    async def __aexit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if kind is not None:
            # A reply may still be on its way: the next borrower must not read it.
            await self._connection.disconnect(nowait=True)
        self._pool.give_back(self._connection)
        if isinstance(exc, redis.ConnectionError | redis.TimeoutError | OSError):
            self._breaker.failed()
            raise ProjectionUnavailable(f"Redis did not answer: {exc}") from exc
        if kind is None:
            self._breaker.succeeded()
