"""What a piece of logic wants done next, so that it is written once for sync and async.

Logic that reads or writes is a generator: it yields requests, receives their results, and returns
its answer. `truerank.client` runs it on blocking connections, `truerank.aio` on asyncio ones.
A failed request is raised at the `yield`, so logic handles errors in one place as well.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query:
    """One SQL statement in a transaction of its own; the result is all its rows."""

    sql: str
    params: Sequence[Any] = ()
    limit_s: float | None = None  # the client's patience; None: a little more than the server's
    snapshot: bool = False  # at REPEATABLE READ, and slow
    slow: bool = False  # the server, too, takes as long as `limit_s`
    yields: bool = False  # one of many that may take their time: leaves connections to others


class ScriptCall(msgspec.Struct, frozen=True):
    """One call of a Lua script by name; the result is `(reply, run_id of the server)`."""

    script: str
    keys: Sequence[str]
    args: Sequence[str | bytes | int]


@dataclass(frozen=True, slots=True)
class Get:
    """The value of one string key; the result is bytes or None."""

    key: str


@dataclass(frozen=True, slots=True)
class HashGet:
    """Fields of one hash; the result is a list of bytes or None."""

    key: str
    fields: Sequence[str]


@dataclass(frozen=True, slots=True)
class Commands:
    """Several commands in one round trip; the result is a list of their replies."""

    commands: Sequence[Sequence[str | bytes | int]]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds; the result is the monotonic time after it, in seconds."""

    seconds: float


Request = Query | ScriptCall | Get | HashGet | Commands | Pause
Steps = Generator[Request, Any, T]


def run_blocking(steps: Steps[T], do: Callable[[Request], Any]) -> T:
    """Run steps with a function that does each of their requests and returns its result."""
    try:
        request = next(steps)
        while True:
            try:
                result = do(request)
            except Exception as exc:  # noqa: BLE001 - whatever it is, the steps decide
                request = steps.throw(exc)
            else:
                request = steps.send(result)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


async def run_awaiting(steps: Steps[T], do: Callable[[Request], Awaitable[Any]]) -> T:
    """As `run_blocking`, for a function that is awaited; steps of who gives up end at once."""
    try:
        request = next(steps)
        while True:
            try:
                result = await do(request)
            except Exception as exc:  # noqa: BLE001 - whatever it is, the steps decide
                request = steps.throw(exc)
            else:
                request = steps.send(result)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    finally:
        steps.close()


def changed(steps: Steps[T], change: Callable[[Request], Request]) -> Steps[T]:
    """The same steps, whose requests pass through a function before they are made."""
    try:
        request = next(steps)
        while True:
            try:
                result = yield change(request)
            except Exception as exc:  # noqa: BLE001 - whatever it is, the steps decide
                request = steps.throw(exc)
            else:
                request = steps.send(result)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def hurried(steps: Steps[T], limit_s: float) -> Steps[T]:
    """The same steps, whose statements are waited for no longer than this."""
    return changed(steps, lambda r: replace(r, limit_s=limit_s) if isinstance(r, Query) else r)


def yielding(steps: Steps[T]) -> Steps[T]:
    """The same steps, whose statements leave connections to others."""
    return changed(steps, lambda r: replace(r, yields=True) if isinstance(r, Query) else r)
