"""What a process counts: each number moves when that happens which it counts, and only then."""

import asyncio
import threading
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import httpx
import msgspec
import pytest

import truerank
from tests.conftest import StartRedis
from tests.http.stand import until
from tests.metrics.scrape import Numbers, asking, counted
from tests.projection.pipeline import Pipeline, wait_until
from truerank import aio
from truerank.deliver.deliverer import Deliverer
from truerank.errors import EventConflict, EventRefused, ProjectionUnavailable
from truerank.outbox.retention import Retention
from truerank.projection import worker
from truerank.projection.link import Link
from truerank.serve.app import create_app, create_watch_app
from truerank.serve.server import run_server
from truerank.settings import Settings
from truerank.telemetry.metrics import Metrics

Counting = tuple[Metrics, Callable[[], Numbers]]


@pytest.fixture
def counting() -> Counting:
    numbers = Metrics()
    return numbers, lambda: counted(numbers)


def test_a_worker_counts_its_ticks_batches_calls_leases_and_turns(
    single: Pipeline, counting: Counting
) -> None:
    numbers, now = counting
    assert single.settings.redis_url is not None
    link = Link(single.settings.redis_url, timeout_ms=5000, meter=numbers)
    projector = single.projector(link)
    single.settle(projector)
    Retention(single.settings).keep(single.conn, numbers)
    before = now()
    single.submit("b", {"ann": 1, "bob": 2})

    single.settle(projector)

    after = now()
    assert before("truerank_leases_held_groups") == 1
    assert before("truerank_ring_turns_total", outcome="fresh") == 1
    assert before("truerank_script_calls_total", script="switch", reply="switched") == 1
    for name, labels, least in (
        ("truerank_ticks_total", {}, 1),
        ("truerank_batch_standings_sum", {}, 2),
        ("truerank_batch_standings_count", {}, 1),
        ("truerank_script_calls_total", {"script": "apply", "reply": "applied"}, 1),
        ("truerank_redis_call_seconds_count", {"call": "apply"}, 1),
        ("truerank_redis_call_seconds_sum", {"call": "apply"}, 0.000001),
    ):
        assert (after(name, **labels) or 0) >= (before(name, **labels) or 0) + least, name
    assert after("truerank_batch_standings_sum") == 2
    projector.release()
    assert now()("truerank_leases_held_groups") == 0
    link.close()


def test_an_attempt_to_deliver_is_counted_by_how_it_ended(
    single: Pipeline, counting: Counting
) -> None:
    numbers, now = counting
    by: Any = {"actor": "op", "reason": "test"}
    single.client.add_webhook("w", "https://127.0.0.1:9/", ["event.voided"], **by)
    single.client.test_webhook("w", timeout_s=0)
    settings = msgspec.structs.replace(single.settings, webhook_attempts_max=1)

    Deliverer(settings).deliver(single.conn, numbers, threading.Event())

    assert now()("truerank_webhook_attempts_total", outcome="parked") == 1


def test_a_refused_call_is_counted_by_why(single: Pipeline, counting: Counting) -> None:
    numbers, now = counting
    assert single.settings.redis_url is not None
    link = Link(single.settings.redis_url, timeout_ms=5000, meter=numbers)
    projector = single.projector(link)
    single.settle(projector)
    single.redis.delete(single.keys().generation(single.generation() or "").meta)
    single.submit("b", {"ann": 1})

    projector.step()

    assert now()("truerank_script_calls_total", script="apply", reply="missing") == 1
    link.close()


def test_a_worker_without_redis_counts_its_errors_and_its_breaker_opens(
    single: Pipeline, start_redis: StartRedis, counting: Counting
) -> None:
    numbers, now = counting
    url, process = start_redis()
    process.kill()
    process.wait()
    settings = msgspec.structs.replace(single.settings, redis_url=url)
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(settings, stop), kwargs={"meter": numbers})
    assert now()("truerank_breaker_state", state="closed") == 1
    thread.start()
    try:
        failed = ("truerank_errors_total", {"part": "worker", "code": "projection_unavailable"})
        wait_until(lambda: (now()(failed[0], **failed[1]) or 0) > 1, "errors are counted")
        wait_until(
            lambda: now()("truerank_breaker_state", state="closed") == 0, "the breaker opens"
        )
    finally:
        stop.set()
        thread.join()


def test_reads_are_counted_by_source_and_by_what_was_asked(
    single: Pipeline, counting: Counting
) -> None:
    numbers, now = counting
    with truerank.Truerank(single.settings, numbers) as client:
        client.top("b")
        fallback = now()
        single.settle(single.projector())
        client.top("b")
        client.top("b", source="database")
        client.top("b", numbering="dense")  # which the board doesn't keep
        single.redis.flushdb()
        with pytest.raises(ProjectionUnavailable):
            client.top("b", source="projection")

    after = now()
    assert fallback("truerank_reads_total", source="database", consistency="any") == 1
    assert after("truerank_reads_total", source="database", consistency="any") == 1
    assert after("truerank_reads_total", source="projection", consistency="any") == 1
    assert after("truerank_reads_total", source="database", consistency="insisted") == 1
    assert after("truerank_reads_total", source="database", consistency="not_kept") == 1
    assert after("truerank_errors_total", part="read", code="projection_unavailable") == 1
    assert after("truerank_script_calls_total", script="page", reply="ok") == 1


