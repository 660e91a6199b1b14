"""Whoever writes while a season closes: all that was acknowledged is settled, and nothing else."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

import truerank
from truerank import ScoreEvent, Truerank
from truerank.crashpoints import VARIABLE
from truerank.errors import Contended, WritersUnderWay

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
CLOSES = 25
WRITERS = 6
DEADLINE_S = 60.0
LEVELS = [
    IsolationLevel.READ_COMMITTED,
    IsolationLevel.REPEATABLE_READ,
    IsolationLevel.SERIALIZABLE,
]
SEED = int(os.environ.get("TRUERANK_SEED", "1"))


def label(number: int) -> str:
    return f"{2000 + number // 12:04}-{number % 12 + 1:02}"


def instant(number: int) -> datetime:
    return datetime(2000 + number // 12, number % 12 + 1, 15, tzinfo=UTC)


class Writers:
    """Several at once write into one season after the other, each until it is refused there."""

    def __init__(self, connect: Connect, level: IsolationLevel) -> None:
        self._connect = connect
        self._level = level
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self.acknowledged: Counter[int] = Counter()  # value by season
        self.events: Counter[tuple[int, int]] = Counter()  # how many, by season and writer

    def write(self, writer: int) -> None:
        conn = self._connect()
        conn.isolation_level = self._level
        rng = random.Random(SEED * 100 + writer)
        for season in range(CLOSES):
            number = 0
            while self._submit(conn, rng, f"{season}-{writer}-{number}", season, writer):
                number += 1

    def _submit(
        self, conn: Connection, rng: random.Random, event_id: str, season: int, writer: int
    ) -> bool:
        value = rng.randrange(1, 1000)
        event = ScoreEvent(
            event_id=event_id,
            member=f"m{rng.randrange(20)}",
            value=value,
            occurred_at=instant(season) + timedelta(seconds=rng.randrange(1000)),
        )
        while not self._stop.is_set():
            try:
                with conn.transaction():
                    conn.execute("SELECT 1 FROM truerank.installation()")  # takes the snapshot
                    (receipt,) = truerank.submit_scores(conn, "b", [event])
                    if rng.random() < 0.2:
                        conn.execute("SELECT pg_sleep(%s)", (rng.uniform(0, 0.01),))
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                continue
            if receipt.code is not None:
                assert receipt.code in {"season_sealed", "season_final"}
                return False
            with self._changed:
                self.acknowledged[season] += value
                self.events[season, writer] += 1
                self._changed.notify_all()
            return True
        return False

    def stop(self) -> None:
        self._stop.set()

    def wait_for_all_in(self, season: int) -> None:
        with self._changed:
            assert self._changed.wait_for(
                lambda: all(self.events[season, writer] for writer in range(WRITERS)), DEADLINE_S
            )


@pytest.mark.parametrize("level", LEVELS)
def test_a_settlement_has_all_that_writers_were_told_and_nothing_else(
    tr: Truerank, connect: Connect, level: IsolationLevel
) -> None:
    tr.create_board("b", seasons=["month"])
    writers = Writers(connect, level)

    with ThreadPoolExecutor(WRITERS) as threads:
        writing = [threads.submit(writers.write, writer) for writer in range(WRITERS)]
        try:
            for season in range(CLOSES):
                writers.wait_for_all_in(season)
                closed = tr.close_season("b", label(season), actor="test", timeout_s=DEADLINE_S)
                assert closed.state == "final"
            for each in writing:
                each.result(DEADLINE_S)
        finally:
            writers.stop()

    settled = {s: int(tr.settlements("b", label(s))[0].total) for s in range(CLOSES)}
    assert settled == writers.acknowledged


@pytest.mark.parametrize("level", LEVELS)
def test_a_writer_whose_snapshot_is_older_than_the_seal_never_writes_into_the_season(
    tr: Truerank, connect: Connect, level: IsolationLevel
) -> None:
    tr.create_board("b", seasons=["month"])
    writer = connect()
    writer.isolation_level = level
    event = ScoreEvent(event_id="e", member="A", value=5, occurred_at=instant(0))

    with pytest.raises(psycopg.errors.SerializationFailure), writer.transaction():  # noqa: PT012
        writer.execute("SELECT 1 FROM truerank.event")  # takes the snapshot, without any row
        tr.close_season("b", label(0), actor="test")
        (receipt,) = truerank.submit_scores(writer, "b", [event])
        # At READ COMMITTED it is told, which is as good.
        assert receipt.code == "season_final"
        raise psycopg.errors.SerializationFailure

    assert tr.settlements("b", label(0))[0].population == 0
    assert tr.top("b", label(0), consistency="settled").total == 0


def test_a_stalled_writer_neither_holds_other_writers_up_nor_is_it_left_out(
    tr: Truerank, connect: Connect
) -> None:
    tr.create_board("b", seasons=["month"])
    stalled = connect(application_name="stalled")
    others = connect(options="-c lock_timeout=2s")
    told: list[Any] = []

    with stalled.transaction():
        truerank.submit_score(stalled, "b", ScoreEvent(
            event_id="e1", member="A", value=5, occurred_at=instant(0)))  # fmt: skip
        with pytest.raises(WritersUnderWay) as waiting:
            tr.close_season("b", label(0), actor="test", timeout_s=0.5, on_waiting=told.append)
        (late,) = truerank.submit_scores(others, "b", [ScoreEvent(
            event_id="e2", member="B", value=1, occurred_at=instant(0))])  # fmt: skip
        (other,) = truerank.submit_scores(others, "b", [ScoreEvent(
            event_id="e3", member="B", value=1, occurred_at=instant(1))])  # fmt: skip
        sealed = tr.season("b", label(0))
    final = tr.close_season("b", label(0), actor="test")

    pid = stalled.info.backend_pid
    assert "stalled" in waiting.value.message
    assert [(writer.pid, writer.name) for writer in told[0]] == [(pid, "stalled")]
    assert told[-1][0].age_ms >= told[0][0].age_ms
    assert (late.code, other.code) == ("season_sealed", None)
    assert (sealed.state, final.state) == ("sealed", "final")
    (settlement,) = tr.settlements("b", label(0))
    assert (settlement.population, settlement.total) == (1, "5")


def test_writers_never_queue_while_a_season_waits_to_be_settled(
    tr: Truerank, connect: Connect
) -> None:
    tr.create_board("b", seasons=["month"])
    stalled, writer = connect(), connect(options="-c lock_timeout=2s")
    waiting, ended = threading.Event(), threading.Event()

    def close() -> None:
        try:
            tr.close_season(
                "b", label(0), actor="test", timeout_s=DEADLINE_S,
                on_waiting=lambda _writers: waiting.set(),
            )  # fmt: skip
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as threads:
        with stalled.transaction():
            truerank.submit_score(stalled, "b", ScoreEvent(
                event_id="e", member="A", value=5, occurred_at=instant(0)))  # fmt: skip
            closing = threads.submit(close)
            assert waiting.wait(DEADLINE_S)
            # A lock timeout would raise: the barrier tries, again and again, and lets go.
            for n in range(200):
                truerank.submit_score(writer, "b", ScoreEvent(
                    event_id=f"n{n}", member="B", value=1, occurred_at=instant(1)))  # fmt: skip
            assert not ended.is_set()
        closing.result(DEADLINE_S)

    assert tr.season("b", label(0)).state == "final"


def test_many_closers_at_once_make_one_settlement(
    tr: Truerank, database_url: str, redis_url: str
) -> None:
    tr.create_board("b", seasons=["month"])
    tr.submit_scores("b", [
        ScoreEvent(event_id=f"e{n}", member=f"m{n}", value=n, occurred_at=instant(0))
        for n in range(50)
    ])  # fmt: skip
    start = threading.Barrier(5)

    def close(number: int) -> str:
        with truerank.connect(database_url, redis_url) as client:
            start.wait(DEADLINE_S)
            return client.close_season("b", label(0), actor=f"closer {number}").state

    with ThreadPoolExecutor(5) as threads:
        states = list(threads.map(close, range(5)))
    again = tr.close_season("b", label(0), actor="next week")

    assert states == ["final"] * 5
    assert again.revision == 1
    assert len(tr.settlements("b", label(0))) == 1


CLOSER = """
import sys, truerank
with truerank.connect(sys.argv[1], sys.argv[2]) as client:
    client.close_season("b", sys.argv[3], actor="doomed")
