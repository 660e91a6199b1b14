"""Blocking connections to Valkey or Redis, each of which knows which server it reached.

Every call has a deadline. Nothing is repeated by the client: the scripts are made to be called
again, but who calls decides when.
"""

from collections.abc import Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import BlockingConnectionPool, ConnectionPool
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.retry import Retry

from truerank.errors import ProjectionUnavailable, ProjectionUnsafe
from truerank.projection.scripts import script
from truerank.steps import ScriptCall


def connection_options(timeout_ms: int) -> dict[str, Any]:
    """Options for both kinds of pool: a deadline, no repeats, replies as bytes."""
    return {
        "socket_timeout": timeout_ms / 1000,
        "socket_connect_timeout": timeout_ms / 1000,
        "protocol": 2,
    }


def run_id_in(info: bytes) -> str | None:
    """The server's run id in the text of INFO: it changes with every restart."""
    for line in info.splitlines():
        if line.startswith(b"run_id:"):
            return line[7:].decode()
    return None


def policy_in(info: bytes) -> str | None:
    """The server's eviction policy in the text of INFO."""
    for line in info.splitlines():
        if line.startswith(b"maxmemory_policy:"):
            return line[17:].decode()
    return None


def check_policy(policy: str | None) -> None:
    """Refuse a server that may evict board keys.

    Raises:
        ProjectionUnsafe: the policy isn't `noeviction`.
    """
    if policy not in {None, "noeviction"}:
        raise ProjectionUnsafe(
            f"maxmemory-policy is {policy}: board keys could be evicted; set it to noeviction"
        )


def evalsha(call: ScriptCall) -> tuple[Any, ...]:
    """The command that calls a script by its digest."""
    return ("EVALSHA", script(call.script).sha1, len(call.keys), *call.keys, *call.args)


def eval_body(call: ScriptCall) -> tuple[Any, ...]:
    """The command that sends a script's body, after which the server knows it."""
    return ("EVAL", script(call.script).text, len(call.keys), *call.keys, *call.args)


class Link:
    """A pool of blocking connections to one server."""

    def __init__(self, url: str, *, timeout_ms: int, connections_max: int = 10) -> None:
        self._pool: ConnectionPool = BlockingConnectionPool.from_url(
            url,
            max_connections=connections_max,
            timeout=timeout_ms / 1000,  # for one to become free
            redis_connect_func=_greet,
            retry=Retry(NoBackoff(), 0),
            **connection_options(timeout_ms),
        )

    def call(self, call: ScriptCall) -> tuple[Any, str | None]:
        """Call one script; return its reply and the run id of the server that gave it.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply. Whether the
                script ran is then unknown.
        """
        (reply,), run_id = self.calls([call])
        if isinstance(reply, ResponseError):
            raise ProjectionUnavailable(f"{call.script}: {reply}") from reply
        return reply, run_id

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        """Call several scripts in one round trip; an error reply stands in place of the result.

        Raises:
            ProjectionUnavailable: no server, or no reply in time.
        """
        with _Borrowed(self._pool) as connection:
            replies = _exchange(connection, [evalsha(call) for call in calls])
            for i, call in enumerate(calls):
                if isinstance(replies[i], NoScriptError):
                    (replies[i],) = _exchange(connection, [eval_body(call)])
            return replies, _run_id(connection)

    def command(self, *words: str | bytes | int) -> Any:
        """Send one command; see `commands`."""
        (reply,) = self.commands([words])
        return reply

    def commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """Send several commands in one round trip.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        if not commands:
            return []
        with _Borrowed(self._pool) as connection:
            replies = _exchange(connection, commands)
        for words, reply in zip(commands, replies, strict=True):
            if isinstance(reply, ResponseError):
                raise ProjectionUnavailable(f"{words[0]!r}: {reply}") from reply
        return replies

    def clock(self) -> tuple[int, str | None]:
        """The server's clock in microseconds since 1970, and its run id.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        with _Borrowed(self._pool) as connection:
            (reply,) = _exchange(connection, [("TIME",)])
            run_id = _run_id(connection)
        if isinstance(reply, ResponseError):
            raise ProjectionUnavailable(f"TIME: {reply}") from reply
        seconds, micros = reply
        return int(seconds) * 1_000_000 + int(micros), run_id

    def check_policy(self) -> None:
        """Refuse a server that may evict board keys; see `check_policy`."""
        check_policy(policy_in(self.command("INFO", "memory")))

    def close(self) -> None:
        """Close all connections."""
        self._pool.disconnect()


def _greet(connection: Any) -> None:
    connection.on_connect()
    connection.send_command("INFO", "server")
    try:
        connection.truerank_run_id = run_id_in(connection.read_response())
    except ResponseError:
        # Access rules may forbid INFO: then nothing is known of the server's clock.
        connection.truerank_run_id = None


def _run_id(connection: Any) -> str | None:
    run_id: str | None = connection.truerank_run_id
    return run_id


def _exchange(connection: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    connection.send_packed_command(connection.pack_commands(commands))
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(connection.read_response())
        except ResponseError as exc:
            replies.append(exc)
    return replies


class _Borrowed:
    """A pooled connection; thrown away unless its replies were all read."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        try:
            self._connection: Any = self._pool.get_connection()
        except (RedisError, OSError) as exc:
            raise ProjectionUnavailable(f"no connection to Redis: {exc}") from exc
        return self._connection

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if kind is not None:
            # A reply may still be on its way: the next borrower must not read it.
            self._connection.disconnect()
        self._pool.release(self._connection)
        if isinstance(exc, redis.ConnectionError | redis.TimeoutError | OSError):
            raise ProjectionUnavailable(f"Redis did not answer: {exc}") from exc
