"""Group commit: requests that wait at the same moment for one board become one transaction.

Each request still gets its own answer, and none can lose or spoil another's: a batch that fails
is halved until the one that fails it stands alone, and a request whose client went away changes
nothing for the others. Who waits for a lock that somebody outside holds is moved to a lane of its
own, so that one idle transaction does not stop the rest of a board.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from truerank.command.submit import submit_parameters
from truerank.crashpoints import crashpoint
from truerank.ending import ended
from truerank.errors import Busy, Contended, InvalidInput
from truerank.model import Receipt, ScoreEvent

Submit = Callable[[str, Sequence[ScoreEvent], str | None, str | None], Awaitable[list[Receipt]]]

BATCH_EVENTS_MAX = 1000
_FLUSHERS_MAX = 2  # per lane: one batch commits while the next one is on its way
_APART_TRIES_MAX = 4
_APART_S = 5.0  # a member that was waited for stays in its own lane so long
_APART_MEMBERS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class _Key:
    """What one SQL call has in common, and the member whose lane it is, if any."""

    board: str
    expected_season: str | None
    expected_operator: str | None
    ties: int
    apart: str | None


@dataclass(eq=False, slots=True)
class _Request:
    events: Sequence[ScoreEvent]
    answer: asyncio.Future[list[Receipt]]


@dataclass(eq=False, slots=True)
class _Lane:
    key: _Key
    queue: deque[_Request] = field(default_factory=deque)
    events: int = 0
    flushers: int = 0


class Gather:
    """Gathers the submits of one process.

    Args:
        submit: applies events of one board in one transaction, and gives up soon where another
            transaction holds a lock.
        waiting_events_max: how many events may wait in one lane; more are refused.
        wait_s_max: how long a request waits for its answer.
    """

    def __init__(
        self, submit: Submit, *, waiting_events_max: int = 10_000, wait_s_max: float = 10.0
    ) -> None:
        self._submit = submit
        self._waiting_events_max = waiting_events_max
        self._wait_s_max = wait_s_max
        self._lanes: dict[_Key, _Lane] = {}
        self._apart_until: dict[tuple[str, str], float] = {}
        self._flushers: set[asyncio.Task[None]] = set()

    async def submit(
        self,
        board: str,
        events: Sequence[ScoreEvent],
        expected_season: str | None = None,
        expected_operator: str | None = None,
    ) -> list[Receipt]:
        """Apply events together with whoever else waits; outcomes are values, in order.

        Raises:
            InvalidInput: an event is malformed.
            Contended: somebody outside holds a lock on one of the members. Nothing was written.
            Busy: too much waits already, or no answer came in time: then it may still be
                applied. Sending it again is safe.
            DatabaseUnavailable: the database is away.
        """
        # Checked before it is gathered: what is malformed must not fail the others' batch.
        submit_parameters(board, events, expected_season, expected_operator=expected_operator)
        request = _Request(events, asyncio.get_running_loop().create_future())
        key = _Key(
            board,
            expected_season,
            expected_operator,
            len(events[0].ties),
            self._apart(board, events),
        )
        self._enqueue(key, request)
        try:
            async with asyncio.timeout(self._wait_s_max):
                return await request.answer
        except TimeoutError as exc:
            raise Busy(f"no answer within {self._wait_s_max:g} s; send it again") from exc

    async def close(self, *, timeout_s: float) -> None:
        """Let what is on its way end, for so long; what isn't then is refused."""
        if self._flushers:
            _, late = await asyncio.wait(self._flushers, timeout=timeout_s)
            await ended(*late)

    def _enqueue(self, key: _Key, request: _Request) -> None:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key)
        if lane.events + len(request.events) > self._waiting_events_max:
            raise Busy(f"{lane.events} events of board {key.board!r} wait already")
        lane.queue.append(request)
        lane.events += len(request.events)
        if lane.flushers < _FLUSHERS_MAX:
            lane.flushers += 1
            task = asyncio.create_task(self._flush(lane))
            self._flushers.add(task)
            task.add_done_callback(self._flushers.discard)

    async def _flush(self, lane: _Lane) -> None:
        try:
            while lane.queue:
                await self._send(lane.key, _next_batch(lane))
        finally:
            lane.flushers -= 1
            if not lane.flushers and self._lanes.get(lane.key) is lane:
                del self._lanes[lane.key]

    async def _send(self, key: _Key, batch: list[_Request]) -> None:
        batch = [request for request in batch if not request.answer.done()]
        if not batch:
            return
        events = [event for request in batch for event in request.events]
        try:
            crashpoint("before_flush")
            receipts = await self._tried(key, events)
            crashpoint("after_flush")
        except (Contended, InvalidInput) as exc:
            # In a member's own lane all wait for the same lock: halving would only add up waits.
            if len(batch) > 1 and (key.apart is None or isinstance(exc, InvalidInput)):
                half = len(batch) // 2
                await self._send(key, batch[:half])
                await self._send(key, batch[half:])
            elif isinstance(exc, Contended) and key.apart is None:
                self._set_apart(key, batch[0], exc)
            else:
                _fail(batch, exc)
        except Exception as exc:  # noqa: BLE001 - each waiting request raises it
            _fail(batch, exc)
        except asyncio.CancelledError:
            _fail(batch, Busy("the service is stopping; send it again"))
            raise
        else:
            at = 0
            for request in batch:
                if not request.answer.done():
                    request.answer.set_result(receipts[at : at + len(request.events)])
                at += len(request.events)

    async def _tried(self, key: _Key, events: Sequence[ScoreEvent]) -> list[Receipt]:
        tries_left = _APART_TRIES_MAX if key.apart is not None else 1
        while True:
            tries_left -= 1
            try:
                return await self._submit(
                    key.board, events, key.expected_season, key.expected_operator
                )
            except Contended:
                if not tries_left:
                    raise

    def _set_apart(self, key: _Key, request: _Request, exc: Contended) -> None:
        members = {event.member for event in request.events}
        if len(members) > 1:
            # Which of them is waited for isn't known; the caller comes back with all of them.
            _fail([request], exc)
            return
        (member,) = members
        now = time.monotonic()
        if len(self._apart_until) >= _APART_MEMBERS_MAX:
            self._apart_until.clear()
        self._apart_until[key.board, member] = now + _APART_S
        try:
            self._enqueue(replace(key, apart=member), request)
        except Busy as busy:
            _fail([request], busy)

    def _apart(self, board: str, events: Sequence[ScoreEvent]) -> str | None:
        if not self._apart_until:
            return None
        now = time.monotonic()
        for event in events:
            until = self._apart_until.get((board, event.member))
            if until is not None and until > now:
                return event.member
            if until is not None:
                del self._apart_until[board, event.member]
        return None


def _next_batch(lane: _Lane) -> list[_Request]:
    batch = [lane.queue.popleft()]
    size = len(batch[0].events)
    while lane.queue and size + len(lane.queue[0].events) <= BATCH_EVENTS_MAX:
        batch.append(lane.queue.popleft())
        size += len(batch[-1].events)
    lane.events -= size
    return batch


def _fail(batch: list[_Request], exc: Exception) -> None:
    for request in batch:
        if not request.answer.done():
            request.answer.set_exception(exc)
