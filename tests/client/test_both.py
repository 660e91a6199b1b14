"""`truerank` and `truerank.aio` offer the same names, signatures, answers and errors."""

import asyncio
import inspect
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
import redis
from msgspec.structs import replace

import truerank
from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline
from truerank import aio
from truerank.errors import (
    BoardUnknown,
    EventConflict,
    EventRefused,
    InvalidInput,
    NotVisibleYet,
    SeasonUnknown,
    SettingsInvalid,
    TruerankError,
)
from truerank.local import running_worker
from truerank.model import Histogram, Page, ScoreEvent, Source
from truerank.settings import Settings

# A blocking client opens its connections when they are first needed.
ONLY_ASYNC = {"open"}


def names(client: type[object]) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_")}


def test_both_clients_have_the_same_names() -> None:
    assert names(aio.Truerank) - names(truerank.Truerank) == ONLY_ASYNC
    assert names(truerank.Truerank) <= names(aio.Truerank)


@pytest.mark.parametrize("name", sorted(names(truerank.Truerank) - {"run"}))
def test_both_clients_take_the_same_arguments_and_say_the_same(name: str) -> None:
    blocking, awaitable = getattr(truerank.Truerank, name), getattr(aio.Truerank, name)

    assert _parameters(blocking) == _parameters(awaitable)
    assert blocking.__doc__ == awaitable.__doc__
    assert blocking.__doc__


def _parameters(method: Callable[..., object]) -> list[inspect.Parameter]:
    return list(inspect.signature(method).parameters.values())


QUESTIONS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("boards", (), {}),
    ("board", ("b",), {}),
    ("season", ("b",), {}),
    ("season", ("b", "2026-02"), {}),
    ("seasons", ("b",), {"limit": 5}),
    ("top", ("b",), {}),
    ("top", ("b", "all"), {"limit": 2, "offset": 1, "member": "cid", "around_limit": 2}),
    ("around", ("b", "bob"), {"limit": 2, "source": "database"}),
    ("place", ("b", "nobody"), {"numbering": "ordinal"}),
    ("place", ("b", "nobody"), {"numbering": "dense"}),
    ("places", ("b", ["cid", "ann"]), {"source": "projection"}),
    ("around", ("b",), {"rank": 2, "limit": 2}),
    ("between", ("b",), {"score_min": 2, "limit": 1}),
    ("counts", ("b", [3, "1", 2]), {"source": "database"}),
    ("histogram", ("b", [1, 3]), {}),
]


async def test_both_clients_give_the_same_answers(live: Pipeline) -> None:
    async with aio.Truerank(live.settings) as client:
        for name, args, kwargs in QUESTIONS:
            one = await getattr(client, name)(*args, **kwargs)
            other = getattr(live.client, name)(*args, **kwargs)
            if isinstance(one, Page | Histogram):
                assert one.freshness.source is other.freshness.source
                one = replace(one, freshness=other.freshness)
            assert one == other, name


async def test_both_clients_submit_and_wait(live: Pipeline) -> None:
    async with aio.Truerank(live.settings) as client:
        first = await client.submit_score("b", event_id="e1", member="ann", value=10)
        assert first.token is not None
        await client.wait_visible(first.token, ["b"])
        assert (await client.place("b", "ann", source="projection")).places[0].score == "13"

        again = live.client.submit_score("b", event_id="e1", member="ann", value=10)
        assert (again.outcome, again.token) == ("duplicate", first.token)

        with pytest.raises(EventConflict):
            await client.submit_score("b", event_id="e1", member="ann", value=11)
        with pytest.raises(EventRefused) as refused:
            live.client.submit_score("b", event_id="e2", member="x" * 201, value=1)
        assert refused.value.field == "member"


async def test_scores_commit_with_the_callers_transaction_in_both(live: Pipeline) -> None:
    assert live.settings.database_url is not None
    event = ScoreEvent(event_id="mine", member="dan", value=1)
    import psycopg  # noqa: PLC0415 - the caller's driver

    async with await psycopg.AsyncConnection.connect(live.settings.database_url) as conn:
        await aio.submit_score(conn, "b", event)
        assert live.client.place("b", "dan", source="database").places[0].rank is None
        await conn.commit()
    assert live.client.place("b", "dan", source="database").places[0].rank == 3