async def test_pages_are_counted_by_how_they_were_had_and_comparisons_by_their_outcome(
    single: Pipeline, counting: Counting
) -> None:
    numbers, now = counting
    single.settle(single.projector())
    settings = msgspec.structs.replace(single.settings, live_checks_percent=100)
    top = "/v1/boards/b/top"
    async with asking(create_app(settings, numbers)) as http, asyncio.timeout(20):
        await http.get(top)
        first = now()
        await asyncio.gather(*(http.get(f"{top}?limit=3") for _ in range(2)))
        joined = now()
        while not now()("truerank_pages_total", outcome="held"):
            await http.get(top)

        async def is_checked() -> bool:
            return bool(now()("truerank_live_checks_total", outcome="equal"))

        await until(is_checked, "a comparison")

    assert first("truerank_pages_total", outcome="read") == 1
    assert joined("truerank_pages_total", outcome="read") == 2
    assert joined("truerank_pages_total", outcome="joined") == 1
    assert not now()("truerank_live_checks_total", outcome="different")


async def test_events_are_counted_by_outcome_and_code(single: Pipeline, counting: Counting) -> None:
    numbers, now = counting
    event: dict[str, Any] = {"event_id": "e", "member": "ann", "value": 1}
    async with aio.Truerank(single.settings, numbers) as client:
        await client.submit_score("b", **event)
        await client.submit_score("b", **event)
        with pytest.raises(EventConflict):
            await client.submit_score("b", **(event | {"value": 2}))
        with pytest.raises(EventRefused):
            await client.submit_score("b", **(event | {"event_id": "f", "value": 2**63 - 1}))
    async with asking(create_app(single.settings, numbers)) as http:
        await http.post("/v1/boards/b/scores", json=event)

    after = now()
    assert after("truerank_commands_total", outcome="applied", code="") == 1
    assert after("truerank_commands_total", outcome="duplicate", code="") == 2
    assert after("truerank_commands_total", outcome="conflict", code="") == 1
    assert after("truerank_commands_total", outcome="refused", code="total_out_of_range") == 1


async def test_requests_are_counted_by_route_whatever_a_client_makes_up(
    settings: Settings, counting: Counting
) -> None:
    numbers, now = counting
    async with asking(create_app(settings, numbers)) as http:
        for path in ("/v1/boards/one/top", "/v1/boards/two/top", "/made/up", "/made/otherwise"):
            assert (await http.get(path)).status_code == 404
        await http.request("BREW", "/v1/boards")
        await http.get("/healthz", headers={"host": "elsewhere.example"})

    after = now()
    top = "GET /v1/boards/{board}/top"
    assert after("truerank_http_requests_total", route=top, status="404") == 2
    assert after("truerank_http_request_seconds_count", route=top) == 2
    assert after("truerank_http_requests_total", route="none", status="404") == 2
    assert after("truerank_http_requests_total", route="none", status="421") == 1
    assert after("truerank_http_requests_total", route="GET /v1/boards", status="405") == 1


async def test_the_page_is_served_in_both_formats_without_a_store(counting: Counting) -> None:
    numbers, _ = counting
    nowhere = Settings(
        database_url="postgresql://nobody@127.0.0.1:1/none",
        redis_url="redis://127.0.0.1:1",
        database_timeout_ms=200,
    )
    async with asking(create_watch_app(nowhere, numbers)) as http:
        text = await http.get("/metrics")
        wanted = {"accept": "application/openmetrics-text; version=1.0.0"}
        newer = await http.get("/metrics", headers=wanted)
        live = await http.get("/healthz")
        other = await http.get("/v1/boards")

    assert (text.status_code, newer.status_code) == (200, 200)
    assert text.headers["content-type"].startswith("text/plain; version=")
    assert newer.headers["content-type"].startswith("application/openmetrics-text")
    assert newer.text.endswith("# EOF\n")
    page = Numbers(text.text)
    assert page("truerank_up", store="postgresql") == 0
    assert page("truerank_up", store="redis") == 0
    assert page("truerank_scripts_up") == 0
    assert page("truerank_verdict", verdict="degraded") == 1
    assert page("truerank_problem", code="database_away") == 1
    assert "truerank_outbox_waiting_rows" not in page.families
    assert (live.status_code, other.status_code) == (200, 404)


def test_a_process_tells_its_release(counting: Counting) -> None:
    _, now = counting

    (build,) = now().families["truerank_build_info"].samples

    assert build.labels["version"] == version("truerank")
    assert now()("process_cpu_seconds_total")


def test_two_registries_of_one_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()

    one.tick_taken()

    assert counted(one)("truerank_ticks_total") == 1
    assert counted(other)("truerank_ticks_total") == 0


def test_open_streams_are_counted_until_they_end(single: Pipeline, counting: Counting) -> None:
    numbers, now = counting
    stop, urls = threading.Event(), list[str]()
    options = {"port": 0, "ready": urls.append, "stop": stop, "numbers": numbers}
    thread = threading.Thread(target=run_server, args=(single.settings,), kwargs=options)
    thread.start()
    try:
        wait_until(lambda: urls, "the server is ready")
        with httpx.Client(base_url=urls[0]) as http, http.stream("GET", "/v1/boards/b/live"):
            wait_until(lambda: now()("truerank_streams_open") == 1, "the stream is open")
        wait_until(lambda: now()("truerank_streams_open") == 0, "the stream has ended")
    finally:
        stop.set()
        thread.join()
