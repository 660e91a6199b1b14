"""Any number of workers: two on one group are harmless, and one that goes leaves nothing behind."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.projection.pipeline import (
    Believer,
    Pipeline,
    differences,
    submit_and_wait,
    wait_until,
    working,
)
from truerank.errors import ProjectionUnavailable
from truerank.local import running_worker
from truerank.model import Source
from truerank.outbox.leases import Worker
from truerank.outbox.ticks import take_tick
from truerank.projection import worker
from truerank.projection.copies import Copies, cursor_text
from truerank.projection.link import Link
from truerank.projection.projector import Projector
from truerank.settings import Settings
from truerank.steps import ScriptCall

HOUR_MS = 3_600_000
TAKEOVER_S_MAX = 3.0  # ten times the lease of the test: machines are slow at times


class RefusedLink(Link):
    """Somebody else has always just changed the copy that a batch is for."""

    interferes = True

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        for call in calls:
            if call.script == "apply" and self.interferes:
                cursor = str(call.args[2])
                self.command("HSET", call.keys[1], "pending", f"{cursor}|{random.getrandbits(30)}")
        return super().calls(calls)


def holder_ids(pipeline: Pipeline) -> set[Any]:
    rows = pipeline.conn.execute("SELECT DISTINCT worker FROM truerank.lease").fetchall()
    return {holder for (holder,) in rows}


def project_without_lease(settings: Settings, seed: int, stop: threading.Event) -> None:
    """Project as a worker that never learns that another one has the lease."""
    rng = random.Random(seed)
    link = Link(str(settings.redis_url), timeout_ms=5000)
    with worker.connect(str(settings.database_url)) as conn:
        projector = Projector(conn, link, settings, Believer.new(1000))
        while not stop.is_set():
            try:
                projector.step()
            except ProjectionUnavailable:
                projector.interrupt()  # a copy that the other one has just retired
            if rng.random() < 0.05:
                projector = Projector(conn, link, settings, Believer.new(1000))
    link.close()


@contextmanager
def two_without_lease(settings: Settings) -> Iterator[None]:
    """Two workers at the same time; what one of them fails with is raised at the end."""
    stop = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        working = [threads.submit(project_without_lease, settings, n, stop) for n in range(2)]
        try:
            yield
        finally:
            stop.set()
        for each in working:
            each.result()


def test_two_workers_at_the_same_time_on_one_group_are_harmless(single: Pipeline) -> None:
    """Both fill, apply and switch at once, also after everything was lost."""
    single.submit("b", {f"m{i}": i for i in range(9)})
    settings = msgspec.structs.replace(
        single.settings, call_rows_max=2, scan_rows_max=3, heartbeat_ms=20
    )
    rng = random.Random(5)
    seen: dict[str, int] = {}
    with two_without_lease(settings):
        for n in range(40):
            if n % 10 == 3:
                single.redis.flushdb()
                seen = {}
            receipts = single.submit("b", {f"m{rng.randrange(9)}": 1 for _ in range(4)})
            if n % 5 == 0:
                token = receipts[-1].token
                assert token is not None
                single.client.wait_visible(token, ["b"], timeout_s=30)
            page = single.client.top("b", limit=100)
            now = {entry.member: int(entry.score) for entry in page.entries}
            assert all(now.get(m, -1) >= score for m, score in seen.items()), "it went back"
            seen = now if page.freshness.source is Source.PROJECTION else {}

    single.settle(single.projector(heartbeat_ms=1))


def test_one_that_is_refused_and_has_no_lease_any_more_stops(single: Pipeline) -> None:
    late = single.projector()
    single.settle(late)
    heir = single.projector()
    single.settle(heir)
    single.submit("b", {"ann": 1})
    heir.step()
    single.submit("b", {"ann": 1})

    late.step()  # refused, and then without a group
    single.submit("b", {"ann": 1})
    before = single.meta()
    for _ in range(5):
        assert late.step() is False

    assert single.meta() == before
    assert heir.step() is True
    single.settle(heir)


def test_one_that_is_refused_and_has_its_lease_goes_on(single: Pipeline) -> None:
    link: RefusedLink = single.link(RefusedLink)
    link.interferes = False
    projector = single.projector(link)
    single.settle(projector)
    link.interferes = True
    single.submit("b", {"ann": 1})
    projector.step()
    assert not projector.whole

    link.interferes = False
    wait_until(lambda: projector.step() or projector.whole, "the end of a pause")
    single.settle(projector)


def test_a_group_refused_for_too_long_is_left_to_another_worker_for_a_while(
    single: Pipeline,
) -> None:
    link: RefusedLink = single.link(RefusedLink)
    link.interferes = False
    mine = Worker.new(HOUR_MS)
    projector = single.projector(link, mine, stuck_ms=1, rest_ms=HOUR_MS)
    single.settle(projector)
    assert holder_ids(single) == {mine.id}

    link.interferes = True
    single.submit("b", {"ann": 1})

    def is_free() -> bool:
        projector.step()
        return holder_ids(single) == {None}

    wait_until(is_free, "a free lease")

    assert mine.renew(single.conn) == set(), "it rests"
    assert projector.step() is False
    heir = Worker.new(HOUR_MS)
    assert heir.renew(single.conn) == {0}


def test_without_refusals_in_a_row_nothing_is_given_up(single: Pipeline) -> None:
    link: RefusedLink = single.link(RefusedLink)
    link.interferes = False
    mine = Worker.new(HOUR_MS)
    projector = single.projector(link, mine, stuck_ms=400, rest_ms=HOUR_MS)
    single.settle(projector)
    began = time.monotonic()

    while time.monotonic() < began + 1.0:
        link.interferes = True
        single.submit("b", {"ann": 1})
        projector.step()
        link.interferes = False
        wait_until(lambda: projector.step() or projector.whole, "the end of a pause")

    assert holder_ids(single) == {mine.id}


def test_a_worker_told_to_stop_shows_what_is_committed_and_lets_go(single: Pipeline) -> None:
    settings = msgspec.structs.replace(single.settings, tick_idle_ms=HOUR_MS, tick_busy_ms=HOUR_MS)
    with working(settings):
        wait_until(single.generation, "a live copy")  # and now it waits for an hour
        single.submit("b", {f"m{i}": 1 for i in range(100)})

    assert differences(single) == []
    assert holder_ids(single) == {None}


def test_a_worker_says_once_that_it_is_ready(single: Pipeline) -> None:
    settings = msgspec.structs.replace(single.settings, tick_idle_ms=1, heartbeat_ms=1)
    said: list[int] = []
    with working(settings, ready=lambda: said.append(1)):
        wait_until(lambda: said, "a live copy")
        tick = int(single.meta()["tick"])
        wait_until(lambda: int(single.meta()["tick"]) > tick + 5, "more steps")
    assert said == [1]


def test_draining_is_bounded_where_redis_stalls(single: Pipeline, start_redis: StartRedis) -> None:
    url, process = start_redis()
    settings = msgspec.structs.replace(
        single.settings, redis_url=url, redis_timeout_ms=200, drain_ms=300, tick_idle_ms=5
    )
    with running_worker(settings):
        process.send_signal(signal.SIGSTOP)
        single.submit("b", {"ann": 1})
        began = time.monotonic()
    took_s = time.monotonic() - began
    process.send_signal(signal.SIGCONT)

    assert took_s < 20
    assert holder_ids(single) == {None}


def worker_process(settings: Settings, **environ: str) -> subprocess.Popen[bytes]:
    """`truerank worker` as a process of its own."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TRUERANK_")}
    return subprocess.Popen(
        [sys.executable, "-m", "truerank", "--log-level", "error", "worker"],
        env=kept
        | {
            "TRUERANK_DATABASE_URL": str(settings.database_url),
            "TRUERANK_REDIS_URL": str(settings.redis_url),
            "TRUERANK_TICK_IDLE_MS": "5",
        }
        | environ,
        stdout=subprocess.DEVNULL,
    )


