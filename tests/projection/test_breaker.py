"""A Redis that does not answer costs few calls their deadline, and PostgreSQL nothing at all."""

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import psycopg
import pytest
import redis
from redis.asyncio.connection import BlockingConnectionPool as AsyncPool
from redis.connection import BlockingConnectionPool

import truerank
from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, wait_until
from truerank import aio
from truerank.errors import ProjectionUnavailable
from truerank.local import running_worker
from truerank.model import Source
from truerank.projection.alink import AsyncLink
from truerank.projection.breaker import Breaker, BreakerState
from truerank.projection.link import Link, is_crowded
from truerank.projection.trouble import Backoff, Trouble
from truerank.projection.worker import Projector
from truerank.steps import ScriptCall
from truerank.telemetry.meter import Meter

NOBODY = "unix:///nobody/listens/here"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock, jitter: float = 0.0, **changes: Any) -> Breaker:
    options: dict[str, Any] = {"failures_max": 3, "pause_s": (1.0, 4.0), **changes}
    return Breaker(clock=clock, jitter=lambda: jitter, **options)


def opened(clock: Clock, jitter: float = 0.0) -> Breaker:
    made = breaker(clock, jitter)
    for _ in range(3):
        assert made.admit()
        made.failed()
    assert made.state is BreakerState.OPEN
    return made


def test_it_opens_after_failures_in_a_row_and_an_answer_begins_the_row_anew() -> None:
    made = breaker(Clock())
    for _ in range(5):
        made.failed()
        made.failed()
        assert (made.state, made.failures, made.admit()) == (BreakerState.CLOSED, 2, True)
        made.succeeded()
    assert made.failures == 0

    for _ in range(3):
        made.failed()

    assert (made.state, made.failures, made.admit()) == (BreakerState.OPEN, 3, False)


def test_after_the_pause_one_call_is_let_through_and_its_answer_lets_all() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 0.99
    assert not made.admit()
    assert made.retry_s == pytest.approx(0.01)

    clock.now += 0.02
    assert made.admit()
    assert made.state is BreakerState.HALF_OPEN
    assert not made.admit(), "one is on its way"

    made.succeeded()
    assert (made.state, made.retry_s, made.admit(), made.admit()) == ("closed", 0.0, True, True)


def test_the_pauses_double_up_to_a_limit() -> None:
    clock = Clock()
    made = opened(clock)
    pauses: list[float] = []

    for _ in range(5):
        pauses.append(made.retry_s)
        clock.now += made.retry_s
        assert made.admit()
        made.failed()

    assert pauses == pytest.approx([1, 2, 4, 4, 4])


def test_pauses_are_cut_by_chance_so_that_processes_do_not_come_back_together() -> None:
    assert [opened(Clock(), jitter).retry_s for jitter in (0.0, 0.5, 1.0)] == pytest.approx(
        [1.0, 0.75, 0.5]
    )


def test_a_trial_that_never_ends_is_followed_by_another() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 1
    assert made.admit()

    clock.now += 1
    assert made.admit(), "the first was cancelled, say"
    assert not made.admit()


def test_of_many_threads_one_makes_the_trial() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 1
    start = threading.Barrier(8)
    admitted: list[bool] = []

    def ask() -> None:
        start.wait()
        admitted.append(made.admit())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(admitted) == [False] * 7 + [True]


def test_it_tells_each_state_that_it_comes_to_be_in() -> None:
    clock = Clock()
    told: list[BreakerState] = []
    made = breaker(clock, told=told.append)
    for _ in range(4):
        made.failed()
    clock.now += 9
    made.admit()
    made.succeeded()
    made.succeeded()

    assert told == ["open", "half_open", "closed"]


def test_backoff_grows_is_jittered_and_begins_anew_after_a_success() -> None:
    backoff = Backoff(jitter=lambda: 1.0)

    assert [backoff.failed() for _ in range(6)] == pytest.approx([0.025, 0.05, 0.1, 0.25, 0.5, 0.5])
    backoff.succeeded()
    assert backoff.failed() == pytest.approx(0.025)
    assert Backoff(jitter=lambda: 0.0).failed() == pytest.approx(0.05)


def test_a_refused_group_rests_ever_longer_and_is_given_up_only_if_never_served() -> None:
    clock = Clock()
    trouble = Trouble(clock=clock, jitter=lambda: 1.0)
    trouble.refused(3)
    trouble.refused(5)
    assert trouble.rested([3, 4, 5]) == {4}
    clock.now += 0.02
    assert trouble.rested([3, 4, 5]) == {3, 4, 5}

    trouble.refused(3)
    clock.now += 0.02
    assert trouble.rested([3, 5]) == {5}, "the second pause is longer"
    trouble.served(5)
    clock.now += 5
    assert trouble.hopeless(5.0) == {3}

    trouble.keep({4, 5})
    assert trouble.hopeless(0.0) == set()


