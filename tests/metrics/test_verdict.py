"""Health must not lie: what is wrong is told within seconds, with its reason and what to do."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import msgspec
import psycopg
import pytest
import redis
from psycopg import sql

import truerank
from tests.conftest import StartRedis
from tests.metrics.scrape import Numbers, asking
from tests.projection.pipeline import DEADLINE_S, Pipeline, wait_until
from truerank.cli.app import run
from truerank.local import running_worker
from truerank.projection import worker
from truerank.read.status import HeldBack, Status
from truerank.read.verdict import Expected, Verdict, judge, worst
from truerank.serve.app import create_app, create_watch_app
from truerank.settings import Settings
from truerank.telemetry.metrics import Metrics

_TOLD_MS_MAX = 10_000
EXPECTED = Expected(heartbeat_ms=1000, segment_s=28_800, outbox_bytes_max=16 << 30)
WELL = Status(
    groups=2,
    groups_live=2,
    groups_leased=2,
    workers=1,
    last_tick_age_ms=900,
    lag_ms=900,
    segment_age_ms=0,
    eviction_policy="noeviction",
    read_only=False,
)
DEGRADED: list[tuple[dict[str, Any], str]] = [
    ({"database_error": "refused", "database_error_code": "x"}, "database_away"),
    ({"database_error": "old", "database_error_code": "schema_mismatch"}, "schema_mismatch"),
    ({"read_only": True}, "database_read_only"),
    ({"redis_error": "refused"}, "redis_away"),
    ({"scripts_error": "NOPERM"}, "scripts_fail"),
    ({"eviction_policy": "allkeys-lru"}, "redis_evicts"),
    ({"workers": 0, "groups_leased": 0}, "worker_missing"),
    ({"last_tick_age_ms": 4001}, "ticks_stopped"),
    ({"last_tick_age_ms": None}, "ticks_stopped"),
    ({"stalled_groups": (1,)}, "copies_stalled"),
    ({"groups_live": 1}, "copies_missing"),
    ({"parked_rankings": 1}, "rankings_parked"),
    ({"reconciled_unrepaired": 1}, "drift_left"),
    ({"reconciled_unrepaired": 1, "reconciled_ahead": 1}, "projection_ahead"),
    ({"segment_age_ms": 2 * 28_800_000 + 1}, "ring_stuck"),
    ({"outbox_bytes": (8 << 30) + 1}, "outbox_large"),
]
LAGGING: list[tuple[dict[str, Any], str]] = [
    ({"lag_ms": 5001}, "behind"),
    ({"groups_leased": 1}, "groups_unleased"),
    ({"webhooks_disabled": 1, "deliveries_waiting": 1}, "webhook_disabled"),
    ({"delivery_oldest_age_ms": 3_600_001}, "deliveries_late"),
    ({"deliveries_parked": 1}, "deliveries_parked"),
]


@pytest.mark.parametrize(("changes", "code"), DEGRADED)
def test_each_of_these_is_degraded_and_says_what_to_do(changes: dict[str, Any], code: str) -> None:
    (problem,) = judge(replace(WELL, **changes), EXPECTED)

    assert (problem.code, problem.verdict) == (code, Verdict.DEGRADED)
    assert problem.message
    assert problem.advice


@pytest.mark.parametrize(("changes", "code"), LAGGING)
def test_what_passes_by_itself_is_lagging(changes: dict[str, Any], code: str) -> None:
    (problem,) = judge(replace(WELL, **changes), EXPECTED)

    assert (problem.code, problem.verdict) == (code, Verdict.LAGGING)


def test_the_worst_problem_comes_first_and_decides() -> None:
    problems = judge(replace(WELL, lag_ms=60_000, groups_live=1), EXPECTED)

    assert [problem.code for problem in problems] == ["copies_missing", "behind"]
    assert worst(problems) is Verdict.DEGRADED
    assert worst(judge(WELL, EXPECTED)) is Verdict.HEALTHY


def test_what_has_stopped_is_told_within_ten_seconds() -> None:
    kept_ms, look_ms_max = 1000, 3000  # as old as a look may be, and as long as it may take

    told_ms = EXPECTED.silence_ms_max + EXPECTED.heartbeat_ms + kept_ms + look_ms_max

    assert told_ms <= _TOLD_MS_MAX
    silent = replace(WELL, last_tick_age_ms=EXPECTED.silence_ms_max + 1)
    assert worst(judge(silent, EXPECTED)) is Verdict.DEGRADED


def test_a_slow_heartbeat_is_no_silence() -> None:
    slow = Expected(heartbeat_ms=60_000, segment_s=28_800, outbox_bytes_max=16 << 30)

    assert not judge(replace(WELL, last_tick_age_ms=90_000, lag_ms=90_000), slow)


@pytest.fixture
def running(settings: Settings) -> Settings:
    """Settings with which a worker runs as it usually does."""
    return msgspec.structs.replace(settings, heartbeat_ms=1000, lease_ms=3000)


@contextmanager
def stoppable(settings: Settings) -> Iterator[Callable[[], None]]:
    """A worker in a thread, which a test may end as if it hung: its leases stay."""
    stop, ready = threading.Event(), threading.Event()
    thread = threading.Thread(target=worker.run, args=(settings, stop), kwargs={"ready": ready.set})
    thread.start()

    def end() -> None:
        stop.set()
        thread.join()

    try:
        assert ready.wait(DEADLINE_S)
        yield end
    finally:
        end()


async def readiness(http: httpx.AsyncClient, expected: int, code: str | None) -> dict[str, Any]:
    """Ask until the answer has a status and a problem of this code; what it was then."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        answer = await http.get("/readyz")
        shape: dict[str, Any] = answer.json()
        codes = [problem["code"] for problem in shape.get("problems", [])]
        if answer.status_code == expected and (code in codes if code else not codes):
            return shape
        assert time.monotonic() < deadline, shape