def test_a_worker_process_ends_on_sigterm_with_everything_shown_and_no_lease(
    several: Pipeline,
) -> None:
    with worker_process(several.settings) as process:
        try:
            submit_and_wait(several, ["b0", "b1", "b2"])
            for group in range(3):
                several.submit(f"b{group}", {f"m{i}": i for i in range(50)})
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()

    assert differences(several) == []
    assert holder_ids(several) == {None}
    assert several.conn.execute("SELECT count(*) FROM truerank.worker").fetchone() == (0,)


def test_a_worker_killed_with_nine_is_replaced_within_seconds(several: Pipeline) -> None:
    settings = msgspec.structs.replace(several.settings, lease_ms=300, tick_idle_ms=5)
    process = worker_process(settings, TRUERANK_LEASE_MS="300")
    try:
        submit_and_wait(several, ["b0", "b1", "b2"])
        (killed,) = holder_ids(several)
        with running_worker(settings):
            wait_until(lambda: len(holder_ids(several)) == 2, "groups that are shared")
            process.kill()
            process.wait()
            began = time.monotonic()
            wait_until(lambda: killed not in holder_ids(several), "an heir")
            took_s = time.monotonic() - began
            submit_and_wait(several, ["b0", "b1", "b2"])
    finally:
        process.kill()
        process.wait()
    assert took_s < TAKEOVER_S_MAX


