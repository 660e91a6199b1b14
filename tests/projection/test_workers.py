"""Any number of workers: two on one group are harmless, and one that goes leaves nothing behind."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.projection.pipeline import Believer, Pipeline, differences, wait_until
from truerank.errors import (
    DatabaseUnavailable,
    ProjectionUnavailable,
    ProjectionUnsafe,
    SourceSuperseded,
)
from truerank.local import running_worker
from truerank.model import Source
from truerank.outbox.leases import Worker
from truerank.outbox.ticks import take_tick
from truerank.projection import worker
from truerank.projection.copies import Copies, cursor_text
from truerank.projection.link import Link
from truerank.projection.worker import Projector
from truerank.settings import Settings
from truerank.steps import ScriptCall
from truerank.telemetry.meter import Meter

HOUR_MS = 3_600_000


class RefusedLink(Link):
    """Somebody else has always just changed the copy that a batch is for."""

    interferes = True

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        for call in calls:
            if call.script == "apply" and self.interferes:
                cursor = str(call.args[2])
                self.command("HSET", call.keys[1], "pending", f"{cursor}|{random.getrandbits(30)}")
        return super().calls(calls)


class OtherServerLink(Link):
    """Says that it reached another server, as after a failover that cut no connection."""

    run_id: str | None = None

    def clock(self) -> tuple[int, str | None]:
        now_us, run_id = super().clock()
        return now_us, self.run_id or run_id


class Failures(Meter):
    """The codes of what the worker could not do."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def failed(self, part: str, code: str) -> None:
        assert part == "worker"
        self.codes.append(code)


@contextmanager
def run(settings: Settings, meter: Meter | None = None) -> Iterator[threading.Event]:
    """A worker in a thread; gives what tells it to stop."""
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(settings, stop), kwargs={"meter": meter})
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join()


def holder_ids(pipeline: Pipeline) -> set[Any]:
    rows = pipeline.conn.execute("SELECT DISTINCT worker FROM truerank.lease").fetchall()
    return {holder for (holder,) in rows}


def submit_and_wait(pipeline: Pipeline, boards: Sequence[str]) -> None:
    for board in boards:
        (receipt,) = pipeline.submit(board, {"ann": 1})
        assert receipt.token is not None
        pipeline.client.wait_visible(receipt.token, [board], timeout_s=30)


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
    with run(settings) as stop:
        wait_until(single.generation, "a live copy")  # and now it waits for an hour
        single.submit("b", {f"m{i}": 1 for i in range(100)})
        assert stop.is_set() is False

    assert differences(single) == []
    assert holder_ids(single) == {None}


def test_a_worker_says_once_that_it_is_ready(single: Pipeline) -> None:
    settings = msgspec.structs.replace(single.settings, tick_idle_ms=1, heartbeat_ms=1)
    stop, said = threading.Event(), list[int]()
    thread = threading.Thread(
        target=worker.run, args=(settings, stop), kwargs={"ready": lambda: said.append(1)}
    )
    thread.start()
    try:
        wait_until(lambda: said, "a live copy")
        tick = int(single.meta()["tick"])
        wait_until(lambda: int(single.meta()["tick"]) > tick + 5, "more steps")
    finally:
        stop.set()
        thread.join()
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


