"""Writers beside each other on PostgreSQL alone: eight connections, and no worker."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import psycopg

import truerank
from benchmarks.load import Events, Load, Pace, Submitted, member_id
from benchmarks.processes import Pipe, Task, ready, started
from benchmarks.threads import AwaitBegin, run_together
from truerank.embedded import Engines
from truerank.gatherer import Gatherer
from truerank.model import Outcome, ScoreEvent
from truerank.settings import Settings, load

ROUNDS = 3
CONNECTIONS = 8
CLIENT_PROCESSES = 2

_PREPARED_PER_CALL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a benchmark of writers is."""

    members: int
    seconds: float  # per round

    @classmethod
    def of(cls, *, short: bool) -> "Size":
        """The size for the command line."""
        return cls(members=10_000, seconds=2.0) if short else cls(members=100_000, seconds=10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Where a connection submits, how many events a call, and how many events."""

    database_url: str
    board: str
    events_per_call: int  # 1: by `submit_score`
    events_max: int | None  # None: until the time of the load is over


class Side:
    """One way to write: a board of its own on the given engines, and processes that submit.

    Args:
        engines: where.
        name: of the side, and of its board.
        members: who all get a standing before anything is measured, and are submitted for.
        seasons: of the board.
        events_per_call: 1: by `submit_score`, each in a transaction of its own.
        events_max: then a connection submits no more; None: the time alone decides.
        in_flight: instead of eight connections, one process that gathers single events of so
            many callers into few transactions.
    """

    def __init__(
        self,
        engines: Engines,
        name: str,
        *,
        members: int,
        seasons: Sequence[str] = ("all",),
        events_per_call: int = 1,
        events_max: int | None = None,
        in_flight: int | None = None,
    ) -> None:
        self.name = name
        self._settings = load(database_url=engines.database_url, redis_url=engines.redis_url)
        self._database_url = engines.database_url
        self._members = members
        self._seasons = seasons
        self._events_per_call = events_per_call
        self._events_max = events_max
        self._in_flight = in_flight
        self._events = self._total = 0

    def prepare(self) -> None:
        """Make the board, and a standing for every member, on one event each."""
        events = Events(f"prepare {self.name}", self._members)
        with truerank.Truerank(self._settings) as client:
            client.create_board(self.name, seasons=list(self._seasons))
            for i in range(0, self._members, _PREPARED_PER_CALL):
                numbers = range(i, min(i + _PREPARED_PER_CALL, self._members))
                client.submit_scores(
                    self.name,
                    [
                        ScoreEvent(event_id=event_id, member=member_id(n), value=1)
                        for event_id, n in zip(events.event_ids(len(numbers)), numbers, strict=True)
                    ],
                )
        self._events = self._total = self._members

    def rate(self, seconds: float, seed: str) -> float:
        """Submit for so long; events per second, from the first call until the last answer.

        PostgreSQL writes a checkpoint before, so that no side pays for pages of the other.
        """
        load = Load(members=self._members, seconds=seconds, seed=seed)
        with ExitStack() as stack:
            clients = [stack.enter_context(started(task)) for task in self._clients(load)]
            with psycopg.connect(self._database_url, autocommit=True) as conn:
                conn.execute("CHECKPOINT")
            for client in clients:
                client.begin()
            submitted: list[Submitted] = [client.result() for client in clients]
        events = sum(part.events for part in submitted)
        self._events += events
        self._total += sum(part.total for part in submitted)
        began = min(part.began for part in submitted)
        return events / (max(part.ended for part in submitted) - began)

    def verify(self) -> None:
        """Fail unless PostgreSQL holds every event, and every season their sum."""
        with psycopg.connect(self._database_url) as conn:
            ((events, total),) = conn.execute(
                "SELECT (SELECT count(*) FROM truerank.event AS e WHERE e.board_id = b.id),"
                " (SELECT sum(s.score) FROM truerank.standing AS s"
                "  WHERE s.ranking BETWEEN b.id::bigint << 36 AND (b.id + 1::bigint << 36) - 1)"
                " FROM truerank.board AS b WHERE b.key = %s",
                (self.name,),
            ).fetchall()
        assert events == self._events, f"{self.name}: events were lost or made"
        assert total == self._total * len(self._seasons), f"{self.name}: points were lost or made"

    def _clients(self, load: Load) -> list[Task]:
        if self._in_flight is not None:
            return [Task(gather, (self._settings, self.name, self._in_flight, load))]
        calls = Calls(
            database_url=self._database_url,
            board=self.name,
            events_per_call=self._events_per_call,
            events_max=self._events_max,
        )
        return [Task(submit, (calls, load, process)) for process in range(CLIENT_PROCESSES)]


def measure(
    sides: Sequence[Side], seconds: float, progress: Callable[[str], None]
) -> Mapping[str, Sequence[float]]:
    """Events per second of each side by name, in turns; then each is verified.

    In a round all sides are given the same events.
    """
    for side in sides:
        progress(f"standings: {side.name}")
        side.prepare()
    rates: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(ROUNDS):
        for side in sides:
            progress(f"round {number + 1} of {ROUNDS}: {side.name}")
            rates[side.name].append(side.rate(seconds, str(number)))
    for side in sides:
        side.verify()
    return rates


def submit(pipe: Pipe, calls: Calls, load: Load, process: int) -> None:
    """A client process: calls one after the other on each of its connections."""
    run_together(
        pipe,
        [
            partial(_submit, calls, load, f"{process}/{thread}")
            for thread in range(CONNECTIONS // CLIENT_PROCESSES)
        ],
    )


def _submit(calls: Calls, load: Load, place: str, await_begin: AwaitBegin) -> Submitted:
    events = Events(f"{load.seed}/{place}", load.members)
    count = total = 0
    with psycopg.connect(calls.database_url, autocommit=True, prepare_threshold=0) as conn:
        await_begin()
        pace = Pace(load.seconds, None)
        while (calls.events_max is None or count < calls.events_max) and pace.goes_on():
            call = _drawn(events, calls.events_per_call)
            if calls.events_per_call == 1:
                truerank.submit_score(conn, calls.board, call[0])
            else:
                receipts = truerank.submit_scores(conn, calls.board, call)
                assert all(receipt.outcome is Outcome.APPLIED for receipt in receipts)
            count += len(call)
            total += sum(int(event.value) for event in call)
    return Submitted(began=pace.began, ended=time.monotonic(), events=count, total=total)


def gather(pipe: Pipe, settings: Settings, board: str, in_flight: int, load: Load) -> None:
    """A client process: many callers in one event loop, each waiting for its answer."""
    asyncio.run(_gather(pipe, settings, board, in_flight, load))


async def _gather(pipe: Pipe, settings: Settings, board: str, in_flight: int, load: Load) -> None:
    events = Events(load.seed, load.members)
    count = total = 0

    async def call_until_over() -> None:
        nonlocal count, total
        while pace.goes_on():
            (event,) = _drawn(events, 1)
            await gatherer.submit_score(board, event)
            count += 1
            total += int(event.value)

    async with Gatherer(settings) as gatherer:
        ready(pipe)
        pace = Pace(load.seconds, None)
        await asyncio.gather(*(call_until_over() for _ in range(in_flight)))
        ended = time.monotonic()
    pipe.send(Submitted(began=pace.began, ended=ended, events=count, total=total))


def _drawn(events: Events, count: int) -> list[ScoreEvent]:
    return [
        ScoreEvent(event_id=event_id, member=member, value=value)
        for event_id, member, value in events.draw(count)
    ]
