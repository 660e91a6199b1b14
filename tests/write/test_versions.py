"""Versions rise with each change of a standing, in the order in which the changes took effect."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

import truerank
from truerank import Receipt, ScoreEvent, Truerank

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
Begin = Callable[..., Future[Any]]
UntilBlocked = Callable[[Connection], None]


@pytest.fixture
def board(tr: Truerank) -> str:
    tr.create_board("b", seasons=("all",))
    return "b"


def submit(conn: Connection, board: str, event_id: str, value: int = 1) -> Receipt:
    return truerank.submit_score(
        conn, board, ScoreEvent(event_id=event_id, member="A", value=value)
    )


def version(receipt: Receipt) -> int:
    (standing,) = receipt.standings
    assert standing.version is not None
    return standing.version


def outbox(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.execute(
        "SELECT ranking, member, version, sort_key, xid::text FROM truerank.outbox ORDER BY version"
    ).fetchall()


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_versions_rise_with_every_change_and_no_outbox_row_shares_one(
    tr: Truerank, conn: Connection, operator: str
) -> None:
    tr.create_board("many", operator=operator, seasons=("all", "day"))
    seen: list[int] = []

    for batch in range(6):
        # New members, changed members, and members that come twice in one batch.
        events = [
            ScoreEvent(event_id=f"e{batch}-{n}", member=f"m{n % 5 + batch}", value=batch * 10 + n)
            for n in range(8)
        ]
        truerank.submit_scores(conn, "many", events)
        rows = [row[2] for row in outbox(conn)]
        assert min(rows[len(seen) :]) > max(seen, default=0)
        seen = rows

    assert len(set(seen)) == len(seen)
    newest = {(ranking, member): (v, key) for ranking, member, v, key, _ in outbox(conn)}
    standings = conn.execute("SELECT ranking, member, version, sort_key FROM truerank.standing")
    assert newest == {(ranking, member): (v, key) for ranking, member, v, key in standings}


def test_an_event_that_changes_nothing_draws_no_version_and_logs_nothing(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("records", operator="best", seasons=("all",))
    first = submit(conn, "records", "e1", 10)

    second = submit(conn, "records", "e2", 9)

    assert version(second) == version(first)
    assert len(outbox(conn)) == 1


# IDP-1
def test_a_duplicate_logs_nothing_and_leaves_the_version(conn: Connection, board: str) -> None:
    first = submit(conn, board, "e1")

    again = [submit(conn, board, "e1") for _ in range(2)]

    assert [(r.standings, r.token) for r in again] == [(first.standings, first.token)] * 2
    assert len(outbox(conn)) == 1


def test_an_update_that_waited_for_the_row_has_the_higher_version(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    first, second = connect(), connect()
    submit(first, board, "e0")

    with first.transaction():
        first.execute("SELECT FROM truerank.standing FOR UPDATE")
        waiting = begin(submit, second, board, "e2")
        until_blocked(second)
        earlier = submit(first, board, "e1")
    later = waiting.result()

    assert version(later) > version(earlier)
    assert later.standings[0].score == "3"


def test_an_insert_that_waited_for_another_has_the_higher_version(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    first, second = connect(), connect()

    with first.transaction():
        earlier = submit(first, board, "e1")
        waiting = begin(submit, second, board, "e2")
        until_blocked(second)
    later = waiting.result()

    assert version(later) > version(earlier)


def test_a_row_inserted_after_waiting_for_a_removal_has_the_higher_version(
    connect: Connect, board: str, begin: Begin, until_blocked: UntilBlocked
) -> None:
    remover, writer = connect(), connect()
    submit(remover, board, "e1")

    with remover.transaction():
        remover.execute("DELETE FROM truerank.standing")
        waiting = begin(submit, writer, board, "e2")
        until_blocked(writer)
        removal = remover.execute("SELECT nextval('truerank.version')").fetchone()
    inserted = waiting.result()

    assert removal is not None
    assert version(inserted) > removal[0]
    assert outbox(writer)[-1][2] == version(inserted)


@pytest.mark.parametrize("sequence", ["version", "position", "tick_id", "ranking_number"])
def test_sequences_whose_order_counts_are_not_cached_by_connections(
    conn: Connection, sequence: str
) -> None:
    row = conn.execute(
        "SELECT cache_size, increment_by, cycle FROM pg_sequences"
        " WHERE schemaname = 'truerank' AND sequencename = %s",
        (sequence,),
    ).fetchone()

    assert row == (1, 1, False)


def test_the_outbox_row_carries_the_transaction_of_its_event(conn: Connection, board: str) -> None:
    with conn.transaction():
        receipt = submit(conn, board, "e1")
        row = conn.execute("SELECT pg_current_xact_id()::text").fetchone()

    assert row is not None
    assert receipt.token is not None
    assert receipt.token.split(".")[0] == row[0]
    assert [logged[4] for logged in outbox(conn)] == [row[0]]
