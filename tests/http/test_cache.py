"""Pages that a server holds: never older than told, nor longer than allowed; read once for all."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from starlette.applications import Starlette

from tests.http.conftest import Wire
from tests.projection.pipeline import Pipeline, pipeline
from truerank.errors import Busy
from truerank.local import running_worker
from truerank.model import Consistency, Page
from truerank.projection.worker import Projector
from truerank.read.hints import Hint
from truerank.read.shapes import page_json
from truerank.serve.app import create_app
from truerank.serve.cache import Pages, Question
from truerank.serve.feed import Feed
from truerank.serve.replies import Encoded
from truerank.settings import Settings
from truerank.telemetry.metrics import Metrics

LONG_MS = 60_000  # longer than any test takes: what goes earlier goes for another reason
DEADLINE_S = 20.0
TOP = "/v1/boards/b/top"


class Stand:
    """A worker that a test steps, and the application beside it in this event loop."""

    def __init__(self, pipeline: Pipeline, projector: Projector) -> None:
        self.pipeline = pipeline
        self.projector = projector

    @asynccontextmanager
    async def serving(self, **changes: Any) -> AsyncIterator["Served"]:
        """Serve with these settings; hints arrive, unless there is no Redis."""
        settings = msgspec.structs.replace(self.pipeline.settings, **changes)
        app = create_app(settings, metrics := Metrics())
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                base_url="http://127.0.0.1", transport=httpx.ASGITransport(app)
            ) as client,
        ):
            yield Served(app, client, metrics)

    def write(self, scores: dict[str, int], board: str = "b") -> str:
        """Submit, and show it; the token."""
        (*_, receipt) = self.pipeline.submit(board, scores)
        self.pipeline.settle(self.projector)
        assert receipt.token is not None
        return receipt.token


class Served:
    """What a test asks of a running application."""

    def __init__(self, app: Starlette, client: httpx.AsyncClient, metrics: Metrics) -> None:
        self.app = app
        self.client = client
        self.metrics = metrics

    async def top(self, **params: Any) -> httpx.Response:
        return await self.client.get(TOP, params=params)

    async def scores(self, **params: Any) -> dict[str, str]:
        page = (await self.top(**params)).raise_for_status().json()
        return {entry["member"]: entry["score"] for entry in page["entries"]}

    async def hearing(self) -> None:
        """Return once hints arrive, and nothing is held from before."""
        await self.top()
        feed: Feed = self.app.state.service.feed

        async def is_heard() -> bool:
            return feed.hears(0)

        await until(is_heard, "hints to arrive")

    @property
    def reads(self) -> float:
        """How often Redis was asked for a page."""
        return self.metrics.registry.get_sample_value(
            "truerank_script_calls_total", {"script": "page", "reply": "ok"}
        ) or 0.0  # fmt: skip


class Again:
    """Learns when hints come again."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    def hinted(self, hint: Hint) -> None:
        pass

    def lost(self) -> None:
        self.told.set()


async def until(condition: Callable[[], Awaitable[bool]], awaited: str) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + DEADLINE_S
    while not await condition():
        assert time.monotonic() < deadline, f"still waiting for {awaited}"
        await asyncio.sleep(0.01)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings,
        heartbeat_ms=3_600_000,
        lease_ms=3_600_000,
        board_cache_ms=1,
        cache_max_ms=LONG_MS,
        live_checks_percent=0,
    )


@pytest.fixture
def stand(settings: Settings) -> Iterator[Stand]:
    """Boards `b` and `other`; ann has 10 on each, which is shown."""
    with pipeline(settings, groups=1) as made:
        projector = made.projector()
        for board in ("b", "other"):
            made.client.create_board(board, seasons=["all"])
        stand = Stand(made, projector)
        stand.write({"ann": 10})
        stand.write({"ann": 10}, "other")
        yield stand


async def test_a_page_that_is_held_costs_no_read_and_is_the_same_but_for_its_age(
    stand: Stand,
) -> None:
    async with stand.serving() as served:
        await served.hearing()
        first = await served.top()
        before = served.reads
        began = time.monotonic()
        await asyncio.sleep(0.02)

        later = [await served.top() for _ in range(3)]

        passed_ms = (time.monotonic() - began) * 1000
        assert served.reads == before
    ages = [answer.json()["freshness"]["staleness_ms"] for answer in (first, *later)]
    assert ages == sorted(ages)
    assert ages[0] + 20 <= ages[1]
    assert ages[3] <= ages[0] + passed_ms + 1000  # no wild number: it was read a moment before
    for answer in later:
        assert answer.headers["truerank-staleness-ms"] == str(
            answer.json()["freshness"]["staleness_ms"]
        )
        assert answer.headers["etag"] == first.headers["etag"]
        assert _ageless(answer) == _ageless(first)


