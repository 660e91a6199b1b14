"""What a board may be, which commands it takes, and what it refuses whole."""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

import truerank
from truerank.errors import EventRefused, InvalidInput

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
BY: dict[str, Any] = {"actor": "ops", "reason": "a check"}
ZONE = "Europe/Berlin"


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_a_command_that_expects_another_operator_is_refused_and_its_id_is_free(
    tr: truerank.Truerank, conn: Connection, operator: str
) -> None:
    tr.create_board("b", operator=operator, seasons=["all"])
    others = {"sum", "best", "latest"} - {operator}
    event = truerank.ScoreEvent(event_id="e1", member="ann", value=5)

    for other in others:
        with pytest.raises(EventRefused) as caught:
            truerank.submit_score(conn, "b", event, expected_operator=other)
        assert (caught.value.reason, caught.value.field) == (
            "operator_mismatch", "expected_operator",
        )  # fmt: skip
    receipt = truerank.submit_score(conn, "b", event, expected_operator=operator)

    assert receipt.outcome is truerank.Outcome.APPLIED
    with pytest.raises(InvalidInput):
        truerank.submit_score(conn, "b", event, expected_operator="max")
    row = conn.execute(
        "SELECT outcome, code FROM truerank.submit_score"
        "('b', 'e2', 'ann', 1, p_expected_operator => 'max')"
    ).fetchone()
    assert row == ("refused", "operator_mismatch")


