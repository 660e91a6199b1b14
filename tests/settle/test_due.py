"""Boards that close their seasons by themselves, from when they were told to."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import truerank
from tests.settle.conftest import Connection, Months
from truerank import upkeep
from truerank.settings import Settings
from truerank.settle.close import close_due

BY: Any = Months.BY
DEADLINE_S = 30.0


def due(months: Months, limit: int = 100) -> list[str]:
    rows = months.conn.execute(
        "SELECT season FROM truerank.due_closes(%s::integer)", (limit,)
    ).fetchall()
    return [season for (season,) in rows]


def switch_on(months: Months, since: str, **rules: object) -> None:
    """Let the board close its seasons by itself, as if that had been said long ago."""
    months.rules(auto_close=True, **rules)
    months.conn.execute("UPDATE truerank.board SET auto_close_from = %s", (since,))


def days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def labels(first: datetime) -> list[str]:
    """The months from one to the last that is over."""
    now = datetime.now(UTC)
    count = (now.year - first.year) * 12 + now.month - first.month
    return [f"{first.year + (first.month - 1 + n) // 12}-{(first.month - 1 + n) % 12 + 1:02}"
            for n in range(count)]  # fmt: skip


def test_nothing_closes_by_itself_unless_the_board_says_so(months: Months) -> None:
    months.submit(("e1", "A", 5))

    assert due(months) == []
    assert months.tr.close_due(actor="test") == []


def test_seasons_that_ended_before_it_was_switched_on_are_left_to_people(months: Months) -> None:
    months.submit(("e1", "A", 5))

    months.rules(auto_close=True)

    assert due(months) == []
    assert [receipt.code for receipt in months.submit(("e2", "A", 5))] == [None]


def test_downtime_is_caught_up_the_oldest_first_and_empty_seasons_too(months: Months) -> None:
    switch_on(months, "2024-05-20")
    months.submit(("e1", "A", 5), month=7)
    expected = labels(datetime(2024, 5, 1, tzinfo=UTC))

    first = months.tr.close_due(actor="test", limit=3)
    rest = months.tr.close_due(actor="test")

    assert [each.season for each in first + rest] == expected
    assert due(months) == []
    assert {months.tr.season("b", label).state for label in expected} == {"final"}
    assert months.settled("2024-07") == [(1, "A", "5")]
    assert months.tr.season("b", "2024-04").state == "open"


def test_a_season_waits_for_its_grace(months: Months) -> None:
    last = labels(datetime(2024, 1, 1, tzinfo=UTC))[-1]
    switch_on(months, days_ago(400), late_grace="35 days")

    assert last not in due(months)
    months.rules(late_grace="0 s")
    assert last in due(months)


def test_a_board_is_looked_at_again_when_its_next_season_ends(months: Months) -> None:
    months.rules(auto_close=True)

    due(months)

    ((looked_at,),) = months.conn.execute("SELECT close_next_at FROM truerank.board").fetchall()
    season = months.tr.season("b", f"{datetime.now(UTC):%Y-%m}")
    assert looked_at == season.closes_at


@pytest.mark.parametrize("rule", ["season", "bounds", "grace"])
def test_what_changes_the_next_end_has_the_board_looked_at_again(months: Months, rule: str) -> None:
    now = datetime.now(UTC)
    if rule == "bounds":
        months.tr.create_season("b", "cup", now + timedelta(days=2), now + timedelta(days=3))
    months.rules(auto_close=True)
    due(months)

    if rule == "season":
        months.tr.create_season("b", "cup", now - timedelta(days=2), now + timedelta(seconds=30))
    elif rule == "bounds":
        months.tr.change_season("b", "cup", now + timedelta(days=1), now + timedelta(days=2), **BY)
    else:
        months.rules(late_grace="1 day")

    assert months.conn.execute("SELECT close_next_at FROM truerank.board").fetchall() == [(None,)]


def test_a_custom_season_closes_by_itself(months: Months) -> None:
    months.rules(auto_close=True)
    now = datetime.now(UTC)  # it ends after that was said
    months.tr.create_season("b", "cup", now - timedelta(days=1), now + timedelta(seconds=1))
    months.submit(("e1", "A", 5))

    deadline = time.monotonic() + DEADLINE_S
    while due(months) != ["cup"] and time.monotonic() < deadline:
        months.conn.execute("SELECT pg_sleep(0.1)")

    assert [each.season for each in months.tr.close_due(actor="test")] == ["cup"]


def test_a_custom_season_that_was_over_when_it_was_made_is_left_to_people(months: Months) -> None:
    switch_on(months, days_ago(0))
    months.conn.execute("UPDATE truerank.board SET auto_close_from = now() - interval '9 days'")
    now = datetime.now(UTC)
    months.tr.create_season("b", "cup", now - timedelta(days=8), now - timedelta(days=7))

    assert "cup" not in due(months)
    months.conn.execute("UPDATE truerank.ranking SET made_at = starts_at WHERE season = 'cup'")
    months.conn.execute("UPDATE truerank.board SET close_next_at = NULL")
    assert "cup" in due(months)


def test_a_season_opened_by_hand_is_closed_by_hand(months: Months) -> None:
    switch_on(months, days_ago(40), hold="1 day")
    first, *_ = [each.season for each in months.tr.close_due(actor="test")]
    assert months.tr.season("b", first).state == "sealed"

    months.tr.reopen_season("b", first, **BY)

    assert first not in due(months)
    assert [each.season for each in months.tr.close_due(actor="test")] == []
    months.close(first)
    assert months.tr.season("b", first).state == "sealed"


def test_a_sealed_season_is_settled_when_its_hold_is_over_whoever_sealed_it(
    months: Months, conn: Connection
) -> None:
    months.rules(hold="1 day")
    months.submit(("e1", "A", 5))
    months.close()
    assert due(months) == []

    conn.execute("UPDATE truerank.ranking SET hold_until = clock_timestamp()")
    months.tr.close_due(actor="test")

    assert months.settled() == [(1, "A", "5")]


def test_a_season_that_waits_holds_no_other_up(
    months: Months, connect: Callable[..., Connection]
) -> None:
    months.tr.create_board("c", seasons=["month"])
    switch_on(months, days_ago(40))
    months.tr.update_board("c", {"auto_close": True}, **BY)
    months.conn.execute("UPDATE truerank.board SET auto_close_from = %s", (days_ago(40),))
    writer = connect()

    with writer.transaction():
        truerank.submit_score(writer, "b", truerank.ScoreEvent(event_id="e", member="A", value=5))
        closes = months.tr.close_due(actor="test", timeout_s=0.2)

    waits = {each.board for each in closes if each.waits is not None}
    done = {each.board for each in closes if each.waits is None}
    assert (waits, done) == ({"b"}, {"c"})


def test_many_seasons_that_wait_stand_in_nobodys_way_and_are_closed_later(
    months: Months, connect: Callable[..., Connection], database_url: str, redis_url: str
) -> None:
    settings = Settings(database_url=database_url, redis_url=redis_url)
    switch_on(months, "2024-01-01")
    many = labels(datetime(2024, 1, 1, tzinfo=UTC))  # more than are tried at a time
    months.tr.create_board("c", seasons=["month"])
    months.tr.update_board("c", {"auto_close": True}, **BY)
    stop, writer = threading.Event(), connect()
    deadline = time.monotonic() + DEADLINE_S

    def states(board: str) -> set[str]:
        return {months.tr.season(board, label).state for label in many}

    with writer.transaction():
        truerank.submit_score(writer, "b", truerank.ScoreEvent(event_id="e", member="A", value=5))
        while states("b") != {"sealed"}:
            close_due(months.conn, settings, stop)
            assert time.monotonic() < deadline
        months.conn.execute("UPDATE truerank.close_attempt SET next_at = clock_timestamp()")
        months.conn.execute(
            "UPDATE truerank.board SET auto_close_from = '2024-01-01', close_next_at = NULL"
            " WHERE key = 'c'"
        )
        while states("c") != {"final"}:
            close_due(months.conn, settings, stop)
            assert time.monotonic() < deadline
        assert states("b") == {"sealed"}
    months.conn.execute("UPDATE truerank.close_attempt SET next_at = clock_timestamp()")
    while states("b") != {"final"}:
        close_due(months.conn, settings, stop)
        assert time.monotonic() < deadline

    assert months.conn.execute("SELECT FROM truerank.close_attempt").fetchall() == []


def test_a_worker_waits_for_no_writer_and_tries_again_later_each_time(
    months: Months, connect: Callable[..., Connection], database_url: str, redis_url: str
) -> None:
    settings = Settings(database_url=database_url, redis_url=redis_url)
    switch_on(months, days_ago(40))
    stop, writer, pauses = threading.Event(), connect(), []

    with writer.transaction():
        truerank.submit_score(writer, "b", truerank.ScoreEvent(event_id="e", member="A", value=5))
        for _ in range(6):
            pauses.append(close_due(months.conn, settings, stop))
            months.conn.execute("UPDATE truerank.close_attempt SET next_at = clock_timestamp()")
        months.conn.execute("UPDATE truerank.close_attempt SET next_at = 'infinity'")
        pauses.append(close_due(months.conn, settings, stop))

    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    tries = months.conn.execute("SELECT DISTINCT tries FROM truerank.close_attempt").fetchall()
    assert tries == [(6,)]
    assert due(months) != []  # whoever asks for it needn't wait


def test_boards_with_much_to_close_take_turns(months: Months, conn: Connection) -> None:
    for board in ("c", "d"):
        months.tr.create_board(board, seasons=["month"])
    for board in ("b", "c", "d"):
        months.tr.update_board(board, {"auto_close": True}, **BY)
    conn.execute("UPDATE truerank.board SET auto_close_from = '2024-01-01'")

    met = [conn.execute("SELECT board FROM truerank.due_closes(2)").fetchall() for _ in range(2)]

    assert {board for rows in met for (board,) in rows} == {"b", "c", "d"}


def test_a_season_whose_close_ends_its_worker_does_not_come_first_again(
    months: Months, conn: Connection
) -> None:
    months.tr.create_board("c", seasons=["month"])
    for board in ("b", "c"):
        months.tr.update_board(board, {"auto_close": True}, **BY)
    conn.execute("UPDATE truerank.board SET auto_close_from = %s", (days_ago(40),))
    first, *_ = conn.execute("SELECT board, season FROM truerank.due_closes(10)").fetchall()

    conn.execute("SELECT truerank.try_close(%s, %s)", first)  # and then it is killed

    patient = "SELECT board, season FROM truerank.due_closes(10, false)"
    assert first not in conn.execute(patient).fetchall()
    rows = conn.execute("SELECT board, season FROM truerank.due_closes(10)").fetchall()
    assert rows[-1] == first
    assert len(rows) > 1


def test_the_chores_of_a_worker_close_what_is_due(
    months: Months, database_url: str, redis_url: str
) -> None:
    months.submit(("e1", "A", 5))
    switch_on(months, "2024-06-20")
    stop = threading.Event()
    settings = msgspec.structs.replace(
        Settings(database_url=database_url, redis_url=redis_url), close_ms=50
    )
    thread = threading.Thread(target=upkeep.run, args=(settings, stop))

    thread.start()
    try:
        deadline = time.monotonic() + DEADLINE_S
        while due(months) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        stop.set()
        thread.join()

    assert due(months) == []
    assert months.settled() == [(1, "A", "5")]
    assert months.tr.settlements("b", "2024-06")[0].actor == "truerank"