MISTAKES: list[tuple[type[TruerankError], str | None, str, tuple[Any, ...], dict[str, Any]]] = [
    (BoardUnknown, "board", "top", ("B",), {}),
    (BoardUnknown, "board", "board", ("b ",), {}),
    (BoardUnknown, "board", "seasons", ("",), {}),
    (SeasonUnknown, "season", "top", ("b", "2026-W05"), {}),
    (SeasonUnknown, "season", "place", ("b", "ann", "2026-13"), {}),
    (SeasonUnknown, "season", "around", ("b", "ann", ""), {}),
    (SeasonUnknown, "season", "season", ("b", "x" * 1000), {}),
    (InvalidInput, "season", "top", ("b", "a\0b"), {}),
    (InvalidInput, "board", "top", ("a\0b",), {}),
    (InvalidInput, "limit", "top", ("b",), {"limit": -1}),
    (InvalidInput, "limit", "top", ("b",), {"limit": 1001}),
    (InvalidInput, "limit", "top", ("b",), {"limit": True}),
    (InvalidInput, "limit", "top", ("b",), {"limit": "10"}),
    (InvalidInput, "limit", "top", ("b",), {"limit": 1.0}),
    (InvalidInput, "offset", "top", ("b",), {"offset": -1}),
    (InvalidInput, "offset", "top", ("b",), {"offset": 2**31}),
    (InvalidInput, "around_limit", "top", ("b",), {"member": "ann", "around_limit": 1001}),
    (InvalidInput, "limit", "around", ("b", "ann"), {"limit": -1}),
    (InvalidInput, "members", "places", ("b", ["ann"] * 1001), {}),
    (InvalidInput, "member", "place", ("b", ""), {}),
    (InvalidInput, "member", "place", ("b", "x" * 201), {}),
    (InvalidInput, "member", "place", ("b", "a\0b"), {}),
    (InvalidInput, "member", "around", ("b", "\ud800"), {}),
    (InvalidInput, "member", "top", ("b",), {"member": 7}),
    (InvalidInput, None, "explain", ("b", "\ud800"), {}),
    (InvalidInput, "season", "league_place", ("b", "ann", "\ud800"), {}),
    (InvalidInput, "member", "league_place", ("b", "\ud800"), {}),
    (InvalidInput, "numbering", "top", ("b",), {"numbering": "denser"}),
    (InvalidInput, "source", "top", ("b",), {"source": "redis"}),
    (InvalidInput, "token", "wait_visible", ("no token", ["b"]), {}),
    (BoardUnknown, "board", "wait_visible", ("7.x", ["nothing"]), {}),
]


@pytest.mark.parametrize("source", [None, *Source], ids=str)
async def test_both_clients_refuse_the_same_mistakes(live: Pipeline, source: Source | None) -> None:
    async with aio.Truerank(live.settings) as client:
        for error, field, name, args, kwargs in MISTAKES:
            given = dict(kwargs)
            if name in {"top", "place", "around", "places"} and "source" not in given:
                given["source"] = source
            for ask in (
                lambda n=name, a=args, g=given: getattr(client, n)(*a, **g),
                lambda n=name, a=args, g=given: asyncio.to_thread(getattr(live.client, n), *a, **g),
            ):
                with pytest.raises(error) as raised:
                    await ask()
                assert type(raised.value) is error, (name, args, kwargs)
                assert raised.value.field == field, (name, args, kwargs)


@pytest.mark.parametrize("source", Source)
def test_the_limits_themselves_are_taken(live: Pipeline, source: Source) -> None:
    assert len(live.client.top("b", limit=1000, source=source).entries) == 3
    assert live.client.top("b", offset=2**31 - 1, limit=1000, source=source).entries == ()
    assert len(live.client.places("b", ["ann"] * 1000, source=source).places) == 1000
    assert len(live.client.around("b", "ann", limit=1000, source=source).around) == 3
    assert live.client.around("b", "ann", limit=0, source=source).around == ()
    assert live.client.place("b", "\N{GRINNING FACE}" * 200, source=source).places[0].rank is None


def test_freshness_says_where_an_answer_comes_from(live: Pipeline) -> None:
    shown = live.client.top("b", source="projection").freshness
    source = live.client.top("b", source="database").freshness

    assert shown.epoch == source.epoch
    assert shown.generation in {live.generation(0), live.generation(1)}
    assert (shown.tick or 0) > 0
    assert (source.generation, source.tick, source.staleness_ms) == (None, None, 0)
    assert shown.projected_through is not None
    assert source.projected_through is not None
    assert shown.projected_through < source.projected_through


def test_wait_visible_returns_once_every_board_shows_the_write(idle: Pipeline) -> None:
    projector = idle.projector()
    idle.settle(projector)
    (receipt,) = idle.submit("b", {"ann": 1})
    assert receipt.token is not None

    with pytest.raises(NotVisibleYet):
        idle.client.wait_visible(receipt.token, ["b"], timeout_s=0.05)

    projector.step()
    idle.client.wait_visible(receipt.token, ["b"], timeout_s=0.05)
    assert idle.client.place("b", "ann", source="projection").places[0].rank == 1


