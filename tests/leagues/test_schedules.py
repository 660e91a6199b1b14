"""Members are divided while others write, at every isolation level, by any number of workers."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

import truerank
from tests.leagues.conftest import Leagues
from truerank import ScoreEvent

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
LEVELS = [
    IsolationLevel.READ_COMMITTED,
    IsolationLevel.REPEATABLE_READ,
    IsolationLevel.SERIALIZABLE,
]
START = datetime(2024, 5, 3, tzinfo=UTC)
DEADLINE_S = 60.0


def event(event_id: str, member: str, value: int, second: int = 0) -> ScoreEvent:
    return ScoreEvent(
        event_id=event_id,
        member=member,
        value=value,
        occurred_at=START + timedelta(seconds=second),
    )


@pytest.mark.parametrize("level", LEVELS)
def test_no_change_is_lost_to_a_cohort_while_its_members_are_divided(
    leagues: Leagues, connect: Connect, level: IsolationLevel
) -> None:
    def write(writer: int) -> None:
        rng = random.Random(writer)
        conn = connect()
        conn.isolation_level = level
        own: list[str] = []
        for n in range(40):
            batch = [
                event(f"{writer}-{n}-{i}", f"m{rng.randrange(60):02}", rng.randrange(9), n)
                for i in range(4)
            ]
            while True:
                try:
                    with conn.transaction():
                        receipts = truerank.submit_scores(conn, "b", batch)
                    break
                except psycopg.errors.SerializationFailure:
                    continue  # and never a deadlock
            assert {receipt.code for receipt in receipts} == {None}
            own += [each.event_id for each in batch]
            if rng.random() < 0.3:
                void = own.pop(rng.randrange(len(own)))
                leagues.tr.void_events("b", [void], **Leagues.BY)

    def divide(_: int) -> None:
        while not done.is_set():
            leagues.tr.divide_members(rng.randrange(1, 9))

    rng = random.Random(7)
    done = threading.Event()
    leagues.set(size=7)
    with ThreadPoolExecutor(5) as threads:
        dividing = [threads.submit(divide, n) for n in range(2)]
        try:
            for each in [threads.submit(write, n) for n in range(3)]:
                each.result(DEADLINE_S)
        finally:
            done.set()
        for each in dividing:
            each.result(DEADLINE_S)
    leagues.divide()

    assert leagues.mirrored() > 50
    assert leagues.differences() == []
    sizes = [c.members for c in leagues.tr.cohorts("b", "2024-05")]
    assert all(size == 7 for size in sizes[:-1])
    assert 0 < sizes[-1] <= 7


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_snapshot_from_before_a_member_was_divided_never_misses_the_cohort(
    leagues: Leagues, connect: Connect, level: IsolationLevel
) -> None:
    leagues.set(size=3)
    leagues.submit(("A", 5), ("B", 9))
    writer = connect()
    writer.isolation_level = level

    with pytest.raises(psycopg.errors.SerializationFailure), writer.transaction():  # noqa: PT012
        writer.execute("SELECT 1 FROM truerank.event")  # takes the snapshot
        leagues.divide()
        truerank.submit_scores(writer, "b", [event("x", "A", 1)])
    with pytest.raises(psycopg.errors.SerializationFailure), writer.transaction():  # noqa: PT012
        writer.execute("SELECT 1 FROM truerank.event")
        leagues.submit(("C", 1))
        leagues.divide()
        leagues.tr.void_events("b", ["e3"], **Leagues.BY)  # C has no standing any more
        truerank.submit_scores(writer, "b", [event("x", "C", 1)])

    truerank.submit_scores(writer, "b", [event("x", "C", 1)])
    assert leagues.mirrored() == 3


@pytest.mark.parametrize("level", LEVELS)
def test_a_writer_that_began_before_a_league_was_set_is_waited_for(
    leagues: Leagues, connect: Connect, level: IsolationLevel
) -> None:
    writer = connect()
    writer.isolation_level = level
    with writer.transaction():
        if level is IsolationLevel.READ_COMMITTED:
            truerank.submit_scores(writer, "b", [event("x", "A", 1)])
            leagues.set(size=3)
            leagues.divide()
            assert not leagues.tr.leagues("b")[0].scanned
        else:
            # It holds the board's row: the league is set afterwards.
            truerank.submit_scores(writer, "b", [event("x", "A", 1)])
            with pytest.raises(truerank.errors.Contended):
                leagues.set(size=3)
    leagues.set(size=3)
    leagues.submit(("B", 1))
    leagues.divide()

    assert leagues.mirrored() == 2
    assert leagues.cohorts() == {1: ["A", "B"]}


def test_whose_standing_is_being_changed_is_passed_over_and_nobody_waits(
    leagues: Leagues, connect: Connect
) -> None:
    leagues.set(size=3)
    leagues.divide()  # there is nobody yet
    leagues.submit(("A", 5), ("B", 9))
    writer = connect()
    with writer.transaction():
        truerank.submit_scores(writer, "b", [event("x", "A", 1)])
        leagues.tr.divide_members(1)  # also where it holds as many as are looked at at once
        assert leagues.cohorts() == {1: ["B"]}
    leagues.divide()

    assert leagues.cohorts() == {1: ["B", "A"]}
    assert leagues.mirrored() == 2


def test_a_divider_that_is_killed_leaves_nothing_half_done(
    leagues: Leagues, connect: Connect
) -> None:
    leagues.set(size=2)
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    divider = connect(autocommit=False)
    divider.execute("SELECT truerank.divide_leagues(10)")  # the league is scanned
    divider.commit()
    divider.execute("SELECT truerank.divide_leagues(2)")

    assert leagues.tr.divide_members() == 0  # one at a time
    leagues.conn.execute(  # and wait until it is gone, with its locks
        "SELECT pg_terminate_backend(%s, 20000)", (divider.info.backend_pid,)
    )
    leagues.divide()

    assert leagues.cohorts() == {1: ["B", "A"], 2: ["C"]}
    assert leagues.differences() == []
