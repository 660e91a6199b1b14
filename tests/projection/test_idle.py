"""Without traffic: the age stays known and small, and nothing else is written."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, wait_until
from truerank.errors import ProjectionUnsafe
from truerank.local import running_worker
from truerank.model import Source
from truerank.projection import worker
from truerank.projection.link import Link
from truerank.settings import Settings
from truerank.steps import ScriptCall


def test_heartbeats_keep_the_age_small_while_nobody_scores(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    settings = msgspec.structs.replace(single.settings, heartbeat_ms=100)
    seen: set[int] = set()

    def another_tick() -> bool:
        freshness = single.client.top("b").freshness
        assert freshness.source is Source.PROJECTION
        assert freshness.staleness_ms is not None
        assert freshness.staleness_ms < 2000
        assert freshness.tick is not None
        seen.add(freshness.tick)
        return len(seen) > 5

    with running_worker(settings):
        wait_until(another_tick, "five heartbeats")


def test_a_group_without_changes_is_written_by_heartbeats_alone(several: Pipeline) -> None:
    several.settle(several.projector())
    projector = several.projector()
    projector.step()  # the first step of a worker is a heartbeat
    idle = several.meta(1)

    for _ in range(3):
        several.submit("b0", {"ann": 1})
        assert projector.step() is True
        assert several.meta(1) == idle
    tick = int(several.meta(0)["tick"])
    assert tick > int(idle["tick"])

    several.submit("b1", {"ann": 1})
    projector.step()
    assert int(several.meta(1)["tick"]) > tick, "what it read meanwhile was not lost"


def test_an_idle_step_takes_no_tick(several: Pipeline) -> None:
    projector = several.projector()
    several.settle(projector)
    ticks = several.conn.execute("SELECT max(id) FROM truerank.tick").fetchone()

    assert projector.step() is False

    assert several.conn.execute("SELECT max(id) FROM truerank.tick").fetchone() == ticks


class CountingLink(Link):
    """Counts how often Redis is asked."""

    asked = 0

    def clock(self) -> tuple[int, str | None]:
        self.asked += 1
        return super().clock()

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        self.asked += 1
        return super().calls(calls)

    def try_commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        self.asked += 1
        return super().try_commands(commands)


def test_steps_that_find_no_rows_ask_redis_a_few_times_a_second_at_most(single: Pipeline) -> None:
    link: CountingLink = single.link(CountingLink)
    projector = single.projector(link)
    single.settle(projector)
    while projector.pause_s == 0:
        projector.step()
    projector.step()
    began, before, steps = time.monotonic(), link.asked, 0

    while steps < 100:
        assert projector.step() is False
        steps += 1

    in_s = time.monotonic() - began
    assert link.asked - before <= 2 + in_s * 8  # four looks, and renewals, heartbeats are off
    single.submit("b", {"ann": 1})
    assert projector.step() is True, "a look at the outbox is all it needs to begin"


def test_all_that_was_acknowledged_before_the_mark_is_in_the_answer(single: Pipeline) -> None:
    projector = single.projector()
    single.settle(projector)
    ((before,),) = single.conn.execute("SELECT clock_timestamp()").fetchall()
    single.submit("b", {"ann": 1})
    ((after,),) = single.conn.execute("SELECT clock_timestamp()").fetchall()

    page = single.client.top("b")
    assert page.freshness.projected_through is not None
    assert (page.total, page.freshness.projected_through < before) == (0, True)

    single.settle(projector)
    page = single.client.top("b")
    assert page.freshness.projected_through is not None
    assert (page.total, page.freshness.projected_through >= after) == (1, True)


def test_the_mark_of_an_answer_from_postgresql_is_not_later_than_its_snapshot(
    single: Pipeline,
) -> None:
    reader = single.connection()
    reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    reader.execute("SELECT FROM truerank.board")
    single.submit("b", {"ann": 1})
    ((after,),) = single.conn.execute("SELECT clock_timestamp()").fetchall()

    ((total, read_at),) = reader.execute(
        "SELECT total, read_at FROM truerank.read_page(%s, 8, 0, 10, '{}', 0)",
        (next(iter(single.rankings())),),
    ).fetchall()

    assert (total, read_at < after) == (0, True)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_redis_that_may_evict_boards_is_refused(
    settings: Settings, start_redis: StartRedis, policy: str
) -> None:
    url, _ = start_redis("--maxmemory-policy", policy)

    with pytest.raises(ProjectionUnsafe, match=policy):
        worker.run(msgspec.structs.replace(settings, redis_url=url), threading.Event())


def test_a_worker_that_can_not_begin_says_why_to_who_waits_for_it(
    settings: Settings, start_redis: StartRedis
) -> None:
    url, _ = start_redis("--maxmemory-policy", "allkeys-random")

    with (
        pytest.raises(ProjectionUnsafe, match="allkeys-random"),
        running_worker(msgspec.structs.replace(settings, redis_url=url)),
    ):
        pytest.fail("nothing can be projected here")


def test_a_redis_without_memory_is_an_interruption_and_nothing_is_lost(
    single: Pipeline, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    settings = msgspec.structs.replace(single.settings, redis_url=url)
    link = Link(url, timeout_ms=2000)
    with running_worker(settings):
        link.command("CONFIG", "SET", "maxmemory", "1")
        single.submit("b", {"ann": 1})
        wait_until(lambda: b"errorstat_OOM" in link.command("INFO", "errorstats"), "a refusal")
        link.command("CONFIG", "SET", "maxmemory", "0")

        def shown() -> bool:
            return any(link.command("ZCARD", key) for key in link.command("KEYS", "*:z"))

        wait_until(shown, "the score")
    link.close()


@pytest.mark.direct
def test_a_database_that_turned_read_only_is_an_interruption(single: Pipeline) -> None:
    """As after a failover, where the address for a while leads to a standby."""
    ((name,),) = single.conn.execute("SELECT current_database()").fetchall()
    with running_worker(single.settings):
        single.conn.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        end = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE application_name = 'truerank worker' AND datname = current_database()"""
        assert single.conn.execute(end).fetchone() == (1,)
        wait_until(lambda: single.conn.execute(end).fetchone() == (1,), "a worker that came back")
        single.conn.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        single.conn.execute("SET default_transaction_read_only = off")

        (receipt,) = single.submit("b", {"ann": 1})
        assert receipt.token is not None
        single.client.wait_visible(receipt.token, ["b"])
