"""The connections of `truerank.projection.link`, for asyncio."""

from collections.abc import Sequence
from typing import Any

import redis
from redis.asyncio.connection import BlockingConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from truerank.errors import ProjectionUnavailable
from truerank.projection.link import connection_options, eval_body, evalsha, run_id_in
from truerank.steps import ScriptCall


class AsyncLink:
    """A pool of asyncio connections to one server."""

    def __init__(self, url: str, *, timeout_ms: int, connections_max: int = 10) -> None:
        self._pool = BlockingConnectionPool.from_url(
            url,
            max_connections=connections_max,
            timeout=timeout_ms / 1000,  # for one to become free
            redis_connect_func=_greet,
            retry=Retry(NoBackoff(), 0),
            **connection_options(timeout_ms),
        )

    async def call(self, call: ScriptCall) -> tuple[Any, str | None]:
        """Call one script; return its reply and the run id of the server that gave it.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        async with _Borrowed(self._pool) as connection:
            (reply,) = await _exchange(connection, [evalsha(call)])
            if isinstance(reply, NoScriptError):
                (reply,) = await _exchange(connection, [eval_body(call)])
            run_id: str | None = connection.truerank_run_id
        if isinstance(reply, ResponseError):
            raise ProjectionUnavailable(f"{call.script}: {reply}") from reply
        return reply, run_id

    async def command(self, *words: str | bytes | int) -> Any:
        """Send one command.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        async with _Borrowed(self._pool) as connection:
            (reply,) = await _exchange(connection, [words])
        if isinstance(reply, ResponseError):
            raise ProjectionUnavailable(f"{words[0]!r}: {reply}") from reply
        return reply

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.disconnect()


async def _greet(connection: Any) -> None:
    await connection.on_connect()
    await connection.send_command("INFO", "server")
    try:
        connection.truerank_run_id = run_id_in(await connection.read_response())
    except ResponseError:
        # Access rules may forbid INFO: then nothing is known of the server's clock.
        connection.truerank_run_id = None


async def _exchange(connection: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    await connection.send_packed_command(connection.pack_commands(commands))
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(await connection.read_response())
        except ResponseError as exc:
            replies.append(exc)
    return replies


class _Borrowed:
    """A pooled connection; thrown away unless its replies were all read, also when cancelled."""

    def __init__(self, pool: BlockingConnectionPool) -> None:
        self._pool = pool

    async def __aenter__(self) -> Any:
        try:
            self._connection: Any = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        except (RedisError, OSError) as exc:
            raise ProjectionUnavailable(f"no connection to Redis: {exc}") from exc
        return self._connection

    async def __aexit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if kind is not None:
            # A reply may still be on its way: the next borrower must not read it.
            await self._connection.disconnect(nowait=True)
        await self._pool.release(self._connection)
        if isinstance(exc, redis.ConnectionError | redis.TimeoutError | OSError):
            raise ProjectionUnavailable(f"Redis did not answer: {exc}") from exc
