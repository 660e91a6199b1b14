"""Truerank as the benchmarks run it: two clients with a connection each, and one worker."""

import threading
import time
from collections.abc import Sequence
from typing import Protocol

import psycopg
import redis

import truerank
from benchmarks.load import Events, Load, Pace, Submitted, member_id
from benchmarks.processes import Pipe, Task, started, stop_on_close
from truerank import upkeep
from truerank.embedded import Engines
from truerank.model import Outcome, ScoreEvent
from truerank.projection import worker
from truerank.projection.keys import GroupKeys
from truerank.settings import Settings, load
from truerank.telemetry.logs import configure_logging

BOARD = "bench"
EVENTS_PER_CALL = 1000

_VISIBLE_S_MAX = 120.0


class Pipeline(Protocol):
    """A way from a command to a rank, in the arrangement that all sides share."""

    name: str

    def prepare(self) -> None:
        """Make what it needs, and a standing for every member."""

    def worker(self) -> Task:
        """The one process that brings scores to Redis."""

    def clients(self, load: Load) -> list[Task]:
        """The two processes that submit."""

    def await_visible(self, submitted: Sequence[Submitted]) -> None:
        """Wait until Redis shows all that these clients submitted."""

    def verify(self) -> None:
        """Fail unless Redis shows what PostgreSQL holds, and that is what was submitted."""


class Truerank:
    """Truerank on the given engines; a `Pipeline`. The board's only season is `all`."""

    name = "truerank"

    def __init__(self, engines: Engines, members: int, board: str = BOARD) -> None:
        self._settings = load(database_url=engines.database_url, redis_url=engines.redis_url)
        self._database_url, self._redis_url = engines.database_url, engines.redis_url
        self._members = members
        self._board = board
        self._total = 0

    def prepare(self) -> None:
        """Make the board, and a standing for every member, on one event each."""
        events = Events(f"prepare {self._board}", self._members)
        with started(self.worker()), truerank.Truerank(self._settings) as client:
            client.create_board(self._board, seasons=["all"])
            token = None
            for i in range(0, self._members, EVENTS_PER_CALL):
                numbers = range(i, min(i + EVENTS_PER_CALL, self._members))
                receipts = client.submit_scores(
                    self._board,
                    [
                        ScoreEvent(event_id=event_id, member=member_id(n), value=1)
                        for event_id, n in zip(events.event_ids(len(numbers)), numbers, strict=True)
                    ],
                )
                token = receipts[-1].token
            assert token is not None, "new events have a token"
            client.wait_visible(token, [self._board], timeout_s=_VISIBLE_S_MAX)
        self._total = self._members

    def worker(self) -> Task:
        """The process that projects."""
        return Task(work, (self._settings,))

    def clients(self, load: Load) -> list[Task]:
        """The processes that submit, a thousand events a call."""
        return [
            Task(submit, (self._database_url, self._board, load, process / 2))
            for process in range(2)
        ]

    def await_visible(self, submitted: Sequence[Submitted], *, beside: int = 0) -> None:
        """Wait until the projection shows the last write of each client.

        Args:
            submitted: by the clients.
            beside: points that were submitted beside them.
        """
        self._total += sum(part.total for part in submitted) + beside
        with truerank.Truerank(self._settings) as client:
            for part in submitted:
                client.wait_visible(
                    truerank.Token(part.token), [self._board], timeout_s=_VISIBLE_S_MAX
                )

    def verify(self) -> None:
        """Fail unless the order in Valkey is the order in SQL, byte for byte."""
        with truerank.Truerank(self._settings) as client:
            board, season = client.board(self._board), client.season(self._board)
        keys = GroupKeys(self._settings.prefix, board.group)
        with redis.Redis.from_url(self._redis_url) as server:
            generation = keys.generation(server.get(keys.pointer).decode())
            shown = server.zrange(generation.places(season.ranking), 0, -1)
        with psycopg.connect(self._database_url) as conn:
            rows = conn.cursor(binary=True).execute(
                "SELECT sort_key || convert_to(member, 'UTF8'), score FROM truerank.standing"
                " WHERE ranking = %s ORDER BY sort_key, member",
                (season.ranking,),
            )
            stored = rows.fetchall()
        assert shown == [place for place, _ in stored], "the order in Valkey is not that of SQL"
        assert sum(score for _, score in stored) == self._total, "points were lost or made"


def submit(pipe: Pipe, database_url: str, board: str, load: Load, phase: float) -> None:
    """A client process: a thousand events a call, each call a transaction."""
    events = Events(f"{load.seed}/{phase}", load.members)
    count = total = 0
    token = None
    with psycopg.connect(database_url, autocommit=True) as conn:
        pipe.send(None)
        pipe.recv()
        pace = Pace(load.seconds, load.rate and load.rate / EVENTS_PER_CALL, phase)
        while pace.goes_on():
            call = [
                ScoreEvent(event_id=event_id, member=member, value=value)
                for event_id, member, value in events.draw(EVENTS_PER_CALL)
            ]
            receipts = truerank.submit_scores(conn, board, call)
            assert all(receipt.outcome is Outcome.APPLIED for receipt in receipts)
            count += len(call)
            total += sum(int(event.value) for event in call)
            token = receipts[-1].token
        ended = time.monotonic()
    pipe.send(Submitted(began=pace.began, ended=ended, events=count, total=total, token=str(token)))


def work(pipe: Pipe, settings: Settings) -> None:
    """The worker process: project until the parent closes the pipe."""
    configure_logging(level="warning")  # on standard error: results are on the other
    stop = stop_on_close(pipe)
    chores = threading.Thread(target=upkeep.run, args=(settings, stop))
    chores.start()
    worker.run(settings, stop, ready=lambda: pipe.send(None))
    chores.join()