"""


@pytest.mark.parametrize("point", ["season_sealed", "barrier_passed", "season_settled"])
def test_a_closer_killed_anywhere_leaves_the_rest_to_the_next(
    tr: Truerank, database_url: str, redis_url: str, point: str
) -> None:
    tr.create_board("b", seasons=["month"])
    tr.submit_score("b", event_id="e", member="A", value=5, occurred_at=instant(0))

    killed = subprocess.run(
        [sys.executable, "-c", CLOSER, database_url, redis_url, label(0)],
        env={**os.environ, VARIABLE: point},
        check=False,
    )
    state = tr.season("b", label(0)).state
    (late,) = tr.submit_scores("b", [ScoreEvent(
        event_id="late", member="A", value=1, occurred_at=instant(0))])  # fmt: skip
    closed = tr.close_season("b", label(0), actor="next")

    assert killed.returncode == -signal.SIGKILL
    assert state == ("final" if point == "season_settled" else "sealed")
    assert late.code == f"season_{state}"
    assert (closed.state, closed.revision) == ("final", 1)
    (settlement,) = tr.settlements("b", label(0))
    assert (settlement.population, settlement.total) == (1, "5")
    assert settlement.actor == ("doomed" if point == "season_settled" else "next")


def test_a_settlement_waits_for_whoever_corrects_an_event_of_the_season(
    tr: Truerank, connect: Connect, conn: Connection
) -> None:
    tr.create_board("b", seasons=["month"])
    conn.execute("SELECT truerank.update_board('b', '{\"hold\": \"1 day\"}', 'a', 'r')")
    for event_id in ("e1", "e2"):
        tr.submit_score("b", event_id=event_id, member="A", value=5, occurred_at=instant(0))
    assert tr.close_season("b", label(0), actor="test").state == "sealed"
    corrector = connect()

    with corrector.transaction():
        (receipt, *_) = corrector.execute(
            "SELECT outcome FROM truerank.correct_events("
            "'b', '{e1}', NULL, NULL, NULL, 'a', 'r', '{final}')"
        ).fetchall()
        with pytest.raises(Contended):
            tr.close_season("b", label(0), actor="test", reason="now", now=True, timeout_s=0.3)
    closed = tr.close_season("b", label(0), actor="test", reason="now", now=True)

    assert receipt == ("applied",)
    assert closed.state == "final"
    assert tr.settlements("b", label(0))[0].total == "5"


def test_a_deletion_and_a_settlement_come_one_after_the_other(
    tr: Truerank, connect: Connect
) -> None:
    tr.create_board("b", seasons=["month"])
    for member in "AB":
        tr.submit_score("b", event_id=member, member=member, value=5, occurred_at=instant(0))
    tr.close_season("b", label(0), actor="test")
    season = tr.season("b", label(0))
    settler, deleter = connect(), connect()
    ended = threading.Event()

    def delete() -> None:
        deleter.execute("SELECT * FROM truerank.set_member_state('A', 'delete', 'a', 'r')")
        ended.set()

    with ThreadPoolExecutor(1) as threads:
        with settler.transaction():
            settler.execute(
                "SELECT FROM truerank.ranking WHERE id = %s FOR NO KEY UPDATE", (season.ranking,)
            )
            deleting = threads.submit(delete)
            deadline = time.monotonic() + DEADLINE_S
            while not connect_waits(settler, deleter) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not ended.is_set()
        deleting.result(DEADLINE_S)

    (row,) = settler.execute(
        "SELECT s.digest = d.digest, d.complete FROM truerank.settlement AS s,"
        " truerank.settlement_digest_from_events(s.ranking, s.revision) AS d"
    ).fetchall()
    assert row == (True, True)


def connect_waits(watcher: Connection, waiter: Connection) -> bool:
    row = watcher.execute(
        "SELECT cardinality(pg_blocking_pids(%s)) > 0", (waiter.info.backend_pid,)
    ).fetchone()
    return bool(row and row[0])
