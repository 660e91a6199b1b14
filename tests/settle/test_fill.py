"""Seasons of another period on a board that has a past: computed from it, while scores arrive."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
import pytest

import truerank
from tests.settle.conftest import Connection, Months
from truerank import upkeep
from truerank.crashpoints import VARIABLE
from truerank.errors import InvalidInput, SeasonUnknown
from truerank.settings import Settings

BY: Any = Months.BY
Connect = Callable[..., Connection]
DEADLINE_S = 30.0
# Standings of one board, but for versions; of every ranking but those named by another period.
STANDINGS = """
    SELECT r.season, s.member, s.score, s.sort_key
    FROM truerank.board AS b
    JOIN truerank.standing AS s ON s.ranking >> 36 = b.id
    CROSS JOIN LATERAL truerank.season_of_ranking(b, s.ranking) AS x (ranking, period, season, a, z)
    CROSS JOIN LATERAL (SELECT x.season) AS r
    WHERE b.key = %s ORDER BY 1, 2"""
# In what standings differ from their events.
DIFFERENCES = """
    SELECT s.ranking, s.member FROM truerank.board AS b
    JOIN truerank.standing AS s ON s.ranking >> 36 = b.id
    CROSS JOIN LATERAL truerank.season_of_ranking(b, s.ranking) AS r
    LEFT JOIN LATERAL truerank.fold_events(
        b, s.ranking, truerank.names_of(s.member), r.starts_at, r.ends_at) AS f ON true
    WHERE f.sort_key IS DISTINCT FROM s.sort_key OR s.version = 0"""


def fill(tr: truerank.Truerank, **how: int) -> int:
    slices = 0
    while not tr.fill_seasons("b", **how).done:
        slices += 1
    return slices


def event(event_id: str, member: str, value: int, day: int) -> truerank.ScoreEvent:
    at = datetime(2024, 6, 1, tzinfo=UTC) + timedelta(days=day)
    return truerank.ScoreEvent(event_id=event_id, member=member, value=value, occurred_at=at)


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_added_seasons_are_those_that_the_board_would_have_had(
    tr: truerank.Truerank, conn: Connection, operator: str
) -> None:
    events = [event(f"e{n}", f"m{n % 11:02}", n * 13 % 7, n * 5 % 90) for n in range(120)]
    tr.create_board("b", operator=operator, seasons=["month"])
    tr.create_board("c", operator=operator, seasons=["month", "all", "week"])
    for board in "bc":
        tr.submit_scores(board, events)
        tr.void_events(board, ["e3", "e44"], **BY)
        tr.amend_event(board, "e5", 6, correction_id="c", **BY)
    tr.delete_member("m04", timeout_s=0.0, **BY)
    tr.merge_members("m05", "m06", timeout_s=0.0, **BY)

    added = [tr.add_seasons("b", period, **BY) for period in ("all", "week", "week")]
    slices = fill(tr, members_max=3)

    assert added == [True, True, False]
    assert slices >= 3
    wanted = [row[:3] for row in conn.execute(STANDINGS, ("c",))]
    assert [row[:3] for row in conn.execute(STANDINGS, ("b",))] == wanted
    assert conn.execute(DIFFERENCES).fetchall() == []
    page = [
        [(entry.rank, entry.member) for entry in tr.top(board, "2024-W24").entries]
        for board in "bc"
    ]
    assert page[0] == page[1] != []


def test_nobody_reads_added_seasons_before_all_are_there(months: Months) -> None:
    months.submit(("e1", "A", 5), ("e2", "B", 6))
    months.tr.add_seasons("b", "week", **BY)
    months.tr.fill_seasons("b", members_max=1)

    with pytest.raises(SeasonUnknown):
        months.tr.top("b", "2024-W24")
    assert {season.period for season in months.tr.seasons("b")} <= {"all", "month"}
    fill(months.tr)

    assert months.tr.top("b", "2024-W24").total == 2


def test_scores_that_arrive_meanwhile_count_once(months: Months, conn: Connection) -> None:
    months.submit(*((f"e{n}", f"m{n % 9}", n) for n in range(60)))
    months.tr.add_seasons("b", "week", **BY)
    months.tr.fill_seasons("b", members_max=4)

    # Of a member who is there already, and of one who isn't yet.
    (first,) = months.submit(("n1", "m0", 100))
    (second,) = months.submit(("n2", "m8", 100))
    months.tr.void_events("b", ["e8", "e0"], **BY)
    fill(months.tr)

    assert conn.execute(DIFFERENCES).fetchall() == []
    week = {s.season: s.score for s in second.standings}
    assert week["2024-W24"] == week["2024-06"]
    assert first.code is None


def test_totals_stay_within_their_range_while_seasons_are_computed(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["month"], total_min=0)
    tr.submit_scores("b", [event("e1", "A", 10, 2)])
    tr.add_seasons("b", "week", **BY)

    spent, too_much = tr.submit_scores("b", [event("e2", "A", -7, 3), event("e3", "A", -7, 3)])
    fill(tr)

    assert (spent.code, too_much.code) == (None, "total_out_of_range")
    assert conn.execute(DIFFERENCES).fetchall() == []


def test_a_writer_that_does_not_know_of_the_period_is_waited_for(
    months: Months, connect: Connect, conn: Connection
) -> None:
    writer = connect()

    with writer.transaction():
        truerank.submit_score(writer, "b", event("e1", "A", 5, 1))
        months.tr.add_seasons("b", "week", **BY)
        waits = months.tr.fill_seasons("b").waits
    fill(months.tr)

    assert waits
    assert months.tr.top("b", "2024-W22").total == 1
    assert conn.execute(DIFFERENCES).fetchall() == []


def test_a_snapshot_older_than_the_new_period_fails(months: Months, connect: Connect) -> None:
    writer = connect()
    writer.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    with pytest.raises(psycopg.errors.SerializationFailure), writer.transaction():  # noqa: PT012
        writer.execute("SELECT FROM truerank.event")
        months.tr.add_seasons("b", "week", **BY)
        truerank.submit_score(writer, "b", event("e1", "A", 5, 1))


@pytest.mark.parametrize("change", ["void", "delete"])
def test_a_slice_waits_for_whoever_changes_what_counts(
    months: Months, connect: Connect, conn: Connection, change: str
) -> None:
    months.submit(("e1", "A", 5), ("e2", "A", 6))
    months.tr.add_seasons("b", "week", **BY)
    months.tr.fill_seasons("b", members_max=1)
    conn.execute("UPDATE truerank.board SET filled_to = ''")
    conn.execute("DELETE FROM truerank.standing AS s WHERE s.ranking >> 32 & 15 = 3")
    other = connect()
    call = {
        "void": "SELECT FROM truerank.void_events('b', '{e2}', 'a', 'r')",
        "delete": "SELECT FROM truerank.set_member_state('A', 'delete', 'a', 'r')",
    }[change]

    with other.transaction():
        other.execute(call)
        waits = months.tr.fill_seasons("b").waits
    fill(months.tr)

    assert waits
    assert conn.execute(DIFFERENCES).fetchall() == []
    assert months.tr.top("b", "2024-W24").total == (0 if change == "delete" else 1)


def test_writers_and_slices_at_once_come_to_what_the_events_say(
    tr: truerank.Truerank, connect: Connect, conn: Connection
) -> None:
    tr.create_board("b", seasons=["month"])
    tr.submit_scores("b", [event(f"e{n}", f"m{n % 40:02}", n, n % 60) for n in range(400)])
    go_on = threading.Event()

    def write(writer: int) -> None:
        caller = connect()
        number = 0
        while not go_on.is_set():
            batch = [
                event(f"w{writer}-{number}-{n}", f"m{(number * 7 + n) % 40:02}", n, number % 60)
                for n in range(5)
            ]
            truerank.submit_scores(caller, "b", batch)
            number += 1

    with ThreadPoolExecutor(3) as threads:
        writing = [threads.submit(write, writer) for writer in range(3)]
        try:
            tr.add_seasons("b", "week", **BY)
            slices = fill(tr, members_max=2)
        finally:
            go_on.set()
        for each in writing:
            each.result(DEADLINE_S)

    assert slices >= 20
    assert conn.execute(DIFFERENCES).fetchall() == []
    totals = conn.execute(
        "SELECT s.ranking >> 32 & 15, sum(s.score) FROM truerank.standing AS s GROUP BY 1"
    ).fetchall()
    assert len({total for _, total in totals}) == 1


def test_a_board_whose_events_are_forgotten_gets_no_new_seasons(months: Months) -> None:
    months.conn.execute("UPDATE truerank.board SET history_from = '2024-01-01'")

    with pytest.raises(InvalidInput):
        months.tr.add_seasons("b", "week", **BY)
    with pytest.raises(InvalidInput):
        months.tr.add_seasons("b", "decade", **BY)


FILLER = """
import sys, truerank
with truerank.connect(sys.argv[1], sys.argv[2]) as client:
    while not client.fill_seasons("b", members_max=2).done:
        pass
"""


def test_one_that_is_killed_leaves_the_rest_to_the_chores_of_a_worker(
    months: Months, database_url: str, redis_url: str, conn: Connection
) -> None:
    months.submit(*((f"e{n}", f"m{n}", n) for n in range(20)))
    months.tr.add_seasons("b", "week", **BY)

    killed = subprocess.run(
        [sys.executable, "-c", FILLER, database_url, redis_url],
        env={**os.environ, VARIABLE: "fill_slice:3"},
        check=False,
    )
    stop = threading.Event()
    settings = Settings(database_url=database_url, redis_url=redis_url)
    settings = msgspec.structs.replace(settings, close_ms=50)
    thread = threading.Thread(target=upkeep.run, args=(settings, stop))
    thread.start()
    try:
        deadline = datetime.now(UTC) + timedelta(seconds=DEADLINE_S)
        while (
            datetime.now(UTC) < deadline
            and conn.execute("SELECT truerank.boards_to_fill()").fetchall()
        ):
            conn.execute("SELECT pg_sleep(0.05)")
    finally:
        stop.set()
        thread.join()

    assert killed.returncode == -signal.SIGKILL
    assert months.tr.top("b", "2024-W24").total == 20
    assert conn.execute(DIFFERENCES).fetchall() == []
