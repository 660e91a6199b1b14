"""A worker that counts its statements, writers at full speed, and what that does to the outbox."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import psycopg

import truerank
from tests.projection.pipeline import Pipeline
from truerank import ScoreEvent
from truerank.outbox import ticks
from truerank.outbox.retention import Retention
from truerank.projection import worker
from truerank.projection.projector import Projector
from truerank.telemetry.meter import Meter

_MEMBERS = 500
_BATCH = 20
_PAUSE_S = 0.01
_SAMPLE_S = 0.05
_TURNS_S_MAX = 60.0


class CountingConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that counts its statements, but for one that the clock alone brings about."""

    statements = 0

    def execute(self, query: Any, *arguments: Any, **named: Any) -> Any:
        self.statements += "sweep_members" not in str(query)
        return super().execute(query, *arguments, **named)


@contextmanager
def counting(pipe: Pipeline) -> Iterator[tuple[CountingConnection, Projector]]:
    """A worker whose every step is a heartbeat, on a connection that counts."""
    assert pipe.settings.database_url is not None
    with CountingConnection.connect(pipe.settings.database_url, autocommit=True) as conn:
        pipe.free_leases()
        yield conn, Projector(conn, pipe.link(), pipe.settings)


@dataclass
class Measured:
    """What a run under load gave."""

    polls_s: list[float] = field(default_factory=list)
    statements: list[float] = field(default_factory=list)  # per step of the worker
    outbox_bytes: list[int] = field(default_factory=list)
    events: int = 0
    turns: int = 0

    def growth(self) -> float:
        """The median poll of the last quarter over that of the first."""
        quarter = max(1, len(self.polls_s) // 4)
        return median(self.polls_s[-quarter:]) / median(self.polls_s[:quarter])


def run(pipe: Pipeline, seconds: float, turns: int) -> Measured:
    """Write at full speed, beside a snapshot that is held all the while.

    Args:
        pipe: with a heartbeat and segments that are over in a moment.
        seconds: for how long at least.
        turns: of the ring that must have happened; waited for.
    """
    assert pipe.settings.database_url is not None
    measured = Measured()
    stop = threading.Event()
    failures: list[BaseException] = []
    with ExitStack() as stack:
        holder = stack.enter_context(psycopg.connect(pipe.settings.database_url))
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM truerank.standing")

        def guarded(work: Any) -> None:
            try:
                work()
            except BaseException as exc:  # noqa: BLE001 - told to the test
                failures.append(exc)
                stop.set()

        def write() -> None:
            number = count()
            name = threading.get_ident()
            assert pipe.settings.database_url is not None
            with psycopg.connect(pipe.settings.database_url, autocommit=True) as conn:
                while not stop.is_set():
                    first = next(number) * _BATCH
                    events = [
                        ScoreEvent(
                            event_id=f"{name}:{n}", member=f"m{n * 7919 % _MEMBERS}", value=n % 9
                        )
                        for n in range(first, first + _BATCH)
                    ]
                    truerank.submit_scores(conn, "b", events)
                    measured.events += _BATCH

        def project() -> None:
            with counting(pipe) as (conn, projector):
                while not stop.is_set():
                    before = conn.statements
                    projector.step()
                    measured.statements.append(conn.statements - before)
                    stop.wait(_PAUSE_S)

        threads = [
            threading.Thread(target=guarded, args=(work,))
            for work in (write, project, partial(keep, pipe, stop))
        ]
        for thread in threads:
            thread.start()
        try:
            watch(pipe, measured, stop, seconds, turns)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    if failures:
        raise failures[0]
    return measured


def keep(pipe: Pipeline, stop: threading.Event) -> None:
    """Turn the ring, as a worker's chore does."""
    retention = Retention(pipe.settings)
    assert pipe.settings.database_url is not None
    with worker.connect(pipe.settings.database_url) as conn:
        while not stop.wait(_PAUSE_S):
            retention.keep(conn, Meter())


def watch(
    pipe: Pipeline, measured: Measured, stop: threading.Event, seconds: float, turns: int
) -> None:
    """Poll as a worker does, and look at the size of the outbox."""
    assert pipe.settings.database_url is not None
    end = time.monotonic() + seconds
    deadline = end + _TURNS_S_MAX
    with worker.connect(pipe.settings.database_url) as conn:
        segment, since = None, None
        while not stop.wait(_SAMPLE_S):
            if time.monotonic() > end and (measured.turns >= turns or time.monotonic() > deadline):
                return
            ((until,),) = conn.execute("SELECT pg_current_snapshot()::text").fetchall()
            if since is not None:
                began = time.monotonic()
                ticks.read_batch(
                    conn, since=since, until=until, groups=[0], ticks=[], rows_max=20_000
                )
                measured.polls_s.append(time.monotonic() - began)
            since = until
            ((now, size),) = conn.execute(
                """SELECT r.segment, (SELECT sum(pg_total_relation_size(i.inhrelid))::bigint
                                      FROM pg_inherits AS i
                                      WHERE i.inhparent = 'truerank.outbox'::regclass)
                   FROM truerank.ring AS r"""
            ).fetchall()
            measured.outbox_bytes.append(size)
            measured.turns += segment is not None and now != segment
            segment = now
