"""What one event costs, as counts that do not depend on the machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import truerank
from truerank import ScoreEvent, Truerank

Connection = psycopg.Connection[Any]
EVENTS_N = 1000
# Event, standing, its version, outbox row and their index entries come to about 700 bytes.
WAL_BYTES_MAX = 1500


COUNTS = """
    SELECT regexp_replace(relname, '_[0-3]$', ''),
           ARRAY[sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del)]
    FROM pg_stat_xact_user_tables WHERE schemaname = 'truerank' GROUP BY 1"""


def batch(number: int) -> list[ScoreEvent]:
    return [
        ScoreEvent(event_id=f"{number}-{n}", member=f"member-{n}", value=1) for n in range(EVENTS_N)
    ]


@contextmanager
def written(conn: Connection) -> Iterator[dict[str, tuple[int, int, int]]]:
    """Rows inserted, updated and deleted by table, known after the block, a transaction."""
    counted: dict[str, tuple[int, int, int]] = {}
    with conn.transaction():
        before = dict(conn.execute(COUNTS).fetchall())
        yield counted
        for name, after in conn.execute(COUNTS).fetchall():
            ins, upd, gone = (b - a for a, b in zip(before[name], after, strict=True))
            if ins or upd or gone:
                counted[name] = (int(ins), int(upd), int(gone))


def wal_bytes(conn: Connection) -> int:
    row = conn.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture
def board(tr: Truerank) -> str:
    tr.create_board("b", seasons=("all",))
    return "b"


def test_an_event_of_a_new_member_writes_one_row_per_table(conn: Connection, board: str) -> None:
    with written(conn) as rows:
        truerank.submit_scores(conn, board, batch(1))

    assert rows == {
        "event": (EVENTS_N, 0, 0),
        "standing": (EVENTS_N, EVENTS_N, 0),  # the update draws the version
        "population_change": (1, 0, 0),
        "outbox": (EVENTS_N, 0, 0),
    }


def test_an_event_of_a_known_member_updates_its_standing_once(conn: Connection, board: str) -> None:
    truerank.submit_scores(conn, board, batch(1))

    with written(conn) as rows:
        truerank.submit_scores(conn, board, batch(2))

    assert rows == {
        "event": (EVENTS_N, 0, 0),
        "standing": (0, EVENTS_N, 0),
        "outbox": (EVENTS_N, 0, 0),
    }


def test_events_of_one_member_in_a_batch_change_its_standing_once(
    conn: Connection, board: str
) -> None:
    events = [ScoreEvent(event_id=f"e{n}", member="A", value=1) for n in range(EVENTS_N)]

    with written(conn) as rows:
        truerank.submit_scores(conn, board, events)

    assert rows["outbox"] == (1, 0, 0)


def test_a_batch_of_duplicates_writes_nothing(conn: Connection, board: str) -> None:
    truerank.submit_scores(conn, board, batch(1))

    with written(conn) as rows:
        truerank.submit_scores(conn, board, batch(1))

    assert rows == {}


def test_the_log_holds_less_than_1500_bytes_an_event(conn: Connection, board: str) -> None:
    truerank.submit_scores(conn, board, batch(1))
    conn.execute("CHECKPOINT")
    truerank.submit_scores(conn, board, batch(2))  # full pages after the checkpoint
    before = wal_bytes(conn)

    truerank.submit_scores(conn, board, batch(3))

    assert (wal_bytes(conn) - before) / EVENTS_N < WAL_BYTES_MAX


def test_the_outbox_never_has_a_dead_row(conn: Connection, board: str) -> None:
    for number in range(3):
        truerank.submit_scores(conn, board, batch(number))
    truerank.submit_scores(conn, board, batch(0))
    conn.execute("SELECT pg_stat_force_next_flush()")

    row = conn.execute(
        "SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del), sum(n_dead_tup)"
        " FROM pg_stat_user_tables WHERE schemaname = 'truerank' AND relname ~ '^outbox'"
    ).fetchone()

    assert row == (3 * EVENTS_N, 0, 0, 0)


def test_nothing_in_the_schema_notifies_or_fires_for_each_row(conn: Connection) -> None:
    functions = conn.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'truerank'::regnamespace"
        r" AND prosrc ~* '\mnotify\M|pg_notify'"
    ).fetchall()
    triggers = conn.execute(
        "SELECT t.tgname, t.tgtype & 1 <> 0 FROM pg_trigger AS t"
        " JOIN pg_class AS c ON c.oid = t.tgrelid"
        " WHERE c.relnamespace = 'truerank'::regnamespace AND NOT t.tgisinternal ORDER BY 1"
    ).fetchall()

    assert functions == []
    # Once a statement, they count by how many it changed a population.
    assert triggers == [
        ("standing_added", False),
        ("standing_removed", False),
        ("standing_truncated", False),
    ]


def test_a_write_notifies_nobody(connect: Callable[..., Connection], board: str) -> None:
    writer, listener = connect(), connect()
    usage = "SELECT pg_notification_queue_usage()"
    listener.execute("LISTEN truerank")

    with listener.transaction():  # a listener in a transaction keeps the queue from being emptied
        listener.execute("SELECT 1")
        for event in batch(1)[:400]:
            truerank.submit_score(writer, board, event)
        after_writes = writer.execute(usage).fetchone()
        for _ in range(400):  # as many would be seen
            writer.execute("NOTIFY truerank")
        after_notifications = writer.execute(usage).fetchone()

    assert after_writes == (0.0,)
    assert after_notifications is not None
    assert after_notifications[0] > 0
