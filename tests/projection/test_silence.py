"""A Redis that does not answer costs few calls their deadline, and PostgreSQL nothing at all."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import psycopg
import pytest

import truerank
from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, submit_and_wait, wait_until
from truerank import aio
from truerank.errors import ProjectionUnavailable
from truerank.local import running_worker
from truerank.model import Source
from truerank.projection.breaker import BreakerState
from truerank.projection.link import Link
from truerank.projection.projector import Projector
from truerank.steps import ScriptCall
from truerank.telemetry.meter import Meter

NOBODY = "unix:///nobody/listens/here"


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
            submit_and_wait(several, ["b0", "b1", "b2"])
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
        wait_until(projector.step, "nothing")
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
