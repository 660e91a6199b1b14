"""All kinds of trouble with Redis in random order, some of them at once."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.conftest import StartRedis
from tests.faults.redis.scene import Scene, scene
from truerank.settings import Settings

_LASTS_S = 60.0
_AT_ONCE_MAX = 3


@dataclass(slots=True)
class Server:
    """A server that ends and comes back, with what it saved last."""

    start_redis: StartRedis
    folder: Path
    process: subprocess.Popen[bytes]

    def restart(self) -> None:
        self.process.kill()
        self.process.wait()
        _, self.process = self.start_redis(folder=self.folder)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


def troubles(
    trouble: Scene, server: Server
) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """What harms, and what mends it; by name."""
    client: Any = trouble.redis

    def lose_a_key() -> None:
        if name := client.randomkey():
            client.delete(name)

    def garble_a_key() -> None:
        if name := client.randomkey():
            client.delete(name)
            client.rpush(name, "x")

    return {
        "refuse": (trouble.proxy.refuse, trouble.proxy.mend),
        "hold": (trouble.proxy.hold, trouble.proxy.mend),
        "swallow replies": (trouble.proxy.swallow_replies, trouble.proxy.mend),
        "lose a reply": (lambda: trouble.proxy.lose_reply(b"EVALSHA"), trouble.proxy.mend),
        "cut": (trouble.proxy.cut, nothing),
        "flush": (client.flushall, nothing),
        "forget scripts": (client.script_flush, nothing),
        "lose a key": (lose_a_key, nothing),
        "garble a key": (garble_a_key, nothing),
        "save": (client.save, nothing),
        "restart": (server.restart, nothing),
        "stand still": (server.stop, server.go_on),
        "full": (
            lambda: client.config_set("maxmemory", 1),
            lambda: client.config_set("maxmemory", 0),
        ),
        "read-only": (
            lambda: client.replicaof("127.0.0.1", 1),
            lambda: client.replicaof("NO", "ONE"),
        ),
    }


def nothing() -> None:
    return None


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_no_trouble_in_any_order_makes_an_answer_lie(
    settings: Settings,
    start_redis: StartRedis,
    tmp_path_factory: pytest.TempPathFactory,
    note: Callable[[str], None],
) -> None:
    seed = int(os.environ.get("TRUERANK_TEST_SEED") or random.randrange(2**32))
    note(f"TRUERANK_TEST_SEED={seed}")
    dice = random.Random(seed)
    folder = tmp_path_factory.mktemp("r")
    url, process = start_redis(folder=folder)
    server = Server(start_redis, folder, process)
    with scene(settings, url, note) as trouble:
        known = troubles(trouble, server)
        until = time.monotonic() + _LASTS_S
        while time.monotonic() < until:
            names = dice.sample(sorted(known), dice.randint(1, _AT_ONCE_MAX))
            if "stand still" in names:
                names = ["stand still"]  # nothing else can be done to it meanwhile
            since = time.monotonic()
            for name in names:
                # One harm may stand in the way of the next: nothing is written to a full server.
                with suppress(redis.ResponseError):
                    known[name][0]()
            trouble.watch.await_traffic(since)
            for name in reversed(names):
                known[name][1]()
            trouble.harmed_at = since
            trouble.mend()