async def test_a_healthy_installation_is_ready(running: Settings) -> None:
    with running_worker(running):
        async with asking(create_watch_app(running, Metrics())) as http:
            shape = await readiness(http, 200, None)
            same = await http.get("/health/ready")

    assert shape == same.json() == {"status": "ready", "groups": 64}


async def test_scripts_that_fail_while_ping_works_are_told_in_time(
    settings: Settings, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    running = msgspec.structs.replace(settings, redis_url=url, heartbeat_ms=1000, lease_ms=3000)
    with running_worker(running), redis.Redis.from_url(url) as admin:
        async with asking(create_watch_app(running, Metrics())) as http:
            await readiness(http, 200, None)
            admin.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval")
            shape = await readiness(http, 503, "scripts_fail")
            live = await http.get("/healthz")

    assert live.status_code == 200
    assert "permissions" in shape["message"]
    assert shape["status"] == "degraded"


async def test_writes_that_fail_in_redis_while_reads_work_are_told_in_time(
    settings: Settings, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    running = msgspec.structs.replace(settings, redis_url=url, heartbeat_ms=1000, lease_ms=3000)
    with running_worker(running), redis.Redis.from_url(url) as admin:
        async with asking(create_watch_app(running, Metrics())) as http:
            await readiness(http, 200, None)
            admin.config_set("maxmemory", "1")
            shape = await readiness(http, 503, "copies_stalled")
            admin.config_set("maxmemory", "0")
            await readiness(http, 200, None)

    assert "group" in shape["message"]


async def test_a_worker_that_has_died_is_told_in_time(running: Settings) -> None:
    with stoppable(running) as end:
        async with asking(create_watch_app(running, Metrics())) as http:
            await readiness(http, 200, None)
            end()
            shape = await readiness(http, 503, "worker_missing")
            live = await http.get("/healthz")

    assert live.status_code == 200
    assert "truerank worker" in shape["problems"][0]["advice"]


async def test_a_worker_that_hangs_with_its_leases_is_told_in_time(running: Settings) -> None:
    assert running.database_url is not None
    with stoppable(running) as end:
        async with asking(create_watch_app(running, Metrics())) as http:
            await readiness(http, 200, None)
            end()
            with psycopg.connect(running.database_url, autocommit=True) as conn:
                conn.execute(
                    "UPDATE truerank.lease SET worker = gen_random_uuid(),"
                    " expires_at = clock_timestamp() + interval '1 hour'"
                )
            await readiness(http, 503, "ticks_stopped")


async def test_a_read_only_database_is_told_in_time(running: Settings) -> None:
    assert running.database_url is not None
    with running_worker(running), psycopg.connect(running.database_url, autocommit=True) as conn:
        name = sql.Identifier(conn.info.dbname)
        async with asking(create_watch_app(running, Metrics())) as http:
            await readiness(http, 200, None)
            conn.execute(
                sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
            )
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            shape = await readiness(http, 503, "database_read_only")
            live = await http.get("/healthz")
            conn.execute("SET default_transaction_read_only = off")
            conn.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(name))

    assert live.status_code == 200
    assert shape["code"] == "database_unavailable"


async def test_a_process_that_hears_no_hints_is_told_in_time(
    settings: Settings, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    running = msgspec.structs.replace(settings, redis_url=url, heartbeat_ms=1000, lease_ms=3000)
    numbers = Metrics()
    app = create_app(running, numbers)
    with running_worker(running), redis.Redis.from_url(url) as admin:
        async with asking(app) as http, app.state.service.feed.listen(1, 0):
            await readiness(http, 200, None)
            admin.execute_command("ACL", "SETUSER", "default", "-subscribe")
            admin.client_kill_filter(_type="pubsub")
            shape = await readiness(http, 503, "hints_deaf")
            live = await http.get("/healthz")
            page = Numbers((await http.get("/metrics")).text)
            admin.execute_command("ACL", "SETUSER", "default", "+subscribe")
            await readiness(http, 200, None)

    assert live.status_code == 200
    assert "permissions" in shape["message"]
    assert page("truerank_problem", code="hints_deaf") == 1
    assert (page("truerank_errors_total", part="hints", code="projection_unavailable") or 0) > 0


async def test_many_who_ask_in_one_second_cost_one_look(running: Settings) -> None:
    assert running.database_url is not None
    with psycopg.connect(running.database_url, autocommit=True) as conn:
        conn.execute("CREATE SEQUENCE looks")
        conn.execute("GRANT USAGE ON SEQUENCE looks TO PUBLIC")
        conn.execute(
            "CREATE OR REPLACE FUNCTION truerank.installation()"
            " RETURNS TABLE (id uuid, epoch uuid, groups integer, read_only boolean)"
            " LANGUAGE sql AS $$ SELECT installation, epoch, groups::integer, nextval('looks') < 0"
            " FROM truerank.setting $$"
        )
        async with asking(create_watch_app(running, Metrics())) as http:
            began = time.monotonic()
            for _ in range(20):
                await http.get("/readyz")
                await http.get("/metrics")
            took_s = time.monotonic() - began
        (looks,) = conn.execute("SELECT last_value FROM looks").fetchone() or (0,)

    assert 1 <= looks <= 1 + took_s / 1.0


def command(settings: Settings, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", settings.database_url or "")
    monkeypatch.setenv("TRUERANK_REDIS_URL", settings.redis_url or "")
    monkeypatch.setenv("TRUERANK_PREFIX", settings.prefix)
    return run(arguments)


def test_status_says_with_its_exit_status_what_it_found(
    running: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with running_worker(running):
        healthy = command(running, "status", monkeypatch=monkeypatch), capfd.readouterr().out
    wait_until(
        lambda: command(running, "status", monkeypatch=monkeypatch) == 4, "the worker is missed"
    )
    capfd.readouterr()
    degraded = command(running, "status", "--json", monkeypatch=monkeypatch)
    shape = json.loads(capfd.readouterr().out)

    assert healthy[0] == 0
    assert healthy[1].splitlines()[0].split() == ["verdict", "healthy"]
    assert degraded == 4
    assert shape["verdict"] == "degraded"
    assert shape["problems"][0]["code"] == "worker_missing"


def test_status_shows_people_whatever_is_out_of_the_ordinary(
    running: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    odd = replace(
        WELL,
        outbox_waiting=0,
        outbox_bytes=3 << 20,
        segment=1,
        segment_bytes=(1 << 20, 2 << 20, 0, 0),
        copies_warming=2,
        copies_dead=3,
        parked_rankings=4,
        dead_rows=5,
        held_back=(
            HeldBack(kind="prepared", name="left", age_ms=1000, xids=6, held=2),
            HeldBack(kind="session", name="pid 1, psql", age_ms=11_000, xids=7, held=1),
            HeldBack(kind="slot", name="standby", age_ms=None, xids=8, held=1),
        ),
        redis_version="Valkey 9.1.2",
        redis_memory_bytes=9 << 20,
        redis_memory_max_bytes=1 << 30,
        redis_evicted_keys=8,
    )
    found = [odd, replace(odd, held_back=(replace(odd.held_back[1], age_ms=9_000),))]
    monkeypatch.setattr(truerank.Truerank, "status", lambda _: found.pop(0))

    command(running, "status", monkeypatch=monkeypatch)
    told = capfd.readouterr().out
    command(running, "status", monkeypatch=monkeypatch)
    everyday = capfd.readouterr().out

    for line in (
        "outbox            0 waiting, 3.0 MiB",
        "segments          1.0 MiB, 2.0 MiB, 0 bytes, 0 bytes; written to number 1 for 0 ms",
        "copies            2 being filled",
        "copies            3 given up, to be filled anew",
        "parked            4 rankings: see `truerank projection parked`",
        "dead rows         5 of the score table, as PostgreSQL estimates",
        "oldest prepared   left: open for 1 s, 6 transactions since its snapshot; 2 of its kind",
        "oldest session    pid 1, psql: open for 11 s, 7 transactions since its snapshot",
        "oldest slot       standby: 8 transactions since its snapshot",
        "Redis             Valkey 9.1.2 with 9.0 MiB of 1.0 GiB and 8 keys evicted since its start",
    ):
        assert " ".join(line.split()) in [" ".join(each.split()) for each in told.splitlines()]
    assert "oldest" not in everyday


def test_status_tells_of_a_database_that_is_away_instead_of_failing(
    running: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gone = "postgresql://ada:secret@127.0.0.1:1/none?connect_timeout=2"
    away = msgspec.structs.replace(running, database_url=gone)
    monkeypatch.setenv("TRUERANK_DATABASE_TIMEOUT_MS", "200")

    status = command(away, "status", monkeypatch=monkeypatch)

    said = capfd.readouterr()
    assert status == 4
    assert "PostgreSQL  does not answer" in said.out
    assert "secret" not in said.out + said.err


def test_a_store_that_lags_is_lagging(
    single: Pipeline, watcher: truerank.Truerank, monkeypatch: pytest.MonkeyPatch
) -> None:
    projector = single.projector()
    single.settle(projector)
    meta = single.keys().generation(single.generation() or "").meta
    single.redis.hset(meta, "through", "2026-01-01T00:00:00+00:00")

    found = watcher.status()

    assert [problem.code for problem in found.problems] == ["behind"]
    assert command(single.settings, "status", monkeypatch=monkeypatch) == 3