def test_calls_that_nobody_answers_open_the_breaker_of_a_link() -> None:
    made = breaker(Clock())
    link = Link(NOBODY, timeout_ms=100, breaker=made)
    for _ in range(3):
        with pytest.raises(ProjectionUnavailable, match="no connection"):
            link.command("GET", "k")

    with pytest.raises(ProjectionUnavailable, match="3 calls unanswered"):
        link.command("GET", "k")
    assert (made.state, made.failures) == (BreakerState.OPEN, 3)


async def test_calls_that_nobody_answers_open_the_breaker_of_an_asyncio_link() -> None:
    made = breaker(Clock())
    link = AsyncLink(NOBODY, timeout_ms=100, breaker=made)
    for _ in range(3):
        with pytest.raises(ProjectionUnavailable, match="no connection"):
            await link.command("GET", "k")

    with pytest.raises(ProjectionUnavailable, match="3 calls unanswered"):
        await link.call(ScriptCall("page", [], []))
    assert made.state is BreakerState.OPEN


def test_an_error_as_reply_is_an_answer(redis_url: str) -> None:
    made = breaker(Clock())
    link = Link(redis_url, timeout_ms=5000, breaker=made)
    link.command("SET", "k", "v")
    for _ in range(5):
        with pytest.raises(ProjectionUnavailable, match="WRONGTYPE"):
            link.command("HGET", "k", "f")

    assert (made.state, made.failures) == (BreakerState.CLOSED, 0)
    link.close()


@pytest.fixture
def deaf() -> Iterator[str]:
    """The URL of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_never_says_a_word_is_left_after_the_deadline(deaf: str) -> None:
    link = Link(deaf, timeout_ms=200)
    began = time.monotonic()
    with pytest.raises(ProjectionUnavailable):
        link.command("PING")

    assert time.monotonic() - began < 10
    assert link.breaker.failures == 1


async def test_a_server_that_never_says_a_word_is_left_by_tasks_too(deaf: str) -> None:
    link = AsyncLink(deaf, timeout_ms=200)
    async with asyncio.timeout(10):
        with pytest.raises(ProjectionUnavailable):
            await link.command("PING")

    assert link.breaker.failures == 1


def test_a_crowd_of_callers_is_no_failure_of_the_server(redis_url: str) -> None:
    pool: Any = BlockingConnectionPool.from_url(redis_url, max_connections=1, timeout=0.01)
    connection = pool.get_connection()
    with pytest.raises(redis.ConnectionError) as crowded:
        pool.get_connection()
    pool.release(connection)
    pool.disconnect()

    assert is_crowded(crowded.value)
    assert not is_crowded(redis.ConnectionError("Connection refused"))


async def test_a_crowd_of_tasks_is_none_either(redis_url: str) -> None:
    pool: Any = AsyncPool.from_url(redis_url, max_connections=1, timeout=0.01)
    connection = await pool.get_connection()
    with pytest.raises(redis.ConnectionError) as crowded:
        await pool.get_connection()
    await pool.release(connection)
    await pool.disconnect()

    assert is_crowded(crowded.value)


@pytest.fixture
def own_redis(single: Pipeline, start_redis: StartRedis) -> Iterator[tuple[Pipeline, Any]]:
    """A pipeline whose board is shown by a server of this test's own, and that server's process."""
    url, process = start_redis()
    settings = msgspec.structs.replace(single.settings, redis_url=url, redis_timeout_ms=300)
    with running_worker(settings):
        (receipt,) = single.submit("b", {"ann": 3})
        assert receipt.token is not None
        with truerank.Truerank(settings) as client:
            client.wait_visible(receipt.token, ["b"])
    single.settings = settings
    yield single, process
    process.send_signal(signal.SIGCONT)


class States(Meter):
    """The states that the breaker came to be in."""

    def __init__(self) -> None:
        self.states: list[str] = []

    def breaker_changed(self, state: str) -> None:
        self.states.append(state)


def test_a_reader_waits_for_a_silent_redis_a_few_times_and_then_asks_postgresql_at_once(
    own_redis: tuple[Pipeline, Any],
) -> None:
    single, process = own_redis
    meter = States()
    with truerank.Truerank(single.settings, meter) as client:
        assert client.top("b").freshness.source is Source.PROJECTION
        process.send_signal(signal.SIGSTOP)

        for _ in range(60):
            assert client.top("b").freshness.source is Source.DATABASE
        assert meter.states[0] == BreakerState.OPEN
        assert meter.states.count(BreakerState.HALF_OPEN) <= 20, "else every read would wait"

        process.send_signal(signal.SIGCONT)
        wait_until(
            lambda: client.top("b").freshness.source is Source.PROJECTION, "an answer from Redis"
        )
        assert meter.states[-1] == BreakerState.CLOSED


async def test_an_asyncio_reader_asks_postgresql_at_once_too(
    own_redis: tuple[Pipeline, Any],
) -> None:
    single, process = own_redis
    meter = States()
    async with aio.Truerank(single.settings, meter) as client:
        assert (await client.top("b")).freshness.source is Source.PROJECTION
        process.send_signal(signal.SIGSTOP)

        for _ in range(60):
            assert (await client.top("b")).freshness.source is Source.DATABASE
        assert meter.states[0] == BreakerState.OPEN
        assert meter.states.count(BreakerState.HALF_OPEN) <= 20, "else every read would wait"


class WatchingLink(Link):
    """Looks, before each round trip, at what the worker's connection to PostgreSQL is doing."""

    seen: list[tuple[str, bool, bool]]
    watch: Callable[[], tuple[str, bool, bool]]

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        self.seen.append(self.watch())
        return super().calls(calls)

    def try_commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        self.seen.append(self.watch())
        return super().try_commands(commands)

    def clock(self) -> tuple[int, str | None]:
        self.seen.append(self.watch())
        return super().clock()


