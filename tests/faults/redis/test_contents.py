"""What Redis holds is lost, or of another time."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.faults.redis.scene import scene
from truerank.model import Source
from truerank.settings import Settings


@pytest.mark.parametrize(
    "program", [None, pytest.param("redis-server", marks=pytest.mark.system("redis-server"))]
)
def test_a_flush_under_traffic_is_refilled(
    settings: Settings,
    start_redis: StartRedis,
    note: Callable[[str], None],
    program: str | None,
) -> None:
    url, _ = start_redis(program=program)
    with scene(settings, url, note) as trouble:
        for _ in range(5):
            trouble.harm(trouble.redis.flushall)
            trouble.mend()

        generations = trouble.pipeline.conn.execute(
            "SELECT count(*) FROM truerank.generation WHERE state <> 'retired'"
        )
        assert generations.fetchall() == [(2,)], "what was lost is not listed for ever"


def test_scripts_forgotten_all_the_time_stop_nothing(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    url, _ = start_redis()
    settings = msgspec.structs.replace(settings, redis_timeout_ms=10_000)
    with scene(settings, url, note) as trouble:
        trouble.harm(trouble.redis.script_flush)
        for _ in range(200):
            trouble.redis.script_flush()
        trouble.watch.await_traffic(trouble.harmed_at)
        assert trouble.redis.info("errorstats")["errorstat_NOSCRIPT"]

        trouble.mend()
        sources = {answer.source for answer in trouble.watch.asked_since(trouble.harmed_at)}
        assert sources == {Source.PROJECTION}


def test_a_server_that_comes_back_empty_is_refilled(
    settings: Settings,
    start_redis: StartRedis,
    tmp_path_factory: pytest.TempPathFactory,
    note: Callable[[str], None],
) -> None:
    folder = tmp_path_factory.mktemp("r")
    url, process = start_redis(folder=folder)
    with scene(settings, url, note) as trouble:
        trouble.harm(process.kill)
        process.wait()
        trouble.await_fallback()

        trouble.mend(lambda: start_redis(folder=folder))


def test_an_old_snapshot_is_read_on_from_where_it_was_taken(
    settings: Settings,
    start_redis: StartRedis,
    tmp_path_factory: pytest.TempPathFactory,
    note: Callable[[str], None],
) -> None:
    folder = tmp_path_factory.mktemp("r")
    url, process = start_redis(folder=folder)
    with scene(settings, url, note) as trouble:
        generations = [trouble.pipeline.generation(group) for group in range(2)]
        trouble.harm(trouble.redis.save)
        trouble.watch.await_traffic(trouble.harmed_at)
        process.kill()
        process.wait()

        trouble.mend(lambda: start_redis(folder=folder))
        assert [trouble.pipeline.generation(group) for group in range(2)] == generations


def test_a_server_that_goes_back_while_it_runs_claims_no_more_than_it_holds(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    """The same run id before and after, so only the times in the data tell."""
    url, _ = start_redis("--enable-debug-command", "yes")
    with scene(settings, url, note) as trouble:
        command: Any = trouble.redis.execute_command
        for _ in range(3):
            trouble.harm(trouble.redis.save)
            trouble.watch.await_traffic(trouble.harmed_at)
            command("DEBUG", "RELOAD", "NOSAVE")

            trouble.mend()