def test_a_worker_killed_with_nine_is_replaced_and_the_time_is_told(
    several: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
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
            took_ms = (time.monotonic() - began) * 1000
            submit_and_wait(several, ["b0", "b1", "b2"])
    finally:
        process.kill()
        process.wait()
    with capsys.disabled():
        sys.stdout.write(f" [taken over after {took_ms:.0f} ms, 300 allowed]")


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


def set_source(single: Pipeline, text: str) -> None:
    generation = single.generation()
    assert generation is not None
    single.redis.hset(single.keys().generation(generation).meta, "source", text)


def test_of_two_primaries_the_worker_of_the_older_one_leaves_everything_as_it_is(
    single: Pipeline,
) -> None:
    """The copy is even of another epoch, which else would be thrown away."""
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    cluster, timeline = single.meta()["source"].split(":")
    set_source(single, f"{cluster}:{int(timeline) + 1}")
    generation = single.generation()
    assert generation is not None
    single.redis.hset(single.keys().generation(generation).meta, "epoch", "0" * 32)
    before = single.meta()

    superseded = single.projector()
    with pytest.raises(SourceSuperseded, match="two primaries"):
        superseded.step()

    assert single.meta() == before
    assert single.generation() == generation


@pytest.mark.parametrize("source", ["1234567890:99", "garbled", "", ":", "x:y"])
def test_another_cluster_or_nonsense_supersedes_nobody(single: Pipeline, source: str) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    own = single.meta()["source"]
    set_source(single, source)

    single.settle(single.projector())

    assert single.meta()["source"] == own


def test_a_superseded_worker_goes_on_by_itself_once_it_is_the_newer_one(single: Pipeline) -> None:
    settings = msgspec.structs.replace(single.settings, tick_idle_ms=5)
    single.settle(single.projector())
    single.free_leases()
    own = single.meta()["source"]
    set_source(single, own.split(":")[0] + ":99")
    meter = Failures()

    with run(settings, meter):
        wait_until(lambda: SourceSuperseded.code in meter.codes, "an alarm")
        set_source(single, own)
        submit_and_wait(single, ["b"])
    assert set(meter.codes) <= {SourceSuperseded.code, DatabaseUnavailable.code}


def test_a_server_that_comes_to_evict_is_left_alone_until_it_does_not(
    single: Pipeline, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    single.settings = msgspec.structs.replace(
        single.settings, redis_url=url, heartbeat_ms=20, tick_idle_ms=5
    )
    link = Link(url, timeout_ms=5000)
    meter = Failures()
    with run(single.settings, meter):
        wait_until(lambda: link.command("KEYS", "*:live"), "a live copy")
        link.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        wait_until(lambda: ProjectionUnsafe.code in meter.codes, "an alarm")
        single.submit("b", {"ann": 1})
        seen = len(meter.codes)
        wait_until(lambda: len(meter.codes) > seen + 2, "more alarms")
        assert link.command("KEYS", "*:z") == []

        link.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        wait_until(lambda: link.command("KEYS", "*:z"), "the score")
    link.close()


def test_another_server_is_not_trusted_with_what_the_one_before_knew(single: Pipeline) -> None:
    """It may lack what was written last: here the mark of a ranking that is left out."""
    link: OtherServerLink = single.link(OtherServerLink)
    projector = single.projector(link)
    single.submit("b", {"ann": 1})
    single.settle(projector)
    (number,) = single.rankings()
    single.conn.execute(
        """INSERT INTO truerank.parked_standing (ranking, grp, reason, retry_at)
           VALUES (%s, 0, 'made up', clock_timestamp() + interval '1 hour')""",
        (number,),
    )
    heir = single.projector(link)
    heir.step()
    assert single.client.top("b").freshness.source is Source.DATABASE
    generation = single.generation()
    assert generation is not None
    counts = single.keys().generation(generation).counts
    single.redis.hset(counts, str(number), "1 0 0")

    link.run_id = "another"
    heir.step()

    assert single.redis.hget(counts, str(number)) == b"damaged"
    assert single.client.top("b").freshness.source is Source.DATABASE


def test_a_worker_alarms_at_once_where_the_server_after_a_failover_may_evict(
    single: Pipeline, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    link = OtherServerLink(url, timeout_ms=5000)
    projector = single.projector(link)
    projector.step()
    link.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert projector.step() is False, "no heartbeat is due for an hour"

    link.run_id = "another"
    with pytest.raises(ProjectionUnsafe, match="allkeys-lru"):
        projector.step()
    link.close()


class CountingLink(Link):
    """The longest batch of commands, and how many there were."""

    longest = 0
    sent = 0

    def try_commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        self.longest = max(self.longest, len(commands))
        self.sent += len(commands)
        return super().try_commands(commands)


def test_a_large_copy_is_retired_in_slices(single: Pipeline) -> None:
    link: CountingLink = single.link(CountingLink)
    projector = single.projector(link, heartbeat_ms=1)
    single.submit("b", {"ann": 1})
    single.settle(projector)
    stem = single.keys().generation("0" * 32)
    rankings = range(1 << 40, (1 << 40) + 3000)
    with single.redis.pipeline(transaction=False) as pipe:
        for ranking in rankings:
            pipe.zadd(stem.places(ranking), {"x": 0})
            pipe.hset(stem.shown(ranking), "x", "y")
            pipe.hset(stem.counts, str(ranking), "1 0 0")
        pipe.hset(stem.meta, "epoch", "of before")
        pipe.execute()
    single.conn.execute(
        """INSERT INTO truerank.generation (id, grp, epoch, state, cursor_tick, cursor_snapshot)
           SELECT %s, 0, s.epoch, 'warming', 1, pg_current_snapshot() FROM truerank.setting AS s""",
        ("0" * 32,),
    )
    link.longest = 0

    heir = single.projector(link, heartbeat_ms=1)
    heir.step()
    assert single.redis.exists(stem.meta) == 0
    left: Any = single.redis.hlen(stem.counts)
    assert left > 1000, "not in one go"
    for _ in range(20):
        before: Any = single.redis.hlen(stem.counts)
        heir.step()
        now: Any = single.redis.hlen(stem.counts)
        assert before - now <= 600

    single.settle(heir)
    assert link.longest <= 1100


def test_a_copy_half_retired_is_finished_by_the_next_worker(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    stem = single.keys().generation("0" * 32)
    for ranking in range(5):
        single.redis.zadd(stem.places(ranking), {"x": 0})
        single.redis.hset(stem.counts, str(ranking), "1 0 0")
    single.conn.execute(
        """INSERT INTO truerank.generation (id, grp, epoch, state, cursor_tick, cursor_snapshot)
           SELECT %s, 0, s.epoch, 'retired', 1, pg_current_snapshot() FROM truerank.setting AS s""",
        ("0" * 32,),
    )

    single.settle(single.projector())


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


def lose(key: str) -> Callable[[Pipeline], None]:
    def act(single: Pipeline) -> None:
        generation = single.generation()
        assert generation is not None
        copy = single.keys().generation(generation)
        (number,) = single.rankings()
        names = {
            "places": [copy.places(number)],
            "shown": [copy.shown(number)],
            "counts": [copy.counts],
            "everything of it": [copy.places(number), copy.shown(number), copy.counts],
        }[key]
        assert single.redis.delete(*names) == len(names)

    return act


@pytest.mark.parametrize("key", ["places", "shown", "counts", "everything of it"])
def test_a_ranking_nobody_writes_to_is_mended_too(single: Pipeline, key: str) -> None:
    single.submit("b", {"ann": 1, "bob": 2})
    projector = single.projector(heartbeat_ms=1)
    single.settle(projector)

    lose(key)(single)

    single.settle(projector)
    assert single.client.top("b").freshness.source is Source.PROJECTION


def test_a_mark_of_damage_that_a_worker_left_is_mended_by_the_next(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    generation = single.generation()
    assert generation is not None
    (number,) = single.rankings()
    single.redis.hset(single.keys().generation(generation).counts, str(number), "damaged")

    single.settle(single.projector(heartbeat_ms=1))