def test_a_call_of_more_than_100_000_events_is_refused_whole(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"])

    row = conn.execute(
        "SELECT count(*), min(outcome), min(code), max(code) FROM truerank.submit_scores('b',"
        " array_fill('e'::text, ARRAY[100001]), array_fill('A'::text, ARRAY[100001]),"
        " array_fill(1::numeric, ARRAY[100001]))"
    ).fetchone()

    assert row == (100_001, "refused", "batch_too_large", "batch_too_large")
    assert conn.execute("SELECT FROM truerank.event").rowcount == 0


@pytest.mark.parametrize(
    "ties",
    [
        "'{a,a}', '{t,t}', '{0,0}', '{9,9}'",
        "'{a,b}', '{t,t}', '{0,9}', '{9,0}'",
        "'{a,NULL}', '{t,t}', '{0,0}', '{9,9}'",
        "'{a,\"\"}', '{t,t}', '{0,0}', '{9,9}'",
        "'{a,b}', '{t,NULL}', '{0,0}', '{9,9}'",
        "'{a,b}', '{t,t}', '{0,NULL}', '{9,9}'",
        "'{a,b}', '{t,t}', '{0,0}', '{9,NULL}'",
    ],
)
def test_tie_breaks_that_make_no_sense_are_refused_in_sql(conn: Connection, ties: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute(f"SELECT truerank.create_board('b', 'sum', true, '{{all}}', 'UTC', 0, {ties})")

    assert conn.execute("SELECT FROM truerank.board").rowcount == 0


def test_of_two_boards_renamed_to_one_key_at_once_the_second_is_told_that_it_exists(
    tr: truerank.Truerank,
    connect: Connect,
    begin: Callable[..., Future[Any]],
    until_blocked: Callable[[Connection], None],
) -> None:
    for key in ("one", "two"):
        tr.create_board(key)
    first, second = connect(autocommit=False), connect()
    rename = "SELECT truerank.rename_board(%s, 'three', 'ops', 'a check')"
    first.execute(rename, ("one",))
    renamed = begin(second.execute, rename, ("two",))
    until_blocked(second)

    first.commit()

    assert renamed.result().fetchone() == ("board_exists",)
    assert [board.spec.key for board in tr.boards()] == ["three", "two"]


def test_deleted_boards_that_have_nothing_left_are_not_looked_at_again(
    tr: truerank.Truerank, conn: Connection
) -> None:
    for key in ("a", "b", "c"):
        tr.create_board(key, seasons=["all"])
        tr.submit_score(key, event_id="e1", member="ann", value=1)
        tr.delete_board(key, **BY)
    while tr.purge_boards(10):
        pass
    before = conn.execute("SELECT key, purged_at, xmin FROM truerank.board ORDER BY id").fetchall()
    tr.create_board("d", seasons=["all"])
    tr.submit_score("d", event_id="e1", member="ann", value=1)
    tr.delete_board("d", **BY)

    removed = [tr.purge_boards(10) for _ in range(3)]

    assert removed == [1, 1, 0]
    after = conn.execute("SELECT key, purged_at, xmin FROM truerank.board ORDER BY id").fetchall()
    assert all(purged_at for _, purged_at, _ in before)
    assert after[:3] == before


@pytest.mark.parametrize("events", [True, False])
def test_of_a_deleted_board_nothing_is_left_where_two_purge_it_at_once(
    tr: truerank.Truerank,
    conn: Connection,
    connect: Connect,
    begin: Callable[..., Future[Any]],
    *,
    events: bool,
) -> None:
    purge = "SELECT truerank.purge_boards(20)"
    tr.create_board("b", seasons=["all"])
    conn.execute(
        "SELECT count(*) FROM truerank.submit_scores('b', ARRAY(SELECT 'e' || g FROM g),"
        " ARRAY(SELECT 'm' || g FROM g), ARRAY(SELECT g.g FROM g))".replace(
            "FROM g", "FROM generate_series(1, 30) AS g"
        )
    )
    tr.delete_board("b", **BY)
    if events:
        assert [conn.execute(purge).fetchone() for _ in range(2)] == [(20,), (10,)]
    else:
        conn.execute("DELETE FROM truerank.event")  # as a retention leaves it
    first = connect(autocommit=False)
    assert first.execute(purge).fetchone() == (20,)

    # Done at once, or after the first one commits; either way the rest is somebody's to remove.
    second = begin(connect().execute, purge)
    with contextlib.suppress(TimeoutError):
        second.result(0.5)
    first.commit()
    second.result(30)
    while conn.execute(purge).fetchone() != (0,):
        pass

    left = conn.execute(
        "SELECT (SELECT count(*) FROM truerank.event), (SELECT count(*) FROM truerank.standing),"
        " purged_at IS NOT NULL FROM truerank.board"
    )
    assert left.fetchone() == (0, 0, True)


def test_a_day_in_a_rule_has_24_hours_in_the_zone_of_any_session(
    tr: truerank.Truerank, connect: Connect
) -> None:
    # A number of days back in which the zone's clocks were changed.
    now = datetime.now(ZoneInfo(ZONE))
    days = next(
        n for n in range(30, 330)
        if (now - timedelta(days=n)).utcoffset() != now.utcoffset()
        and (now - timedelta(days=n + 1)).utcoffset() != now.utcoffset()
    )  # fmt: skip
    tr.create_board("b", seasons=["all"])
    tr.update_board("b", {"retention": f"{days} days"}, **BY)
    age, step = timedelta(days=days), timedelta(minutes=30)

    codes = {}
    for zone in ("UTC", ZONE):
        conn = connect()
        conn.execute(f"SET timezone = '{zone}'")
        events = [
            truerank.ScoreEvent(
                event_id=f"{zone} {n}", member="A", value=1, occurred_at=datetime.now(UTC) - past
            )
            for n, past in enumerate([age - step, age + step])
        ]
        codes[zone] = [r.code for r in truerank.submit_scores(conn, "b", events)]

    assert codes == {zone: [None, "occurred_at_too_old"] for zone in codes}


def test_as_many_seasons_as_events_are_counted_each_in_its_own(
    tr: truerank.Truerank, conn: Connection
) -> None:
    days = 1500
    for operator in ("sum", "best", "latest"):
        tr.create_board(operator, operator=operator, seasons=["all", "day", "month"], zone=ZONE)
        first = datetime(2001, 1, 1, 12, tzinfo=UTC)
        events = [
            truerank.ScoreEvent(
                event_id=f"e{n}", member=f"m{n % 7}", value=n, occurred_at=first + timedelta(days=n)
            )
            for n in reversed(range(days))
        ]

        receipts = truerank.submit_scores(conn, operator, events)

        assert [[s.season for s in r.standings] for r in receipts] == [
            ["all", f"{event.occurred_at:%Y-%m-%d}", f"{event.occurred_at:%Y-%m}"]
            for event in events
        ]
        folded = conn.execute(
            "SELECT s.ranking >> 32 & 15, count(*), sum(s.score) FROM truerank.standing AS s"
            " JOIN truerank.board AS b ON b.id = s.ranking >> 36 WHERE b.key = %s"
            " GROUP BY 1 ORDER BY 1",
            (operator,),
        ).fetchall()
        whole = sum(range(days)) if operator == "sum" else sum(range(days - 7, days))
        assert folded[0][1:] == (7, whole)
        assert folded[1][1:] == (days, sum(range(days)))
