"""A season takes events until it is sealed, in every isolation level."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

import truerank
from truerank import ScoreEvent, Truerank
from truerank.errors import EventRefused

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
JUNE, JULY = datetime(2024, 6, 15, tzinfo=UTC), datetime(2024, 7, 15, tzinfo=UTC)


def event(event_id: str, at: datetime) -> ScoreEvent:
    return ScoreEvent(event_id=event_id, member="A", value=5, occurred_at=at)


@pytest.fixture
def board(tr: Truerank, conn: Connection) -> str:
    """A board whose June has its row, as the worker makes them."""
    tr.create_board("b", seasons=("all", "month"))
    june = tr.season("b", "2024-06")
    conn.execute("SELECT truerank.note_rankings(ARRAY[%s::bigint])", (june.ranking,))
    return "b"


def set_state(conn: Connection, state: str, label: str = "2024-06") -> None:
    if state == "sealed":
        seal = "SELECT outcome FROM truerank.seal_season('b', %s, true, 'test', 'over')"
        assert conn.execute(seal, (label,)).fetchone() == ("sealed",)
        return
    changed = conn.execute(
        "UPDATE truerank.ranking SET state = %s WHERE season = %s", (state, label)
    )
    assert changed.rowcount == 1


def scores(conn: Connection) -> list[int]:
    rows = conn.execute("SELECT score FROM truerank.standing ORDER BY ranking").fetchall()
    return [score for (score,) in rows]


@pytest.mark.parametrize("state", ["sealed", "final"])
def test_an_event_of_a_closed_season_is_refused_for_all_its_seasons(
    conn: Connection, board: str, state: str
) -> None:
    set_state(conn, state)

    receipts = truerank.submit_scores(conn, board, [event("e1", JUNE), event("e2", JULY)])

    assert [receipt.code for receipt in receipts] == [f"season_{state}", None]
    assert [standing.season for standing in receipts[1].standings] == ["all", "2024-07"]
    assert scores(conn) == [5, 5]
    assert conn.execute("SELECT event_text FROM truerank.event").fetchall() == [("e2",)]


def test_an_id_refused_by_a_closed_season_is_free_when_it_is_open_again(
    conn: Connection, board: str
) -> None:
    set_state(conn, "sealed")
    with pytest.raises(EventRefused) as caught:
        truerank.submit_score(conn, board, event("e1", JUNE))
    set_state(conn, "open")

    receipt = truerank.submit_score(conn, board, event("e1", JUNE))

    assert caught.value.reason == "season_sealed"
    assert [standing.score for standing in receipt.standings] == ["5", "5"]


def test_a_duplicate_of_a_closed_season_is_a_duplicate(conn: Connection, board: str) -> None:
    truerank.submit_score(conn, board, event("e1", JUNE))
    set_state(conn, "sealed")

    receipts = truerank.submit_scores(conn, board, [event("e1", JUNE), event("e1", JULY)])

    assert [r.code or r.outcome.value for r in receipts] == ["duplicate", "conflict"]


def test_a_closed_all_time_season_closes_the_board(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("all", "month"))
    ranking = tr.season("b", "all").ranking
    conn.execute("SELECT truerank.note_rankings(ARRAY[%s::bigint])", (ranking,))
    set_state(conn, "final", "all")

    (receipt,) = truerank.submit_scores(conn, "b", [event("e1", JUNE)])

    assert receipt.code == "season_final"
    assert scores(conn) == []


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_a_snapshot_older_than_the_seal_fails_and_its_retry_is_refused(
    connect: Connect, conn: Connection, board: str, level: IsolationLevel
) -> None:
    caller = connect()
    caller.isolation_level = level

    with caller.transaction(force_rollback=True):
        caller.execute("SELECT 1 FROM truerank.event")  # takes the snapshot
        set_state(conn, "sealed")
        with pytest.raises(psycopg.errors.SerializationFailure):
            truerank.submit_score(caller, board, event("e1", JUNE))
    with caller.transaction():
        (retried,) = truerank.submit_scores(caller, board, [event("e1", JUNE)])

    assert retried.code == "season_sealed"
    assert scores(conn) == []


def test_a_snapshot_older_than_the_seal_does_not_matter_at_read_committed(
    connect: Connect, conn: Connection, board: str
) -> None:
    caller = connect()

    with caller.transaction():
        caller.execute("SELECT 1 FROM truerank.event")
        set_state(conn, "sealed")
        (receipt,) = truerank.submit_scores(caller, board, [event("e1", JUNE)])

    assert receipt.code == "season_sealed"


@pytest.mark.parametrize(
    "level",
    [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE],
)
def test_a_closer_that_gets_the_boards_lock_sees_every_write_that_was_under_way(
    connect: Connect, conn: Connection, board: str, level: IsolationLevel
) -> None:
    writer = connect()
    writer.isolation_level = level
    ask = (
        "SELECT pg_try_advisory_lock(truerank.lock_class(), id & 255), pg_advisory_unlock_all()"
        " FROM truerank.board"
    )

    with writer.transaction():
        truerank.submit_score(writer, board, event("e1", JUNE))
        during = conn.execute(ask).fetchone()
    after = conn.execute(ask).fetchone()

    assert during is not None
    assert after is not None
    assert (during[0], after[0]) == (False, True)


def test_writers_of_a_board_do_not_wait_for_each_other_when_a_season_is_new(
    connect: Connect, board: str
) -> None:
    first, second = connect(), connect(options="-c lock_timeout=1s")

    with first.transaction():
        truerank.submit_score(first, board, event("e1", JULY))
        receipt = truerank.submit_score(
            second, board, ScoreEvent(event_id="e2", member="B", value=1, occurred_at=JULY)
        )

    assert [standing.score for standing in receipt.standings] == ["1", "1"]
