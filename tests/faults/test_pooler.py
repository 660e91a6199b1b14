"""Behind PgBouncer in transaction mode: nothing is left in a session that others get next."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
import pytest

import truerank
from tests.faults.pooler import PROGRAM, asked_for, pooler
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank import aio
from truerank.errors import Contended, DatabaseUnavailable
from truerank.exporting import ROWS, AsyncExport, Export
from truerank.gatherer import Gatherer
from truerank.local import running_worker
from truerank.model import Outcome, ScoreEvent, Source
from truerank.read.exported import Wish
from truerank.schema.migrate import check, migrate
from truerank.settings import Settings
from truerank.steps import Query, Steps
from truerank.writing import Writer

pytestmark = [
    pytest.mark.system(PROGRAM),
    pytest.mark.skipif(asked_for(), reason="there is one pooler already"),
]

SESSIONS = 2  # of the server, for all clients: each gets what another had before
CALLERS = 20
EVENTS = 1000
# What a client may have left: limits, statements, locks.
LEFT = """
    SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
           (SELECT count(*) FROM pg_prepared_statements),
           (SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
            WHERE l.locktype = 'advisory' AND d.datname = current_database())"""
NOTHING = ("0", "0", 0, 0)


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Iterator[Settings]:
    """Settings that lead through PgBouncer, whose own settings are those it comes with."""
    with pooler(database_url, sessions=SESSIONS) as through:
        yield Settings(
            database_url=through(database_url),
            redis_url=redis_url,
            board_cache_ms=1,
            database_timeout_ms=20_000,
            tick_idle_ms=5,
        )


@pytest.fixture
def past(database_url: str, settings: Settings) -> Iterator[Pipeline]:
    """A pipeline of one group past the pooler, with board `b`."""
    with pipeline(msgspec.structs.replace(settings, database_url=database_url), groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        yield made


def query(text: str) -> Steps[list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = yield Query(text)
    return rows


def left(settings: Settings) -> set[tuple[Any, ...]]:
    """What is found in the sessions that strangers get."""
    assert settings.database_url is not None
    found = set()
    with psycopg.connect(settings.database_url, prepare_threshold=None) as one:
        for row in one.execute(LEFT):
            found.add(row)
        with psycopg.connect(settings.database_url, prepare_threshold=None) as other:
            for row in other.execute(LEFT):
                found.add(row)
    return found


def test_a_thousand_events_of_twenty_callers_arrive_once_through_two_sessions(
    past: Pipeline, settings: Settings
) -> None:
    """The worker goes through it as well, and is told not to."""
    with running_worker(settings), truerank.Truerank(settings) as client:

        def call(caller: int) -> None:
            for number in range(caller, EVENTS, CALLERS):
                receipt = client.submit_score(
                    "b", event_id=f"e{number}", member=f"m{number % 7}", value=1
                )
                assert receipt.outcome is Outcome.APPLIED
                client.top("b", source=Source.DATABASE, limit=1)

        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(call, range(CALLERS)))
        wait_until(lambda: not differences(past), "both stores agree")
        page = client.top("b", source=Source.PROJECTION)

    expected = Counter(f"m{number % 7}" for number in range(EVENTS))
    assert {entry.member: int(entry.score) for entry in page.entries} == expected
    assert left(settings) == {NOTHING}


async def test_exports_of_many_slices_succeed_one_after_the_other_and_leave_nothing(
    past: Pipeline, settings: Settings
) -> None:
    past.client.submit_scores(
        "b", [ScoreEvent(event_id=f"e{n}", member=f"m{n}", value=n) for n in range(12)]
    )
    asked = (settings, Wish(board="b"), ROWS)

    files = [[row.member for row in Export(*asked, rows_per_slice=1)] for _ in range(2)]
    for _ in range(2):
        async with AsyncExport(*asked, rows_per_slice=1) as export:
            files.append([row.member async for row in export])
    with Export(*asked, rows_per_slice=1) as export_ended_early:
        first = next(iter(export_ended_early))

    assert files == [[f"m{n}" for n in reversed(range(12))]] * 4
    assert first.member == "m11"
    assert left(settings) == {NOTHING}


@pytest.mark.usefixtures("past")
async def test_gathered_and_asyncio_callers_arrive_once_too(settings: Settings) -> None:
    async with Gatherer(settings) as gatherer, aio.Truerank(settings) as client:

        async def call(number: int) -> None:
            event = ScoreEvent(event_id=f"e{number}", member=f"m{number % 7}", value=1)
            if number % 2:
                assert (await gatherer.submit_score("b", event)).outcome is Outcome.APPLIED
            else:
                (receipt,) = await client.submit_scores("b", [event])
                assert receipt.outcome is Outcome.APPLIED

        for first in range(0, 200, CALLERS):
            await asyncio.gather(*map(call, range(first, first + CALLERS)))
        page = await client.top("b", source=Source.DATABASE)

    assert sum(int(entry.score) for entry in page.entries) == 200
    assert left(settings) == {NOTHING}


@pytest.mark.usefixtures("past")
def test_limits_hold_for_a_clients_own_statements_and_for_nobody_elses(settings: Settings) -> None:
    with truerank.Truerank(msgspec.structs.replace(settings, database_timeout_ms=500)) as client:
        with pytest.raises(DatabaseUnavailable, match="statement timeout"):
            client.run(query("SELECT pg_sleep(30)::text"))

        assert left(settings) == {NOTHING}
    with truerank.Truerank(settings) as client:
        assert client.top("b", source=Source.DATABASE).total == 0


async def test_a_writer_gives_up_soon_where_somebody_holds_a_lock(
    past: Pipeline, settings: Settings
) -> None:
    holder = past.connection()
    past.submit("b", {"ann": 1}, holder)
    writer = Writer(settings)
    await writer.open()
    try:
        with pytest.raises(Contended):
            await writer.submit("b", [ScoreEvent(event_id="e", member="ann", value=1)], None)
        holder.rollback()
        (receipt,) = await writer.submit(
            "b", [ScoreEvent(event_id="e", member="ann", value=1)], None
        )
    finally:
        await writer.close()
    assert receipt.outcome is Outcome.APPLIED


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[aio.Truerank]:
    async with aio.Truerank(settings) as opened:
        yield opened


async def test_a_commit_that_fails_is_no_acknowledgement(
    past: Pipeline, settings: Settings, client: aio.Truerank
) -> None:
    """Limits and statement go together; what the commit says comes after the statement's rows."""
    past.conn.execute(
        """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
           AS $$ BEGIN RAISE serialization_failure; END $$;
           CREATE CONSTRAINT TRIGGER late AFTER INSERT ON truerank.outbox_0
           DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"""
    )
    with truerank.Truerank(settings) as blocking:
        with pytest.raises(Contended):
            blocking.submit_score("b", event_id="e", member="ann", value=1)
        with pytest.raises(Contended):
            await client.submit_scores("b", [ScoreEvent(event_id="e", member="ann", value=1)])

        assert blocking.top("b", source=Source.DATABASE).total == 0
        assert (await client.top("b", source=Source.DATABASE)).total == 0


@contextmanager
def migrating(url: str) -> Iterator[subprocess.Popen[bytes]]:
    program = "import sys; from truerank.schema.migrate import migrate; migrate(sys.argv[1])"
    process = subprocess.Popen([sys.executable, "-c", program, url])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_of_three_nodes_that_migrate_one_may_be_killed_and_leaves_no_lock(
    empty_database_url: str,
) -> None:
    begun = """
        SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
        WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()"""
    with (
        pooler(empty_database_url, sessions=3) as through,
        psycopg.connect(empty_database_url, autocommit=True) as watcher,
    ):
        url = through(empty_database_url)
        with migrating(url) as first:
            wait_until(
                lambda: watcher.execute(begun).fetchone() == (1,) or first.poll() is not None,
                "the first has begun",
            )
            with migrating(url) as second, migrating(url) as third:
                first.kill()
                first.wait()

                assert (second.wait(60), third.wait(60)) == (0, 0)
        assert migrate(url) == []
        check(watcher)
        ((applied,),) = watcher.execute(
            "SELECT count(*) - count(DISTINCT version) FROM public.truerank_migration"
        ).fetchall()
        held = watcher.execute(begun).fetchone()

    assert (applied, held) == (0, (0,))