@pytest.mark.parametrize("lease_ms", [300, Settings().lease_ms])
def test_a_lease_and_the_look_of_an_heir_fit_into_the_time_of_a_takeover(
    several: Pipeline, lease_ms: int
) -> None:
    mine = Worker.new(lease_ms)
    mine.renew(several.conn)
    ((left_ms,),) = several.conn.execute(
        """SELECT extract(epoch FROM max(expires_at) - clock_timestamp())::float8 * 1000
           FROM truerank.lease"""
    ).fetchall()

    assert 0 < left_ms <= lease_ms * 0.9 - mine.renew_every_s * 1000
    assert mine.renew_every_s * 1000 * 5 < lease_ms, "a late renewal loses nothing"
    assert Settings().lease_ms <= 3000


def test_the_tick_that_covers_a_copy_never_becomes_an_older_one(single: Pipeline) -> None:
    """Of two workers the one with the older tick may come last."""
    link = single.link()
    copies = Copies(link, single.settings.prefix)
    ticks = [take_tick(single.conn, since=None, anyway=True) for _ in range(3)]
    first, second, third = (tick for tick in ticks if tick is not None)
    (copy,) = copies.begin(single.conn, [0], "0" * 32, first)
    keys = copies.keys(0, copy.generation)

    def fill(scan: str, after: str, covered: str) -> Any:
        return link.call(
            ScriptCall(
                "fill",
                [keys.meta, keys.counts, keys.members],
                [copy.epoch, scan, after, covered, ""],
            )
        )[0]

    assert fill("", "p1", f"{third.id}:{third.nonce}")[0] == 1
    applied = link.call(
        ScriptCall(
            "apply",
            [copies.group(0).pointer, keys.meta, keys.counts, keys.members],
            [
                *(copy.epoch, copy.generation, copy.cursor, ""),
                *(f"{cursor_text(second, second.snapshot)}|1", f"{second.id}:{second.nonce}"),
                *("hints", "PUBLISH", 0),
            ],
        )
    )[0]
    assert applied[0] == 1
    assert single.redis.hget(keys.meta, "covered") == f"{third.id}:{third.nonce}".encode()
    fill("p1", "p2", f"{second.id}:{second.nonce}")
    assert single.redis.hget(keys.meta, "covered") == f"{third.id}:{third.nonce}".encode()