def test_wait_visible_waits_for_the_other_group_too(idle: Pipeline) -> None:
    group = idle.client.board("b").group
    idle.client.create_board("other", seasons=["all"])
    idle.conn.execute("UPDATE truerank.board SET grp = %s WHERE key = 'other'", (1 - group,))
    projector = idle.projector(heartbeat_ms=3_600_000)
    idle.settle(projector)
    projector.step()
    (receipt,) = idle.submit("b", {"ann": 1})
    assert receipt.token is not None

    projector.step()

    # The other group has no rows of it, and says so with its next heartbeat.
    idle.client.wait_visible(receipt.token, ["b"], timeout_s=0.05)
    with pytest.raises(NotVisibleYet):
        idle.client.wait_visible(receipt.token, ["b", "other"], timeout_s=0.05)
    idle.projector().step()
    idle.client.wait_visible(receipt.token, ["b", "other"], timeout_s=0.05)


async def test_more_reads_at_once_than_connections_wait_for_their_turn(live: Pipeline) -> None:
    settings = msgspec.structs.replace(
        live.settings, pool_max=2, redis_timeout_ms=20_000, database_timeout_ms=20_000
    )

    async with aio.Truerank(settings) as client:
        pages = await asyncio.gather(*(client.top("b") for _ in range(50)))
    with truerank.Truerank(settings) as blocking, ThreadPoolExecutor(20) as threads:
        pages += threads.map(lambda _: blocking.top("b"), range(50))

    assert {page.freshness.source for page in pages} == {Source.PROJECTION}


async def test_a_cancelled_read_does_not_poison_the_next(live: Pipeline) -> None:
    """PRJ-9: on few connections, reads are cancelled in flight while others read."""
    scores = {f"m{i}": 100 + i for i in range(40)}
    receipts = live.submit("b", scores)
    assert receipts[-1].token is not None
    live.client.wait_visible(receipts[-1].token, ["b"])
    random_ = random.Random(9)
    settings = msgspec.structs.replace(live.settings, pool_max=2, redis_timeout_ms=5000)
    settings = msgspec.structs.replace(settings, board_cache_ms=60_000)
    finished = cancelled = 0

    async def read(client: aio.Truerank, member: str, limit_s: float) -> None:
        nonlocal finished, cancelled
        try:
            async with asyncio.timeout(limit_s):
                page = await client.place("b", member, source="projection")
        except TimeoutError:
            cancelled += 1
            return
        finished += 1
        (place,) = page.places
        assert (place.member, place.score) == (member, str(scores[member]))

    async with aio.Truerank(settings) as client:
        await client.place("b", "m0", source="projection")
        for _ in range(60):
            members = random_.choices(list(scores), k=8)
            limits = [random_.choice([0.0005, 0.001, 0.002, 5.0]) for _ in members]
            await asyncio.gather(*map(read, [client] * 8, members, limits))

    assert finished > 60
    assert cancelled > 10


async def test_a_read_cancelled_before_its_reply_leaves_that_to_nobody(
    idle: Pipeline, start_redis: StartRedis
) -> None:
    """PRJ-9, without luck: the server holds every reply back until both reads are sent."""
    url, _ = start_redis()
    settings = msgspec.structs.replace(
        idle.settings, redis_url=url, pool_max=1, redis_timeout_ms=5000, board_cache_ms=60_000
    )
    with running_worker(settings):
        receipts = idle.submit("b", {"ann": 2, "bob": 1})
        assert receipts[-1].token is not None
        async with aio.Truerank(settings) as client:
            await client.wait_visible(receipts[-1].token, ["b"])
            await client.place("b", "bob", source="projection")
    async with aio.Truerank(settings) as client:
        await client.place("b", "bob", source="projection")
        with redis.Redis.from_url(url) as control:
            control.execute_command("CLIENT", "PAUSE", 300, "ALL")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.place("b", "ann", source="projection")
            page = await client.place("b", "bob", source="projection")

    assert [(place.member, place.score) for place in page.places] == [("bob", "1")]


def test_a_client_needs_both_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUERANK_DATABASE_URL", raising=False)
    monkeypatch.delenv("TRUERANK_REDIS_URL", raising=False)

    for connect in (truerank.connect, aio.connect):
        with pytest.raises(SettingsInvalid):
            connect("postgresql:///x")
    with pytest.raises(SettingsInvalid):
        truerank.Truerank(Settings(redis_url="redis://localhost"))


def test_connect_reads_what_is_not_given_from_the_environment(
    live: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert live.settings.database_url is not None
    assert live.settings.redis_url is not None
    monkeypatch.setenv("TRUERANK_REDIS_URL", live.settings.redis_url)

    with truerank.connect(live.settings.database_url) as client:
        assert client.top("b", source="projection").total == 3
