"""Transactions that stay open, here and elsewhere on the server, stop and skip nothing."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

import truerank
from tests.faults.postgres.server import How, Server
from tests.faults.proxy import Proxy
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.local import running_worker
from truerank.model import ScoreEvent, Source
from truerank.projection import worker
from truerank.projection.projector import Projector
from truerank.settings import Settings

Connection = psycopg.Connection[Any]
LATE = ScoreEvent(event_id="late", member="late", value=7)
DEAD = """
    SELECT sum(n_dead_tup), sum(n_tup_upd), sum(n_tup_del), sum(n_tup_ins)
    FROM pg_stat_user_tables
    WHERE schemaname = 'truerank' AND relname ~ '^outbox'"""


def write_idly(conn: Connection) -> None:
    """A transaction with an id of its own that has written, and then does nothing."""
    conn.execute("CREATE TABLE idle_writer (id integer)")
    conn.execute("INSERT INTO idle_writer VALUES (1)")


def submit_late(conn: Connection) -> None:
    truerank.submit_score(conn, "b", LATE)


def shown(pipeline: Pipeline) -> list[tuple[str, str]]:
    page = pipeline.client.top("b", source=Source.PROJECTION)
    return [(entry.member, entry.score) for entry in page.entries]


@contextmanager
def idle_in_transaction(
    server: Server, database: str, begin: Callable[[Connection], None]
) -> Iterator[Connection]:
    with psycopg.connect(server.url(database)) as conn:
        begin(conn)
        yield conn


@pytest.mark.parametrize("elsewhere", [True, False], ids=["another database", "this database"])
def test_a_writer_that_idles_in_its_transaction_stops_nothing_and_is_not_skipped(
    server: Server, lone: Pipeline, database: str, *, elsewhere: bool
) -> None:
    """Whoever takes only what is older than every open transaction would stand still here."""
    projector = lone.projector()
    lone.settle(projector)
    with (
        idle_in_transaction(server, "postgres" if elsewhere else database, write_idly),
        idle_in_transaction(server, database, submit_late) as late,
    ):
        for number in range(1, 6):
            lone.submit("b", {"ann": 1})
            projector.step()
            assert shown(lone) == [("ann", str(number))]

        late.commit()
        lone.settle(projector)

    assert shown(lone) == [("late", "7"), ("ann", "5")]


def test_a_prepared_transaction_outlives_a_restart_and_is_shown_once_it_is_committed(
    server: Server, settings: Settings, database: str
) -> None:
    """Nobody is connected whose transaction it is."""
    with pipeline(settings, groups=1) as before:
        before.client.create_board("b", seasons=["all"])
        before.settle(before.projector())
        for name in ("kept", "undone"):
            with closing(psycopg.connect(server.url(database))) as conn:
                conn.tpc_begin(name)
                event = ScoreEvent(event_id=name, member=name, value=7)
                truerank.submit_score(conn, "b", event)
                conn.tpc_prepare()

    server.restart(How.IMMEDIATE)

    with pipeline(settings, groups=1) as after:
        projector = after.projector()
        for number in range(1, 4):
            after.submit("b", {"ann": 1})
            projector.step()
            assert shown(after) == [("ann", str(number))]
        after.conn.execute("COMMIT PREPARED 'kept'")
        after.conn.execute("ROLLBACK PREPARED 'undone'")
        after.settle(projector)
        assert shown(after) == [("kept", "7"), ("ann", "3")]


def buffers(conn: Connection, since: str) -> int:
    """How many pages a poll for waiting rows looks at, from a snapshot on."""
    ((plan,),) = conn.execute(
        "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)"
        " SELECT truerank.rows_waiting(%s::pg_snapshot)",
        (since,),
    ).fetchall()
    found = plan[0]["Plan"]
    return int(found["Shared Hit Blocks"]) + int(found["Shared Read Blocks"])


def test_under_a_held_snapshot_the_outbox_has_no_dead_row_and_a_poll_costs_the_same(
    server: Server, lone: Pipeline, database: str
) -> None:
    """The outbox is only inserted into; where rows are marked, each poll reads all the dead."""
    projector = lone.projector()
    lone.settle(projector)
    costs = []
    with psycopg.connect(server.url(database)) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("SELECT count(*) FROM truerank.standing")
        for _ in range(6):
            for _ in range(4):
                lone.submit("b", {f"m{n}": 1 for n in range(250)})
                projector.step()
            ((since,),) = lone.conn.execute("SELECT pg_current_snapshot()::text").fetchall()
            lone.conn.execute("SELECT pg_stat_force_next_flush()")
            costs.append(buffers(lone.conn, since))
            assert differences(lone) == []
        dead = lone.conn.execute(DEAD).fetchone()
        ((ticks,),) = lone.conn.execute("SELECT count(*) FROM truerank.tick").fetchall()

    assert dead == (0, 0, 0, 6 * 4 * 250)
    assert ticks >= 24
    assert max(costs) <= costs[0] + 8, costs


def test_a_batch_costs_one_row_of_a_tick_and_updates_no_other(
    lone: Pipeline, quiet: Settings
) -> None:
    """No cursor is a row in PostgreSQL that every batch would update."""
    assert quiet.database_url is not None
    worker_conn = worker.connect(quiet.database_url)
    lone.free_leases()
    projector = Projector(worker_conn, lone.link(), quiet)
    lone.submit("b", {f"m{n}": 1 for n in range(100)})
    lone.settle(projector)
    counts = """
        SELECT regexp_replace(relname, '_[0-3]$', ''), sum(n_tup_ins), sum(n_tup_upd + n_tup_del)
        FROM pg_stat_user_tables WHERE schemaname = 'truerank'
        GROUP BY 1 HAVING sum(n_tup_ins + n_tup_upd + n_tup_del) > 0"""

    def counted() -> dict[str, tuple[int, int]]:
        # The statistics of another session arrive with its next statement a second later.
        for conn in (worker_conn, lone.conn):
            conn.execute("SELECT pg_stat_force_next_flush()")
            conn.execute("SELECT 1")
        return {name: (int(ins), int(rest)) for name, ins, rest in lone.conn.execute(counts)}

    before = counted()
    for _ in range(10):
        lone.submit("b", {"m1": 1})
        assert projector.step() is True
    after = counted()

    changed = {
        name: (ins - before.get(name, (0, 0))[0], rest - before.get(name, (0, 0))[1])
        for name, (ins, rest) in after.items()
        if (ins, rest) != before.get(name)
    }
    assert changed == {"event": (10, 0), "outbox": (10, 0), "standing": (0, 10), "tick": (10, 0)}
    worker_conn.close()


def test_a_worker_survives_a_limit_on_idle_transactions_while_redis_is_silent(
    server: Server, lone: Pipeline, redis_wire: tuple[Proxy, Settings]
) -> None:
    """No transaction is open while Redis is called, so no limit can end one."""
    proxy, settings = redis_wire
    lone.conn.execute("ALTER SYSTEM SET idle_in_transaction_session_timeout = '100ms'")
    lone.conn.execute("SELECT pg_reload_conf()")
    try:
        with running_worker(settings):
            workers = """
                SELECT pid, backend_start FROM pg_stat_activity
                WHERE application_name = 'truerank worker' AND datname = current_database()"""
            before = lone.conn.execute(workers).fetchall()
            proxy.hold()
            lone.submit("b", {f"m{n}": 1 for n in range(100)})
            with closing(psycopg.connect(server.url(lone.conn.info.dbname))) as idle:
                idle.execute("SELECT 1")
                wait_until(lambda: is_ended(idle), "the limit ends who idles")
            proxy.mend()

            wait_until(lambda: not differences(lone), "both stores agree")
            assert lone.conn.execute(workers).fetchall() == before
    finally:
        lone.conn.execute("ALTER SYSTEM RESET idle_in_transaction_session_timeout")
        lone.conn.execute("SELECT pg_reload_conf()")


def test_a_caller_that_idled_too_long_has_written_nothing_and_may_repeat(
    server: Server, lone: Pipeline, database: str
) -> None:
    with closing(psycopg.connect(server.url(database))) as conn:
        conn.execute("SET idle_in_transaction_session_timeout = '50ms'")
        conn.commit()
        truerank.submit_score(conn, "b", LATE)
        wait_until(lambda: is_ended(conn), "the limit ends who idles")
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            conn.commit()

    assert lone.client.top("b", source=Source.DATABASE).total == 0
    assert lone.submit("b", {"ann": 1})[0].outcome is truerank.Outcome.APPLIED
    with server.connect(database) as conn:
        assert truerank.submit_score(conn, "b", LATE).outcome is truerank.Outcome.APPLIED


def is_ended(conn: Connection) -> bool:
    """Whether the server has ended a connection that idles; asked without a statement."""
    with psycopg.connect(conn.info.dsn, autocommit=True) as watcher:
        row = watcher.execute(
            "SELECT FROM pg_stat_activity WHERE pid = %s", (conn.info.backend_pid,)
        ).fetchone()
    return row is None
