"""The same event id from several connections at once: never a second effect, never a lost one."""

import random
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import IsolationLevel

import truerank
from truerank import Outcome, ScoreEvent, Truerank

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
Begin = Callable[..., Future[Any]]
UntilBlocked = Callable[[Connection], None]

# UUIDs, because events are inserted in their order: a schedule can hold a batch at the first.
FIRST, SECOND = str(UUID(int=1)), str(UUID(int=2))


def five(event_id: str = "e1", member: str = "A") -> ScoreEvent:
    return ScoreEvent(event_id=event_id, member=member, value=5)


@pytest.fixture
def board(tr: Truerank) -> str:
    tr.create_board("b", seasons=("all",))
    return "b"


def score(conn: Connection, member: str = "A") -> int | None:
    row = conn.execute("SELECT score FROM truerank.standing WHERE member = %s", (member,))
    found = row.fetchone()
    return found[0] if found else None


def test_a_duplicate_waits_for_the_first_and_answers_with_its_token(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    first, second = connect(), connect()

    with first.transaction():
        applied = truerank.submit_score(first, board, five())
        waiting = begin(truerank.submit_score, second, board, five())
        until_blocked(second)
    duplicate = waiting.result()

    assert applied.outcome is Outcome.APPLIED
    assert duplicate.outcome is Outcome.DUPLICATE
    assert (duplicate.token, duplicate.standings) == (applied.token, applied.standings)
    assert score(first) == 5


# IDP-3
def test_the_second_applies_where_the_first_rolls_back(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    first, second = connect(), connect()

    with first.transaction(force_rollback=True):
        truerank.submit_score(first, board, five())
        waiting = begin(truerank.submit_score, second, board, five())
        until_blocked(second)
    receipt = waiting.result()

    assert receipt.outcome is Outcome.APPLIED
    assert score(second) == 5


# IDP-3
def test_the_second_applies_where_the_connection_of_the_first_is_killed(
    connect: Connect, conn: Connection, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    first, second = connect(autocommit=False), connect()
    truerank.submit_score(first, board, five())
    ((first_pid,),) = first.execute("SELECT pg_backend_pid()").fetchall()
    waiting = begin(truerank.submit_score, second, board, five())
    until_blocked(second)

    conn.execute("SELECT pg_terminate_backend(%s)", (first_pid,))

    assert waiting.result().outcome is Outcome.APPLIED
    assert score(conn) == 5


def test_a_concurrent_event_of_the_same_id_and_other_content_is_a_conflict(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    first, second = connect(), connect()
    other = ScoreEvent(event_id="e1", member="A", value=6)

    with first.transaction():
        truerank.submit_score(first, board, five())
        waiting = begin(truerank.submit_scores, second, board, [other])
        until_blocked(second)
    (receipt,) = waiting.result()

    assert receipt.outcome is Outcome.CONFLICT
    assert score(first) == 5


@pytest.mark.parametrize("same", [True, False])
def test_a_winner_that_drew_its_position_later_is_found_all_the_same(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked, *, same: bool
) -> None:
    holder, slow, winner = connect(), connect(), connect()

    with holder.transaction(force_rollback=True):
        truerank.submit_score(holder, board, five(FIRST, "other"))
        # Its positions are drawn already; it waits for the first id, then comes to the second.
        waiting = begin(truerank.submit_scores, slow, board, [five(FIRST, "other"), five(SECOND)])
        until_blocked(slow)
        value = 5 if same else 6
        won = truerank.submit_score(
            winner, board, ScoreEvent(event_id=SECOND, member="A", value=value)
        )
    first, second = waiting.result()

    assert first.outcome is Outcome.APPLIED
    assert second.outcome is (Outcome.DUPLICATE if same else Outcome.CONFLICT)
    assert second.token == (won.token if same else None)
    assert score(winner) == value


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_above_read_committed_a_concurrent_duplicate_fails_and_the_retry_is_one(
    connect: Connect,
    board: str,
    begin: Begin,
    until_blocked: UntilBlocked,
    level: IsolationLevel,
) -> None:
    first, second = connect(), connect()
    second.isolation_level = level

    def submit() -> truerank.Receipt:
        with second.transaction():
            return truerank.submit_score(second, board, five())

    with first.transaction():
        truerank.submit_score(first, board, five())
        waiting = begin(submit)
        until_blocked(second)
    with pytest.raises(psycopg.errors.SerializationFailure):
        waiting.result()
    retried = submit()

    assert retried.outcome is Outcome.DUPLICATE
    assert score(first) == 5


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_above_read_committed_a_snapshot_older_than_the_first_write_is_no_second_effect(
    connect: Connect, board: str, level: IsolationLevel
) -> None:
    first, second = connect(), connect()
    second.isolation_level = level

    with second.transaction(force_rollback=True):
        second.execute("SELECT 1 FROM truerank.event")  # takes the snapshot
        truerank.submit_score(first, board, five())
        with pytest.raises(psycopg.errors.SerializationFailure):
            truerank.submit_score(second, board, five())

    assert score(first) == 5


def test_another_event_of_the_same_member_waits_and_adds_up(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    first, second = connect(), connect()

    with first.transaction():
        truerank.submit_score(first, board, five("e1"))
        waiting = begin(truerank.submit_score, second, board, five("e2"))
        until_blocked(second)
    receipt = waiting.result()

    assert [standing.score for standing in receipt.standings] == ["10"]
    assert score(first) == 10


OPERATORS = ["sum", "best", "latest"]
MEMBERS = [f"m{i}" for i in range(10)]


def totals(conn: Connection, board: str) -> dict[str, int]:
    """Member to score in the season `all`."""
    rows = conn.execute(
        "SELECT s.member, s.score FROM truerank.standing AS s"
        " JOIN truerank.board AS b ON b.id = s.ranking >> 36"
        " WHERE b.key = %s AND s.ranking >> 32 & 15 = 1",
        (board,),
    )
    return dict(rows.fetchall())


# W6: ids repeat inside a batch, between batches and between writers, in opposite orders.
@pytest.mark.parametrize("operator", OPERATORS)
def test_eight_writers_of_the_same_events_never_deadlock_and_each_event_counts_once(
    tr: Truerank, connect: Connect, begin: Begin, operator: str
) -> None:
    tr.create_board("many", seasons=("all", "day"), operator=operator)

    def event(number: int) -> ScoreEvent:
        return ScoreEvent(event_id=f"e{number}", member=MEMBERS[number % 10], value=number)

    def write(writer: int) -> list[Outcome]:
        conn = connect()
        outcomes = []
        for batch in range(12):
            numbers = [*range(batch * 20, batch * 20 + 50), batch * 20 + 7]
            events = [event(n) for n in (numbers if writer % 2 else reversed(numbers))]
            outcomes += [r.outcome for r in truerank.submit_scores(conn, "many", events)]
        return outcomes

    writing = [begin(write, writer) for writer in range(8)]
    outcomes = [outcome for future in writing for outcome in future.result()]
    total = 11 * 20 + 50

    assert outcomes.count(Outcome.APPLIED) == total
    assert outcomes.count(Outcome.DUPLICATE) == len(outcomes) - total
    found = totals(connect(), "many")
    if operator == "sum":
        assert found == {m: sum(range(i, total, 10)) for i, m in enumerate(MEMBERS)}
    elif operator == "best":
        assert found == {m: total - 10 + i for i, m in enumerate(MEMBERS)}
    else:
        assert set(found) == set(MEMBERS)


# W6: only the standings are in each other's way.
@pytest.mark.parametrize("operator", OPERATORS)
def test_eight_writers_of_the_same_members_never_deadlock_and_every_total_is_exact(
    tr: Truerank, connect: Connect, begin: Begin, operator: str
) -> None:
    tr.create_board("many", seasons=("all", "week"), operator=operator)
    members = [f"m{i}" for i in range(100)]

    def write(writer: int) -> None:
        conn = connect()
        for batch in range(6):
            chosen = random.Random(writer * 100 + batch).sample(members, 80)
            truerank.submit_scores(
                conn,
                "many",
                [
                    ScoreEvent(event_id=f"{writer}-{batch}-{member}", member=member, value=1)
                    for member in chosen
                ],
            )

    for writing in [begin(write, writer) for writer in range(8)]:
        writing.result()

    found = totals(connect(), "many")
    assert sum(found.values()) == (8 * 6 * 80 if operator == "sum" else len(members))