WORKERS = """
    SELECT state, xact_start IS NOT NULL, backend_xmin IS NOT NULL OR backend_xid IS NOT NULL
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'truerank worker'"""


@pytest.mark.direct
def test_no_transaction_is_open_while_redis_is_called(single: Pipeline) -> None:
    link: WatchingLink = single.link(WatchingLink)

    def look() -> tuple[str, bool, bool]:
        ((state, began, writes),) = single.conn.execute(WORKERS).fetchall()
        return str(state), bool(began), bool(writes)

    link.seen, link.watch = [], look
    projector = single.projector(link, heartbeat_ms=1, call_rows_max=1, scan_rows_max=2)
    for _ in range(3):
        single.submit("b", {f"m{i}": 1 for i in range(5)})
        single.settle(projector)

    assert len(link.seen) > 30
    assert set(link.seen) == {("idle", False, False)}


def test_while_redis_stalls_no_transaction_waits_for_it(own_redis: tuple[Pipeline, Any]) -> None:
    single, process = own_redis
    with (
        running_worker(msgspec.structs.replace(single.settings, redis_timeout_ms=2500)),
        truerank.Truerank(single.settings) as client,
    ):
        process.send_signal(signal.SIGSTOP)
        single.submit("b", {"ann": 1})
        oldest = 0.0
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            assert client.top("b").freshness.source is Source.DATABASE
            oldest = max(oldest, _oldest_transaction_s(single.conn))
        process.send_signal(signal.SIGCONT)

    assert oldest < 0.5


def _oldest_transaction_s(conn: psycopg.Connection[Any]) -> float:
    ((age_s,),) = conn.execute(
        """SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8
           FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND application_name LIKE 'truerank%' AND state LIKE 'idle in transaction%'"""
    ).fetchall()
    return float(age_s)


def test_a_worker_that_can_not_reach_redis_leaves_its_groups_to_others(
    several: Pipeline, start_redis: StartRedis
) -> None:
    """It must not renew: somebody else may be able to reach it."""
    url, process = start_redis()
    settings = msgspec.structs.replace(several.settings, lease_ms=300, tick_idle_ms=5)
    cut_off = msgspec.structs.replace(settings, redis_url=url, redis_timeout_ms=100)
    with running_worker(cut_off):
        process.kill()
        process.wait()
        with running_worker(settings):
            wait_until(lambda: _holders(several) == 1, "one that holds every group")
            for group in range(3):
                (receipt,) = several.submit(f"b{group}", {"ann": 1})
                assert receipt.token is not None
                several.client.wait_visible(receipt.token, [f"b{group}"])
            assert _holders(several) == 1


def test_who_can_not_reach_redis_takes_no_lease(single: Pipeline) -> None:
    projector = single.projector(Link(NOBODY, timeout_ms=100))

    with pytest.raises(ProjectionUnavailable):
        projector.step()

    assert single.conn.execute("SELECT worker FROM truerank.lease").fetchall() == [(None,)]


def _holders(several: Pipeline) -> int:
    ((workers, free),) = several.conn.execute(
        """SELECT count(DISTINCT worker), count(*) FILTER (WHERE expires_at < clock_timestamp())
           FROM truerank.lease"""
    ).fetchall()
    return int(workers) if not free else 0


def test_the_same_projector_goes_on_after_redis_was_away(own_redis: tuple[Pipeline, Any]) -> None:
    single, process = own_redis
    projector: Projector = single.projector(Link(str(single.settings.redis_url), timeout_ms=200))
    projector.step()
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(ProjectionUnavailable):
        projector.step()
    projector.interrupt()
    assert not projector.whole
    process.send_signal(signal.SIGCONT)

    single.submit("b", {"ann": 2})

    def shown() -> bool:
        try:
            projector.step()
        except ProjectionUnavailable:
            projector.interrupt()
            return False
        return projector.whole

    wait_until(shown, "the projector's next batch")
    with truerank.Truerank(single.settings) as client:
        page = client.top("b", source="projection")
    assert [(entry.member, entry.score) for entry in page.entries] == [("ann", "5")]
