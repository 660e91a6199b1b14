"""Workers share the groups, let go at once when told to stop, and are replaced when killed."""

from collections import Counter
from uuid import UUID

import msgspec
import psycopg
import pytest

from tests.faults.pooler import caller_options
from tests.projection.pipeline import Pipeline, differences, submit_and_wait, wait_until, working
from truerank.local import running_worker
from truerank.outbox.leases import Worker
from truerank.outbox.ticks import Connection
from truerank.settings import Settings

HOUR_MS = 3_600_000
BOARDS = ["b0", "b1", "b2"]  # of `several`


def holders(conn: Connection) -> dict[UUID | None, int]:
    """How many groups each worker holds by the table."""
    return Counter(
        holder for (holder,) in conn.execute("SELECT worker FROM truerank.lease").fetchall()
    )


@pytest.fixture
def conn(database_url: str) -> Connection:
    """A connection to a database of 64 groups."""
    return psycopg.connect(database_url, autocommit=True, **caller_options())


def test_a_single_worker_takes_every_group(conn: Connection) -> None:
    with conn:
        assert Worker.new(HOUR_MS).renew(conn) == set(range(64))


@pytest.mark.parametrize("number", [2, 3, 5, 70])
def test_workers_share_out_the_groups(conn: Connection, number: int) -> None:
    with conn:
        workers = [Worker.new(HOUR_MS) for _ in range(number)]
        held = [set[int]() for _ in workers]
        for _ in range(3):
            held = [worker.renew(conn) for worker in workers]

        assert sorted(group for groups in held for group in groups) == list(range(64))
        assert max(map(len, held)) <= -(-64 // number)


def test_a_worker_keeps_what_it_holds_rather_than_take_others(
    conn: Connection,
) -> None:
    with conn:
        first, second = Worker.new(HOUR_MS), Worker.new(HOUR_MS)
        first.renew(conn)
        second.renew(conn)
        half = first.renew(conn)
        assert len(half) == 32

        assert first.renew(conn) == half, "the other half is free, and not its share"
        assert second.renew(conn) == set(range(64)) - half


def test_a_clean_stop_lets_everything_go_at_once(
    conn: Connection,
) -> None:
    with conn:
        first, second = Worker.new(HOUR_MS), Worker.new(HOUR_MS)
        first.renew(conn)

        first.release(conn)

        assert second.renew(conn) == set(range(64))


def test_a_lease_is_taken_over_only_once_it_has_passed(
    conn: Connection,
) -> None:
    with conn:
        killed, heir = Worker.new(150), Worker.new(150)
        killed.renew(conn)
        assert heir.renew(conn) == set()

        assert wait_until(lambda: heir.renew(conn), "leases that passed") == set(range(64))


def test_groups_given_up_are_free_for_others(
    conn: Connection,
) -> None:
    with conn:
        first, second = Worker.new(HOUR_MS), Worker.new(HOUR_MS)
        first.renew(conn)

        assert first.renew(conn, give_up=[3, 5]) == set(range(64)) - {3, 5}
        assert {3, 5} <= second.renew(conn)


def test_two_workers_project_together_and_one_goes_on_alone(several: Pipeline) -> None:
    settings = msgspec.structs.replace(several.settings, lease_ms=300, tick_idle_ms=5)
    with running_worker(settings):
        with working(settings):
            wait_until(
                lambda: sorted(holders(several.conn).values()) == [1, 2], "groups that are shared"
            )
            submit_and_wait(several, BOARDS)

        assert len(holders(several.conn).keys() - {None}) == 1

        submit_and_wait(several, BOARDS)
        wait_until(lambda: set(holders(several.conn).values()) == {3}, "one that holds them all")
        submit_and_wait(several, BOARDS)
        assert differences(several) == []
    assert set(holders(several.conn)) == {None}


def test_a_killed_worker_is_replaced_within_its_lease(several: Pipeline) -> None:
    killed = several.projector(lease_ms=200)
    killed.step()

    settings = msgspec.structs.replace(several.settings, lease_ms=200, tick_idle_ms=5)
    with running_worker(settings):
        submit_and_wait(several, BOARDS)


@pytest.mark.direct
def test_a_worker_keeps_its_leases_through_a_failure_of_its_connection(
    several: Pipeline, settings: Settings
) -> None:
    """A new identity would have to wait for the leases of the old one."""
    settings = msgspec.structs.replace(settings, tick_idle_ms=5)
    with running_worker(settings):
        (before,) = holders(several.conn)

        several.conn.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE application_name = 'truerank worker' AND datname = current_database()"""
        )

        submit_and_wait(several, BOARDS)
        assert set(holders(several.conn)) == {before}


def test_a_worker_without_groups_takes_no_ticks(several: Pipeline) -> None:
    several.settle(several.projector())
    idle = several.projector(heartbeat_ms=1)
    Worker.new(HOUR_MS).renew(several.conn)
    ticks = several.conn.execute("SELECT count(*) FROM truerank.tick").fetchone()

    for _ in range(3):
        assert idle.step() is False

    assert several.conn.execute("SELECT count(*) FROM truerank.tick").fetchone() == ticks
