"""The outbox is kept small whatever becomes of Redis: nothing of that waits for it."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank import upkeep
from truerank.local import running_worker
from truerank.settings import Settings

SCORES = {f"m{number}": number for number in range(50)}
Server = subprocess.Popen[bytes]


@pytest.fixture
def settings(database_url: str) -> Settings:
    """Segments and copies that are old after a second; no Redis is there."""
    return Settings(
        database_url=database_url,
        redis_url="redis://127.0.0.1:1",
        board_cache_ms=1,
        tick_idle_ms=5,
        heartbeat_ms=20,
        redis_timeout_ms=200,
        segment_s=1,
        dead_s=1,
    )


@pytest.fixture
def server(start_redis: StartRedis, tmp_path: Path) -> tuple[str, Server]:
    return start_redis(folder=tmp_path)


@pytest.fixture
def pipe(settings: Settings, server: tuple[str, Server]) -> Iterator[Pipeline]:
    """One group with a board `b`, on a Redis server of this test's own."""
    with pipeline(msgspec.structs.replace(settings, redis_url=server[0]), groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        made.submit("b", SCORES)
        yield made


def outbox_rows(pipe: Pipeline) -> int:
    ((rows,),) = pipe.conn.execute("SELECT count(*) FROM truerank.outbox").fetchall()
    return int(rows)


def kill(process: Server) -> None:
    process.kill()
    process.wait()


def stand_still(process: Server) -> None:
    process.send_signal(signal.SIGSTOP)


@pytest.mark.parametrize("harm", [kill, stand_still])
def test_the_outbox_is_emptied_though_redis_stays_away_and_a_new_copy_is_filled_after(
    pipe: Pipeline,
    server: tuple[str, Server],
    harm: Callable[[Server], None],
    start_redis: StartRedis,
    tmp_path: Path,
) -> None:
    _, process = server
    with running_worker(pipe.settings):
        wait_until(lambda: not differences(pipe), "both stores agree")
        before = pipe.generation()
        harm(process)
        pipe.submit("b", SCORES)  # which no copy will ever read

        wait_until(lambda: outbox_rows(pipe) == 0, "the outbox is empty")

        assert pipe.conn.execute("SELECT state FROM truerank.generation").fetchall() == [("dead",)]
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
        else:
            start_redis(folder=tmp_path)
        wait_until(lambda: pipe.generation() not in {None, before}, "a new copy")
        wait_until(lambda: not differences(pipe), "both stores agree")


def test_the_ring_turns_though_there_was_no_redis_from_the_start(settings: Settings) -> None:
    with pipeline(settings, groups=1) as pipe:

        def segment() -> Any:
            return pipe.conn.execute("SELECT segment FROM truerank.ring").fetchone()

        stop = threading.Event()
        chores = threading.Thread(target=upkeep.run, args=(settings, stop))
        chores.start()
        try:
            wait_until(lambda: segment() != (0,), "the ring turns")
        finally:
            stop.set()
            chores.join()
