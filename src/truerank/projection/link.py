"""Blocking connections to Valkey or Redis, each of which knows which server it reached.

Every call has a deadline. Nothing is repeated by the client: the scripts are made to be called
again, but who calls decides when.
"""

from collections.abc import Sequence
from typing import Any

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.retry import Retry

from truerank.errors import ProjectionUnavailable, ProjectionUnsafe
from truerank.projection.breaker import Breaker
from truerank.projection.pools import Crowded, Pool
from truerank.projection.scripts import reply_name, script
from truerank.steps import ScriptCall
from truerank.telemetry.meter import Meter

_TOGETHER_BYTES_MAX = 1 << 16


def connection_options(timeout_ms: int) -> dict[str, Any]:
    """Options for both kinds of pool: a deadline, no repeats, replies as bytes."""
    return {
        "socket_timeout": timeout_ms / 1000,
        "socket_connect_timeout": timeout_ms / 1000,
        "protocol": 2,
    }


def run_id_in(info: bytes) -> str | None:
    """The server's run id in the text of INFO: it changes with every restart."""
    return info_field(info, "run_id")


def policy_in(info: bytes) -> str | None:
    """The server's eviction policy in the text of INFO."""
    return info_field(info, "maxmemory_policy")


def info_field(info: bytes, name: str) -> str | None:
    """A field in the text of INFO; None where the server doesn't tell it."""
    start = f"{name}:".encode()
    for line in info.splitlines():
        if line.startswith(start):
            return line.removeprefix(start).decode()
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


def packed(commands: Sequence[Sequence[str | bytes | int]]) -> list[bytes]:
    """Commands as they are sent: together, or one by one where they are large.

    Each piece has the deadline for itself.
    """
    # Its stub says tuples of one; it takes any.
    pieces: list[bytes] = [hiredis.pack_command(tuple(words)) for words in commands]  # type: ignore[arg-type]
    small = len(pieces) > 1 and sum(map(len, pieces)) <= _TOGETHER_BYTES_MAX
    return [b"".join(pieces)] if small else pieces


def refusal(breaker: Breaker) -> ProjectionUnavailable:
    """The error of a call that isn't made, because those before it got no answer."""
    return ProjectionUnavailable(
        f"Redis left {breaker.failures} calls unanswered: asked again in {breaker.retry_s:.1f} s"
    )


def is_wrong_type(reply: object) -> bool:
    """Whether a reply is the error that a key of another type gives."""
    return isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE")


class Link:
    """A pool of blocking connections to one server.

    Args:
        url: of the server.
        timeout_ms: for a connection to become free, to be made, and for each reply.
        connections_max: at the same time.
        meter: told of every round trip.
        breaker: told of every call, and asked before it.
    """

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
        made: ConnectionPool = ConnectionPool.from_url(
            url,
            redis_connect_func=_greet,
            retry=Retry(NoBackoff(), 0),
            **connection_options(timeout_ms),
        )
        self._pool = Pool(
            made.make_connection, connections_max=connections_max, wait_s=timeout_ms / 1000
        )

    def call(self, call: ScriptCall) -> tuple[Any, str | None]:
        """Call one script; return its reply and the run id of the server that gave it.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply. Whether the
                script ran is then unknown.
        """
        with self.meter.timing(call.script), _Borrowed(self._pool, self.breaker) as connection:
            (reply,) = _exchange(connection, [evalsha(call)])
            reply = self._known(connection, call, reply)
            run_id = _run_id(connection)
        if isinstance(reply, ResponseError):
            raise ProjectionUnavailable(f"{call.script}: {reply}") from reply
        return reply, run_id

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        """Call several scripts in one round trip; an error reply stands in place of the result.

        Raises:
            ProjectionUnavailable: no server, or no reply in time.
        """
        if not calls:
            return [], None
        with self.meter.timing(calls[0].script), _Borrowed(self._pool, self.breaker) as connection:
            replies = _exchange(connection, [evalsha(call) for call in calls])
            replies = [
                self._known(connection, call, reply)
                for call, reply in zip(calls, replies, strict=True)
            ]
            return replies, _run_id(connection)

    def _known(self, connection: Any, call: ScriptCall, reply: Any) -> Any:
        """The reply; where the server doesn't know the script, the one to its body."""
        if isinstance(reply, NoScriptError):
            (reply,) = _exchange(connection, [eval_body(call)])
        self.meter.script_replied(call.script, reply_name(call.script, reply))
        return reply

    def command(self, *words: str | bytes | int) -> Any:
        """Send one command; see `commands`."""
        (reply,) = self.commands([words])
        return reply

    def commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """Send several commands in one round trip.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        replies = self.try_commands(commands)
        for words, reply in zip(commands, replies, strict=True):
            if isinstance(reply, ResponseError):
                raise ProjectionUnavailable(f"{words[0]!r}: {reply}") from reply
        return replies

    def try_commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """As `commands`, but an error reply stands in place of the result.

        Raises:
            ProjectionUnavailable: no server, or no reply in time.
        """
        if not commands:
            return []
        with (
            self.meter.timing(str(commands[0][0])),
            _Borrowed(self._pool, self.breaker) as connection,
        ):
            return _exchange(connection, commands)

    def clock(self) -> tuple[int, str | None]:
        """The server's clock in microseconds since 1970, and its run id.

        Raises:
            ProjectionUnavailable: no server, no reply in time, or an error as reply.
        """
        with self.meter.timing("TIME"), _Borrowed(self._pool, self.breaker) as connection:
            (reply,) = _exchange(connection, [("TIME",)])
            run_id = _run_id(connection)
        if isinstance(reply, ResponseError):
            raise ProjectionUnavailable(f"TIME: {reply}") from reply
        seconds, micros = reply
        return int(seconds) * 1_000_000 + int(micros), run_id

    def check_policy(self) -> None:
        """Refuse a server that may evict board keys; see `check_policy`."""
        (reply,) = self.try_commands([("INFO", "memory")])
        if not isinstance(reply, ResponseError):  # access rules may forbid to ask
            check_policy(policy_in(reply))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


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
    connection.send_packed_command(packed(commands))
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(connection.read_response())
        except ResponseError as exc:
            replies.append(exc)
    return replies


class _Borrowed:
    """A pooled connection; thrown away unless its replies were all read."""

    def __init__(self, pool: Pool, breaker: Breaker) -> None:
        self._pool = pool
        self._breaker = breaker

    def __enter__(self) -> Any:
        if not self._breaker.admit():
            raise refusal(self._breaker)
        try:
            self._connection: Any = self._pool.borrow()
        except (RedisError, OSError) as exc:
            if not isinstance(exc, Crowded):
                self._breaker.failed()
            raise ProjectionUnavailable(f"no connection to Redis: {exc}") from exc
        return self._connection

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if kind is not None:
            # A reply may still be on its way: the next borrower must not read it.
            self._connection.disconnect()
        self._pool.give_back(self._connection)
        if isinstance(exc, redis.ConnectionError | redis.TimeoutError | OSError):
            self._breaker.failed()
            raise ProjectionUnavailable(f"Redis did not answer: {exc}") from exc
        if kind is None:
            self._breaker.succeeded()
