"""Freezes beside writers, deletions and other freezes: which instant is shown, and who waits."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import psycopg
import pytest

from tests.members.conftest import Club
from tests.projection.pipeline import wait_until
from truerank import Truerank
from truerank.command import freezing
from truerank.errors import FreezePending
from truerank.model import Freeze, ScoreEvent

WHO: Any = {"actor": "op", "reason": "test"}
DELETE = "SELECT truerank.set_member_state(%s, 'delete', 'op', 'test')"
# A copy that has been made stands still while anybody holds this lock.
STAND_STILL = """
    CREATE FUNCTION public.stand_still() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        WHILE current_query() LIKE '%take_freeze%' AND EXISTS (
            SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
        LOOP
            PERFORM pg_sleep(0.005);
        END LOOP;
        RETURN NULL;
    END $$;
    CREATE TRIGGER stand_still AFTER INSERT ON truerank.standing
    FOR EACH STATEMENT EXECUTE FUNCTION public.stand_still()"""


def shown(club: Club) -> dict[str, str]:
    """What PostgreSQL shows the public."""
    return {entry.member: entry.score for entry in club.client.top("b", limit=1000).entries}


@contextmanager
def copying(club: Club, client: Truerank | None = None) -> Iterator["Future[Freeze]"]:
    """A freeze under way: all is copied, and in no hurry to commit until the block ends."""
    conn = club.pipeline.conn
    client = client or club.client
    conn.execute(STAND_STILL)
    holder = club.pipeline.connection()
    holder.execute("SELECT pg_advisory_xact_lock(4711)")
    with ThreadPoolExecutor(1) as pool:
        freeze = pool.submit(client.freeze_season, "b", **WHO)
        try:
            wait_until(
                lambda: (
                    conn.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        " AND query LIKE '%take_freeze%' AND wait_event = 'PgSleep'"
                    ).fetchone()
                    == (1,)
                ),
                "the copy to be made",
            )
            yield freeze
        finally:
            holder.rollback()


def test_what_committed_before_a_freeze_is_in_it_and_nothing_later(club: Club) -> None:
    """Many writers, some freezes: the one instant is after what was told, before what was sent."""
    # So large that some writers commit while it is copied.
    rest = [ScoreEvent(event_id=f"r{i}", member=f"r{i}", value=0) for i in range(2000)]
    club.client.submit_scores("b", rest)
    stop = threading.Event()
    told: list[tuple[datetime, datetime, str]] = []
    numbers = count()

    def write() -> None:
        with Truerank(club.pipeline.settings) as client:
            while not stop.is_set():
                member, sent = f"m{next(numbers)}", datetime.now(UTC)
                client.submit_score("b", event_id=member, member=member, value=1)
                told.append((sent, datetime.now(UTC), member))

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write) for _ in range(3)]
        frozen: list[tuple[datetime, set[str]]] = []
        try:
            for _ in range(6):
                freeze = club.client.freeze_season("b", **WHO)
                assert freeze.frozen_at is not None
                rows = club.pipeline.conn.execute(
                    "SELECT s.member FROM truerank.standing AS s JOIN truerank.freeze AS f"
                    " ON s.ranking = truerank.frozen_id(f.board_id, f.id)"
                    " WHERE f.revealed_at IS NULL"
                ).fetchall()
                frozen.append((freeze.frozen_at, {member for (member,) in rows}))
                club.client.reveal_season("b", **WHO)
        finally:
            stop.set()
        for writer in writers:
            writer.result()

    for at, members in frozen:
        assert {member for _, answered, member in told if answered < at} <= members
        assert not members & {member for sent, _, member in told if sent > at}
    assert frozen[0][1] < frozen[-1][1], "nobody wrote meanwhile"


def test_what_commits_while_a_transaction_waits_to_freeze_is_before_the_instant(club: Club) -> None:
    club.client.freeze_season("b", at=datetime.now(UTC) + timedelta(hours=1), **WHO)
    club.pipeline.conn.execute("UPDATE truerank.freeze SET due_at = clock_timestamp()")
    taker = club.pipeline.connection()
    taker.execute("SELECT 1")  # the transaction has begun
    club.pipeline.submit("b", {"ann": 9})
    answered = datetime.now(UTC)

    taker.execute("SELECT truerank.take_freeze(1)")

    taker.commit()
    (freeze,) = club.client.freezes("b")
    assert freeze.frozen_at is not None
    assert freeze.frozen_at > answered
    assert shown(club) == {"ann": "9"}


def test_a_second_freeze_says_that_one_is_under_way_and_a_reveal_calls_it_off(club: Club) -> None:
    club.scores("b", ("ann", 9))

    with copying(club) as freeze:
        with pytest.raises(FreezePending, match="another process copies it"):
            club.client.freeze_season("b", timeout_s=0.05, **WHO)
        assert club.client.reveal_season("b", **WHO)

    assert freeze.result().frozen_at is None
    club.scores("b", ("ann", 1))
    page = club.top("b")
    assert (page.entries[0].score, page.freshness.frozen_at) == ("10", None)


@pytest.mark.parametrize("lives", [1, 2])
def test_who_is_deleted_while_the_copy_is_made_is_not_in_it(club: Club, lives: int) -> None:
    club.scores("b", ("ann", 9), ("bob", 7))

    with copying(club) as freeze:
        club.does("delete", "ann")  # and waits for nobody
        if lives > 1:
            club.pipeline.submit("b", {"ann": 1})

    assert freeze.result().frozen_at is not None
    expected = {"bob": "7"} if lives == 1 else {"bob": "7", "ann": "1"}
    assert shown(club) == expected
    club.project()
    assert shown(club) == expected


def test_a_freeze_waits_for_a_deletion_that_may_not_know_of_it(club: Club) -> None:
    club.scores("b", ("ann", 9), ("bob", 7))
    deleting = club.pipeline.connection()
    deleting.execute(DELETE, ("ann",))

    with pytest.raises(FreezePending, match="takes members away"):
        club.client.freeze_season("b", timeout_s=0.05, **WHO)

    deleting.commit()
    club.client.run(freezing.work())
    assert shown(club) == {"bob": "7"}
    (freeze,) = club.client.freezes("b")
    assert freeze.frozen_at is not None


def test_a_copy_that_deletions_end_again_and_again_makes_them_wait(club: Club) -> None:
    club.scores("b", *((f"m{i}", i) for i in range(10)))
    stop = threading.Event()

    def delete() -> None:
        with psycopg.connect(str(club.pipeline.settings.database_url), autocommit=True) as conn:
            numbers = count()
            while not stop.is_set():
                conn.execute(DELETE, (f"m{next(numbers) % 10}",))

    with ThreadPoolExecutor(1) as pool:
        deleting = pool.submit(delete)
        try:
            freeze = club.client.freeze_season("b", timeout_s=60, **WHO)
        finally:
            stop.set()
        deleting.result()

    assert freeze.frozen_at is not None


def test_a_freeze_to_come_is_brought_forward_and_never_put_off(club: Club) -> None:
    club.scores("b", ("ann", 9))
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    club.client.freeze_season("b", at=tomorrow, **WHO)

    put_off = club.client.freeze_season("b", at=tomorrow + timedelta(days=1), **WHO)
    sooner = club.client.freeze_season("b", at=tomorrow - timedelta(hours=1), **WHO)
    now = club.client.freeze_season("b", **WHO)

    assert (put_off.due_at, sooner.due_at) == (tomorrow, tomorrow - timedelta(hours=1))
    assert now.frozen_at is not None
    assert now.due_at <= now.frozen_at < tomorrow
    assert club.client.freezes("b") == [now]


def test_a_reveal_says_that_another_holds_the_freeze_instead_of_waiting(club: Club) -> None:
    club.client.freeze_season("b", **WHO)
    holder = club.pipeline.connection()
    holder.execute("SELECT FROM truerank.freeze FOR UPDATE")

    with pytest.raises(psycopg.errors.LockNotAvailable):
        club.pipeline.conn.execute("SELECT truerank.reveal_season('b', 'all', 'op', 'test')")


def test_what_is_void_after_a_freeze_is_in_the_copy_still(club: Club) -> None:
    receipts = club.scores("b", ("ann", 9), ("bob", 7))
    at = datetime.now(UTC) + timedelta(hours=1)
    club.client.freeze_season("b", at=at, **WHO)
    club.pipeline.conn.execute("UPDATE truerank.freeze SET due_at = clock_timestamp()")
    club.client.run(freezing.take(1, timeout_s=10))

    club.client.void_events("b", [receipts[0].event_id], **WHO)

    club.client.run(freezing.work())
    club.project()
    assert shown(club) == {"ann": "9", "bob": "7"}


def test_a_copy_may_take_longer_than_other_statements(club: Club) -> None:
    club.scores("b", ("ann", 9))
    settings = msgspec.structs.replace(club.pipeline.settings, database_timeout_ms=100)
    older = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND query LIKE '%take_freeze%' AND clock_timestamp() > query_start + interval '300 ms'"
    )

    with Truerank(settings) as client, copying(club, client) as freeze:
        wait_until(lambda: club.pipeline.conn.execute(older).fetchone() == (1,), "it takes long")

    assert freeze.result().frozen_at is not None