async def test_a_score_is_seen_as_soon_as_the_hint_arrives(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        for score in (15, 20, 25):
            assert await served.scores() == {"ann": str(score - 5)}
            stand.write({"ann": 5})

            async def is_shown(score: int = score) -> bool:
                return await served.scores() == {"ann": str(score)}

            await until(is_shown, "the new score")


async def test_a_hint_for_another_board_leaves_a_page_as_it_is(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        await served.client.get("/v1/boards/other/top")
        await served.top()
        stand.write({"ann": 5}, "other")

        async def other_is_new() -> bool:
            page = (await served.client.get("/v1/boards/other/top")).json()
            return bool(page["entries"][0]["score"] == "15")

        await until(other_is_new, "the other board's score")
        before = served.reads

        await served.top()

        assert served.reads == before


async def test_many_who_come_at_once_cost_one_read(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        await served.top()
        before = served.reads

        answers = await asyncio.gather(*(served.top(limit=7) for _ in range(50)))

        assert served.reads == before + 1
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["etag"] for answer in answers}) == 1


async def test_parameters_in_another_order_ask_the_same_and_others_do_not(stand: Stand) -> None:
    stand.write({"bob": 5})
    async with stand.serving() as served:
        await served.hearing()
        await served.client.get(f"{TOP}?limit=1&numbering=ordinal")
        before = served.reads

        same = await served.client.get(f"{TOP}?numbering=ordinal&limit=1")
        assert served.reads == before
        other = await served.client.get(f"{TOP}?numbering=ordinal&limit=2")

    assert len(same.json()["entries"]) == 1
    assert len(other.json()["entries"]) == 2


async def test_without_hints_a_page_is_held_for_a_moment_only(stand: Stand) -> None:
    async with stand.serving() as served:
        _hears(served, answer=False)
        assert await served.scores() == {"ann": "10"}
        stand.write({"ann": 5})

        async def is_shown() -> bool:
            return await served.scores() == {"ann": "15"}

        await until(is_shown, "the moment to pass")


async def test_a_hint_that_never_came_is_made_up_for_by_the_bound(stand: Stand) -> None:
    async with stand.serving(cache_max_ms=200) as served:
        _hears(served, answer=True)
        assert await served.scores() == {"ann": "10"}
        read_at = time.monotonic()
        stand.write({"ann": 5})

        async def is_shown() -> bool:
            asked_at = time.monotonic()
            shown = await served.scores() == {"ann": "15"}
            assert shown or asked_at <= read_at + 0.2
            return shown

        await until(is_shown, "the bound to pass")


async def test_when_hints_come_again_everything_is_read_again(
    stand: Stand, wires: tuple[Settings, Wire, Wire]
) -> None:
    through, _, valkey = wires
    changes = {"database_url": through.database_url, "redis_url": through.redis_url}
    async with stand.serving(**changes) as served:
        await served.hearing()
        assert await served.scores() == {"ann": "10"}
        valkey.silence()
        stand.write({"ann": 5})  # the hint is lost on its way
        assert await served.scores() == {"ann": "10"}, "or this test is about nothing"
        again = Again()
        served.app.state.service.feed.followers.append(again)
        valkey.drop()
        async with asyncio.timeout(DEADLINE_S):
            await again.told.wait()  # nobody asks meanwhile

        async def is_shown() -> bool:
            page = (await served.top()).json()
            shown = (page["freshness"]["source"], page["entries"][0]["score"])
            return shown == ("projection", "15")

        await until(is_shown, "the score that the lost hint told of")


async def test_readers_get_no_page_older_than_they_ask_for(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        await served.top()
        before = served.reads

        held = await served.top(max_age="1h")
        assert (held.json()["freshness"]["source"], served.reads) == ("projection", before)
        fresh = await served.top(max_age="0s")

    assert fresh.json()["freshness"] | {"projected_through": None} == {
        "source": "database", "epoch": held.json()["freshness"]["epoch"], "generation": None,
        "tick": None, "projected_through": None, "staleness_ms": 0,
    }  # fmt: skip


async def test_a_page_that_grew_too_old_is_not_held_against_the_services_limit(
    stand: Stand,
) -> None:
    async with stand.serving(fallback_after_ms=300) as served:
        await served.hearing()
        stand.projector.step()

        async def is_old() -> bool:
            answer = (await served.top()).json()["freshness"]
            assert answer["source"] == "database" or answer["staleness_ms"] <= 300
            return bool(answer["source"] == "database")

        await until(is_old, "an answer of the source")


async def test_a_token_is_served_from_a_page_that_shows_it_and_from_no_other(stand: Stand) -> None:
    old = stand.write({"ann": 5})
    async with stand.serving() as served:
        await served.hearing()
        seen = (await served.top(monotonic="new")).json()["freshness"]["token"]
        before = served.reads

        assert await served.scores(at_least=old) == {"ann": "15"}
        assert await served.scores(monotonic=seen) == {"ann": "15"}
        assert served.reads == before
        _hears(served, answer=True)  # the page stays: only the token says that it is old
        (receipt,) = stand.pipeline.submit("b", {"ann": 5})
        assert await served.scores() == {"ann": "15"}
        new = await served.top(at_least=receipt.token, wait="0s")
        again = await served.top(monotonic=new.json()["freshness"]["token"], wait="0s")

    assert [answer.json()["entries"][0]["score"] for answer in (new, again)] == ["20", "20"]


async def test_only_readers_who_compare_get_a_token(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        for _ in range(2):
            assert "token" in (await served.top(monotonic="new")).json()["freshness"]
            assert "token" not in (await served.top()).json()["freshness"]


async def test_the_sources_own_answers_are_read_each_time(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        assert await served.scores(consistency="authoritative") == {"ann": "10"}
        stand.pipeline.submit("b", {"ann": 5})

        assert await served.scores(consistency="authoritative") == {"ann": "15"}
        assert (await served.top(consistency="settled")).status_code == 409


async def test_who_has_what_is_held_gets_its_age_alone(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        first = await served.top()
        tag = first.headers["etag"]

        same = await served.client.get(TOP, headers={"if-none-match": tag})
        other = await served.client.get(TOP, headers={"if-none-match": '"something else"'})

    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert int(same.headers["truerank-staleness-ms"]) >= int(first.headers["truerank-staleness-ms"])
    assert other.status_code == 200


@pytest.mark.parametrize("action", ["rename", "delete"])
async def test_a_board_that_is_gone_is_gone_within_the_bound(stand: Stand, action: str) -> None:
    by = {"actor": "op", "reason": "test"}
    async with stand.serving(cache_max_ms=100) as served:
        await served.hearing()
        assert await served.scores() == {"ann": "10"}
        if action == "rename":
            stand.pipeline.client.rename_board("b", "c", **by)
        else:
            stand.pipeline.client.delete_board("b", **by)

        async def is_gone() -> bool:
            return (await served.top()).status_code == 404

        await until(is_gone, "the old key to be unknown")


async def test_new_names_are_shown_at_once_by_the_process_that_took_them(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        for name in ("Ann", "Ännchen"):
            body = {"profiles": [{"member": "ann", "name": name}]}
            (await served.client.post("/v1/profiles", json=body)).raise_for_status()

            page = (await served.top(names=1)).json()

            assert page["entries"][0]["name"] == name


async def test_nobody_sees_a_member_after_the_call_that_hid_it(settings: Settings) -> None:
    settings = msgspec.structs.replace(settings, cache_max_ms=300, heartbeat_ms=1000)
    with pipeline(settings, groups=1) as made, running_worker(settings):
        made.client.create_board("b", seasons=["all"])
        (receipt,) = made.submit("b", {"ann": 10})
        assert receipt.token is not None
        made.client.wait_visible(receipt.token, ["b"], timeout_s=DEADLINE_S)
        async with Stand(made, None).serving() as served:  # type: ignore[arg-type]  # not stepped
            _hears(served, answer=True)
            assert await served.scores() == {"ann": "10"}
            hiding = asyncio.create_task(
                asyncio.to_thread(
                    made.client.hide_member,
                    "ann", actor="op", reason="test", timeout_s=DEADLINE_S,
                )
            )  # fmt: skip
            while not hiding.done():
                await served.top()
                await asyncio.sleep(0.001)

            assert not (await hiding).pending
            assert await served.scores() == {}


class Gate:
    """A read that a test lets through; it counts."""

    def __init__(self, served: Served) -> None:
        self.client = served.app.state.service.truerank
        self.open = asyncio.Event()
        self.begun = asyncio.Event()
        self.count = 0
        self.error: Exception | None = None

    async def read(self, consistency: Consistency) -> Page:
        self.count += 1
        page: Page = await self.client.top("b", consistency=consistency)
        self.begun.set()
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return page


def asking(served: Served, gate: Gate, pages: Pages | None = None) -> Callable[..., Any]:
    """A function that asks for a page by way of a gate, and gives the score."""
    pages = pages or served.app.state.service.pages

    async def ask(key: str = "gate") -> str:
        scope = {"raw_path": key.encode(), "query_string": b"", "headers": [], "endpoint": ask}
        question = Question(
            key=key, board="b", season=None, cursor=None, read=gate.read,
            encode=lambda page: Encoded(page_json(page)),
        )  # fmt: skip
        answer = await pages.answer(scope, question, Consistency())
        score: str = msgspec.json.decode(answer.body)["entries"][0]["score"]
        return score

    return ask


async def test_what_was_read_before_a_hint_is_given_to_nobody_who_came_after_it(
    stand: Stand,
) -> None:
    async with stand.serving() as served:
        await served.hearing()
        gate = Gate(served)
        ask = asking(served, gate)
        early = asyncio.create_task(ask())
        await gate.begun.wait()
        await served.top()
        stand.write({"ann": 5})

        async def is_hinted() -> bool:
            return await served.scores() == {"ann": "15"}

        await until(is_hinted, "the hint")
        late = asyncio.create_task(ask())
        gate.open.set()

        assert (await early, await late) == ("10", "15")
        assert await ask() == "15"
        assert gate.count == 2


async def test_a_failure_is_told_to_all_who_waited_and_to_nobody_later(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        gate = Gate(served)
        gate.error = Busy("no")
        ask = asking(served, gate)
        waiting = [asyncio.create_task(ask()) for _ in range(3)]
        await gate.begun.wait()
        gate.open.set()
        for failed in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(failed, Busy)
        gate.error = None

        assert await ask() == "10"
        assert gate.count == 2


async def test_one_who_gives_up_leaves_the_others_their_read(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        gate = Gate(served)
        ask = asking(served, gate)
        first, second = (asyncio.create_task(ask()) for _ in range(2))
        await gate.begun.wait()
        first.cancel()
        await asyncio.wait([first])
        gate.open.set()

        assert await second == "10"
        assert gate.count == 1


async def test_a_read_that_took_longer_than_a_page_may_be_held_is_not_shared(stand: Stand) -> None:
    async with stand.serving(cache_max_ms=20) as served:
        await served.hearing()
        gate = Gate(served)
        ask = asking(served, gate)
        first = asyncio.create_task(ask())
        await gate.begun.wait()
        second = asyncio.create_task(ask())
        await asyncio.sleep(0.05)
        gate.open.set()

        assert (await first, await second) == ("10", "10")
        assert gate.count == 2


@pytest.mark.parametrize("limits", [{"pages_max": 3}, {"bytes_max": 2500}])
async def test_no_more_is_held_than_may_be_the_least_lately_used_goes(
    stand: Stand, limits: dict[str, int]
) -> None:
    async with stand.serving() as served:
        await served.hearing()
        service = served.app.state.service
        gate = Gate(served)
        gate.open.set()
        pages = Pages(service.truerank, service.feed, service.settings, service.meter, **limits)
        ask = asking(served, gate, pages)
        size = len((await served.top()).content)
        assert size * 3 < 2500 < size * 10
        await ask("often")
        for number in range(10):
            await ask(f"once {number}")
            await ask("often")

        assert gate.count == 11
        await ask("once 0")
        assert gate.count == 12


async def test_nothing_is_held_where_the_setting_says_so(stand: Stand) -> None:
    async with stand.serving(cache_max_ms=0) as served:
        await served.hearing()
        before = served.reads

        await served.top()
        await served.top()

        assert served.reads == before + 2


def _hears(served: Served, *, answer: bool) -> None:
    """No hint arrives any more; if the answer is yes, nobody has noticed yet."""
    feed = served.app.state.service.feed
    feed.followers.clear()
    feed.hears = lambda _group: answer


def _ageless(answer: httpx.Response) -> Any:
    page = answer.json()
    del page["freshness"]["staleness_ms"]
    return page
