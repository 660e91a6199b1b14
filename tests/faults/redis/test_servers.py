"""The server answers, but not as it should: loading, read-only, full, stopped, evicting."""

import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.conftest import StartRedis
from tests.faults.redis.scene import Scene, scene
from tests.projection.pipeline import wait_until
from truerank.model import Source
from truerank.settings import Settings

_STALE_MS = 300  # older than any answer of a pipeline that is well, here
_FOREIGN_KEYS = 100_000
_JUMP_S = 1000
_LIBFAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"


def await_stale(trouble: Scene) -> None:
    """Wait until Redis has answered, and told that nothing new comes in."""

    def told() -> bool:
        return any(
            answer.page is not None
            and answer.source is Source.PROJECTION
            and (answer.page.freshness.staleness_ms or 0) > _STALE_MS
            for answer in trouble.watch.asked_since(trouble.harmed_at)
        )

    wait_until(told, "an answer that says it is old")
    trouble.watch.await_traffic(trouble.harmed_at)


def test_a_server_that_loads_its_data_is_waited_for(
    settings: Settings,
    start_redis: StartRedis,
    tmp_path_factory: pytest.TempPathFactory,
    note: Callable[[str], None],
) -> None:
    folder = tmp_path_factory.mktemp("r")
    url, process = start_redis(folder=folder)
    with scene(settings, url, note) as trouble:
        trouble.redis.mset({f"foreign:{number}": os.urandom(2000) for number in range(500)})
        trouble.harm(trouble.redis.save)
        process.kill()
        process.wait()
        slow = ("--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024")
        starting = threading.Thread(target=start_redis, args=slow, kwargs={"folder": folder})
        starting.start()
        wait_until(lambda: is_loading(trouble.redis), "a server that loads")
        trouble.await_fallback()
        trouble.redis.config_set("key-load-delay", 0)

        trouble.mend(starting.join)


def is_loading(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.exceptions.BusyLoadingError:
        return True
    except redis.ConnectionError:
        return False
    pytest.fail("it loaded too fast to be seen")


def test_a_read_only_server_ages_and_says_so(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    url, _ = start_redis()
    with scene(settings, url, note) as trouble:
        client: Any = trouble.redis
        trouble.harm(lambda: client.replicaof("127.0.0.1", 1))
        await_stale(trouble)

        trouble.mend(lambda: client.replicaof("NO", "ONE"))


def test_a_full_server_ages_and_says_so(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    url, _ = start_redis()
    with scene(settings, url, note) as trouble:
        trouble.harm(lambda: trouble.redis.config_set("maxmemory", 1))
        await_stale(trouble)

        trouble.mend(lambda: trouble.redis.config_set("maxmemory", 0))


def test_a_server_too_full_to_be_refilled_is_answered_for_by_postgresql(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    url, _ = start_redis()
    with scene(settings, url, note) as trouble:
        trouble.redis.config_set("maxmemory", 1)
        trouble.harm(trouble.redis.flushall)
        trouble.await_fallback()

        trouble.mend(lambda: trouble.redis.config_set("maxmemory", 0))


def test_a_server_that_stands_still_is_answered_for_by_postgresql(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    url, process = start_redis()
    with scene(settings, url, note) as trouble:
        trouble.harm(lambda: process.send_signal(signal.SIGSTOP))
        trouble.await_fallback()

        trouble.mend(lambda: process.send_signal(signal.SIGCONT))


def test_a_server_that_may_evict_is_trusted_no_longer(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    url, _ = start_redis()
    with scene(settings, url, note) as trouble:
        trouble.harm(lambda: trouble.redis.config_set("maxmemory-policy", "allkeys-lru"))
        await_stale(trouble)

        trouble.mend(lambda: trouble.redis.config_set("maxmemory-policy", "noeviction"))


def test_a_server_that_evicts_boards_is_answered_for_by_postgresql(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    """It did not when the worker started."""
    url, _ = start_redis()
    with scene(settings, url, note) as trouble:
        limit = int(trouble.redis.info("memory")["used_memory"]) + 1_000_000
        trouble.redis.config_set("maxmemory-policy", "allkeys-random")
        trouble.harm(lambda: trouble.redis.config_set("maxmemory", limit))
        stop = threading.Event()
        flooding = threading.Thread(target=flood, args=(trouble.redis, stop))
        flooding.start()
        trouble.await_fallback()
        stop.set()
        flooding.join()

        def relax() -> None:
            trouble.redis.config_set("maxmemory-policy", "noeviction")
            trouble.redis.config_set("maxmemory", 0)

        trouble.mend(relax)


def flood(client: redis.Redis, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        client.mset({f"foreign:{number + i}": "x" * 1000 for i in range(100)})
        number += 100


def test_a_user_who_may_touch_nothing_else_is_enough(
    settings: Settings, start_redis: StartRedis, note: Callable[[str], None]
) -> None:
    url, _ = start_redis()
    with redis.Redis.from_url(url) as admin:
        foreign = {f"foreign:{number}".encode(): b"%d" % number for number in range(_FOREIGN_KEYS)}
        admin.mset(foreign)
        rules = ["on", ">pw", "~truerank:*", "&truerank:*", "+@all", "-@dangerous", "+info"]
        command: Any = admin.execute_command
        command("ACL", "SETUSER", "truerank", *rules)
        own_url = url.replace("unix://", "unix://truerank:pw@")
        with redis.Redis.from_url(own_url) as own:
            for forbidden in (own.flushall, own.keys, lambda: own.config_get("*")):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    forbidden()

        with scene(settings, own_url, note, admin_url=url) as trouble:
            trouble.harm(lambda: trouble.redis.delete(*keys_of_ours(admin)))
            trouble.mend()

        assert dict(zip(foreign, admin.mget(list(foreign)), strict=True)) == foreign
        assert admin.dbsize() == _FOREIGN_KEYS + len(keys_of_ours(admin))


def keys_of_ours(client: redis.Redis) -> list[bytes]:
    return list(client.scan_iter("truerank:*", count=10_000))


@pytest.fixture
def faked_clock(tmp_path: Path) -> tuple[dict[str, str], Callable[[str], None]]:
    """The environment of a server whose clock a file sets, and a function that sets it."""
    (library,) = Path("/").glob(_LIBFAKETIME.removeprefix("/"))
    file = tmp_path / "clock"

    def set_clock(offset: str) -> None:
        fresh = file.with_suffix(".new")
        fresh.write_text(offset)
        fresh.replace(file)

    set_clock("+0")
    environ = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    return environ, set_clock


@pytest.mark.system("faketime")
def test_a_clock_that_jumps_makes_no_answer_look_younger(
    settings: Settings,
    start_redis: StartRedis,
    faked_clock: tuple[dict[str, str], Callable[[str], None]],
    note: Callable[[str], None],
) -> None:
    environ, set_clock = faked_clock
    url, process = start_redis(environ=environ)
    for kept in Path("/dev/shm").glob(f"*faketime_s*_{process.pid}"):  # noqa: S108 - its place
        kept.unlink()  # the library keeps it open, and leaves it behind where it is killed
    with scene(settings, url, note) as trouble:
        for offset in ("+3600", "+0", "-3600", "+0"):
            jumped = partial(has_jumped, trouble.redis, int(trouble.redis.time()[0]))
            trouble.harm(partial(set_clock, offset))
            wait_until(jumped, "another time")
            trouble.watch.await_traffic(trouble.harmed_at)

            trouble.mend()


def has_jumped(client: redis.Redis, before_s: int) -> bool:
    return abs(int(client.time()[0]) - before_s) > _JUMP_S
