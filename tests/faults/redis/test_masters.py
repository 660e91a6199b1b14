"""Servers that follow one another: a replica takes over, and the former master lives on."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

import truerank
from tests.conftest import StartRedis
from tests.faults.proxy import Proxy
from tests.faults.redis.scene import scene
from tests.faults.watching import BUSY, Way
from tests.projection.pipeline import wait_until
from truerank.local import running_worker
from truerank.settings import Settings

_SLEW_MS = 10


class Servers:
    """Two servers, of which one replicates the other where a test says so."""

    def __init__(self, start_redis: StartRedis, program: str | None) -> None:
        self.ports = [_free_port() for _ in range(2)]
        self.urls = [
            start_redis("--bind", "127.0.0.1", "--port", str(port), program=program)[0]
            for port in self.ports
        ]
        self.clients = [redis.Redis.from_url(url) for url in self.urls]
        for client in self.clients:
            client.config_set("repl-diskless-sync-delay", 0)

    def follow(self, replica: int) -> None:
        """Make one a replica of the other, and wait until it holds the same."""
        client: Any = self.clients[replica]
        client.replicaof("127.0.0.1", self.ports[1 - replica])
        wait_until(lambda: client.info("replication")["master_link_status"] == "up", "a replica")

    def leave_behind(self, replica: int) -> None:
        """Let a replica hear nothing any more, and keep what it has."""
        client: Any = self.clients[replica]
        client.replicaof("127.0.0.1", 1)

    def promote(self, replica: int, proxy: Proxy) -> None:
        """Make a replica a master of its own, to which the clients' address leads from now on."""
        client: Any = self.clients[replica]
        client.replicaof("NO", "ONE")
        proxy.upstream = Path(self.urls[replica].removeprefix("unix://"))
        proxy.cut()


@pytest.fixture
def servers(start_redis: StartRedis, request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Two servers, of another program where a test names it; the second replicates the first."""
    made = Servers(start_redis, getattr(request, "param", None))
    made.follow(1)
    yield made
    for client in made.clients:
        client.close()


@pytest.mark.parametrize(
    "servers",
    [None, pytest.param("redis-server", marks=pytest.mark.system("redis-server"))],
    indirect=True,
)
def test_a_failover_to_a_replica_left_behind_loses_nothing(
    settings: Settings, servers: Servers, note: Callable[[str], None]
) -> None:
    """Each transaction takes several calls, so that some failovers come between two of them."""
    settings = msgspec.structs.replace(settings, call_rows_max=1)
    with scene(settings, servers.urls[0], note) as trouble:
        for replica in (1, 0, 1):
            trouble.harm(partial(servers.leave_behind, replica))
            trouble.watch.await_traffic(trouble.harmed_at)

            trouble.mend(partial(servers.promote, replica, trouble.proxy))
            servers.follow(1 - replica)
        trouble.pipeline.redis = servers.clients[1]


def test_who_still_reads_the_former_master_is_told_how_old_the_answers_are(
    settings: Settings, servers: Servers, note: Callable[[str], None]
) -> None:
    former = msgspec.structs.replace(settings, redis_url=servers.urls[0], redis_timeout_ms=10_000)
    with scene(settings, servers.urls[0], note) as trouble, truerank.Truerank(former) as left:
        servers.leave_behind(1)
        trouble.harm(partial(servers.promote, 1, trouble.proxy))
        for _ in range(3):
            for way in Way:
                trouble.watch.ask(left, BUSY, way)
        trouble.mend()

        before = trouble.watch.ask(left, BUSY, Way.ANY).page
        since = time.monotonic()
        trouble.watch.await_traffic(since)
        elapsed_ms = (time.monotonic() - since) * 1000
        after = trouble.watch.ask(left, BUSY, Way.ANY).page

        assert before is not None
        assert after is not None
        assert after.freshness.tick == before.freshness.tick
        assert after.entries == before.entries
        assert before.freshness.staleness_ms is not None
        assert after.freshness.staleness_ms is not None
        aged_ms = after.freshness.staleness_ms - before.freshness.staleness_ms
        assert aged_ms > elapsed_ms - _SLEW_MS
        trouble.pipeline.redis = servers.clients[1]


def test_a_worker_left_with_the_former_master_harms_nobody_on_the_new_one(
    settings: Settings, servers: Servers, note: Callable[[str], None]
) -> None:
    former = msgspec.structs.replace(settings, redis_url=servers.urls[0])
    with scene(settings, servers.urls[0], note) as trouble, truerank.Truerank(former) as left:
        servers.leave_behind(1)
        trouble.harm(partial(servers.promote, 1, trouble.proxy))
        with running_worker(former):
            for _ in range(3):
                began = time.monotonic()
                trouble.watch.await_traffic(began)
                trouble.watch.ask(left, BUSY, Way.ANY)

        trouble.mend()
        trouble.pipeline.redis = servers.clients[1]


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
