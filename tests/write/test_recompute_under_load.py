"""W4: a recompute locks first and reads the events later, so it misses nothing."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import truerank
from truerank import ScoreEvent, Truerank

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
Begin = Callable[..., Future[Any]]
UntilBlocked = Callable[[Connection], None]
AT = datetime(2024, 6, 15, tzinfo=UTC)
VOID = "SELECT DISTINCT outcome FROM truerank.void_events('b', ARRAY['e1'], 'tester', 'test')"


def submit(conn: Connection, event_id: str, value: int, minutes: int = 0) -> truerank.Receipt:
    at = AT + timedelta(minutes=minutes)
    return truerank.submit_score(
        conn, "b", ScoreEvent(event_id=event_id, member="A", value=value, occurred_at=at)
    )


def scores(conn: Connection) -> list[tuple[int]]:
    return conn.execute("SELECT score FROM truerank.standing").fetchall()


def outcomes(conn: Connection, query: str) -> list[tuple[str]]:
    return conn.execute(query).fetchall()


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_a_void_that_waited_for_a_writer_counts_what_it_wrote(
    tr: Truerank,
    connect: Connect,
    begin: Begin,
    until_blocked: UntilBlocked,
    operator: str,
) -> None:
    tr.create_board("b", operator=operator, seasons=("all",))
    writer, corrector = connect(), connect()
    submit(writer, "e1", 5)

    with writer.transaction():
        submit(writer, "e2", 100, minutes=1)
        waiting = begin(outcomes, corrector, VOID)
        until_blocked(corrector)

    assert waiting.result() == [("applied",)]
    assert scores(writer) == [(100,)]


def test_a_writer_that_waited_for_a_void_begins_anew(
    tr: Truerank, connect: Connect, begin: Begin, until_blocked: UntilBlocked
) -> None:
    tr.create_board("b", seasons=("all",))
    writer, corrector = connect(), connect()
    submit(writer, "e1", 5)

    with corrector.transaction():
        corrector.execute(VOID)
        waiting = begin(submit, writer, "e2", 100)
        until_blocked(writer)
    receipt = waiting.result()

    assert scores(writer) == [(100,)]
    versions = writer.execute(
        "SELECT op::text, version FROM truerank.outbox ORDER BY version"
    ).fetchall()
    assert [op for op, _ in versions] == ["p", "d", "p"]
    assert receipt.standings[0].version == versions[-1][1]


def test_a_late_event_that_waited_for_a_newer_one_leaves_it_in_force(
    tr: Truerank, connect: Connect, begin: Begin, until_blocked: UntilBlocked
) -> None:
    tr.create_board("b", operator="latest", seasons=("all",))
    first, second = connect(), connect()
    submit(first, "e1", 1, minutes=10)

    with first.transaction():
        submit(first, "e3", 3, minutes=30)
        waiting = begin(submit, second, "e2", 2, minutes=20)
        until_blocked(second)
    receipt = waiting.result()

    assert [standing.score for standing in receipt.standings] == ["3"]
    assert scores(first) == [(3,)]
