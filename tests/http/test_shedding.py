"""What a service can't do for all it refuses to some, at once, and says when to come back."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from tests.http.stand import Served, Stand, until
from truerank import aio
from truerank.crowd import Crowd
from truerank.errors import Busy, DatabaseUnavailable
from truerank.model import Consistency

_WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""


def refused(answer: httpx.Response) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json()["code"], answer.headers.get("retry-after")


@asynccontextmanager
async def hanging(stand: Stand, served: Served, **params: Any) -> AsyncIterator[None]:
    """PostgreSQL stands still with one question, and may be asked one at a time."""
    await served.top()  # so that the board and its season are known
    with stand.pipeline.connection() as conn:
        conn.execute("LOCK TABLE truerank.standing IN ACCESS EXCLUSIVE MODE")
        asked = asyncio.create_task(served.top(**params))

        async def is_waiting() -> bool:
            row = stand.pipeline.conn.execute(_WAITING).fetchone()
            return row == (1,)

        await until(is_waiting, "the question to hang")
        try:
            yield
        finally:
            conn.rollback()
            assert (await asked).status_code == 200


async def one_waits(client: aio.Truerank) -> None:
    """Return once a reader has taken the one place to wait."""

    async def is_taken() -> bool:
        places = client.operations.answers._waiting  # noqa: SLF001 - asking would take one
        return bool(places._value == 0)  # noqa: SLF001 - nor does it tell otherwise

    await until(is_taken, "a reader to wait")


async def test_when_postgresql_answers_as_many_as_it_may_the_next_are_refused(
    stand: Stand,
) -> None:
    async with stand.serving(fallback_max=1, board_cache_ms=60_000, cache_max_ms=0) as served:
        (receipt,) = stand.pipeline.submit("b", {"ann": 5})  # not shown
        async with hanging(stand, served, max_age="0s", member="ann"):
            too_old = await served.top(max_age="0s")
            not_shown = await served.top(at_least=receipt.token, wait="0s")
            shown = await served.top()
        async with hanging(stand, served, numbering="dense", member="ann"):
            not_kept = await served.top(numbering="dense")
        later = await served.top(max_age="0s")

    assert refused(too_old) == (503, "not_fresh_enough", "1")
    assert refused(not_shown) == (503, "busy", "1")
    assert shown.json()["freshness"]["source"] == "projection"
    assert refused(not_kept) == (503, "busy", "1")
    assert (later.status_code, later.json()["freshness"]["source"]) == (200, "database")


async def test_a_projection_that_is_insisted_on_and_too_old_is_refused(stand: Stand) -> None:
    async with stand.serving() as served:
        answer = await served.top(max_age="0s", source="projection")

    assert refused(answer) == (503, "not_fresh_enough", "1")


async def test_no_more_readers_wait_for_their_writes_than_may(stand: Stand) -> None:
    async with stand.serving(waiting_max=1, cache_max_ms=0) as served:
        (receipt,) = stand.pipeline.submit("b", {"ann": 5})
        waiter = asyncio.create_task(served.top(at_least=receipt.token, wait="60s"))
        await one_waits(served.app.state.service.truerank)
        refusal = await served.top(at_least=receipt.token, wait="59s")
        others = [await served.top(), await served.top(at_least=receipt.token, member="ann",
                                                       **{"else": "pending"})]  # fmt: skip
        stand.pipeline.settle(stand.projector)
        shown = await waiter
        again = await served.top(at_least=receipt.token, wait="60s")

    assert refused(refusal) == (503, "busy", "1")
    assert [answer.status_code for answer in others] == [200, 200]
    assert shown.json()["entries"][0]["score"] == "15"
    assert again.status_code == 200


async def test_who_gives_up_waiting_leaves_room_for_the_next(stand: Stand) -> None:
    settings = msgspec.structs.replace(stand.pipeline.settings, waiting_max=1)
    (receipt,) = stand.pipeline.submit("b", {"ann": 5})
    assert receipt.token is not None
    needed = Consistency.at_least(receipt.token, wait_ms=60_000)
    async with aio.Truerank(settings) as client:
        for _ in range(3):
            waiter = asyncio.ensure_future(client.top("b", consistency=needed))
            await one_waits(client)
            with pytest.raises(Busy):
                await client.top("b", consistency=needed)
            waiter.cancel()
            await asyncio.wait({waiter})

        page = await client.top("b", consistency=Consistency.at_least(receipt.token, wait_ms=0))

    assert page.entries[0].score == "15"


async def test_readers_of_postgresql_leave_connections_to_those_who_look_up_a_board(
    stand: Stand,
) -> None:
    async with (
        stand.serving(pool_max=2, board_cache_ms=1, cache_max_ms=0) as served,
        hanging(stand, served, consistency="authoritative", member="ann"),
    ):
        refusal = await served.top(consistency="authoritative")
        shown = await served.client.get("/v1/boards/other/top", params={"names": 1})

    assert refused(refusal) == (503, "busy", "1")
    assert (shown.status_code, shown.json()["freshness"]["source"]) == (200, "projection")


def test_no_connection_is_told_as_busy_only_of_a_server_that_answers() -> None:
    crowd, refusals = Crowd(2, wait_s=0.0), deque[str](maxlen=1)
    why = TimeoutError("couldn't get a connection")
    for _ in range(2):
        crowd.lent()

    taken = crowd.no_connection(why, refusals, full=False)
    crowd.returned(answered=True)
    free = crowd.no_connection(why, refusals, full=False)
    full = crowd.no_connection(why, refusals, full=True)
    refusals.append("connection failed: no more")
    not_made = crowd.no_connection(why, refusals, full=True)
    silent = Crowd(2, wait_s=-2.0).no_connection(why, deque(), full=True)

    assert [type(each) for each in (taken, full)] == [Busy, Busy]
    assert [type(each) for each in (free, not_made, silent)] == [DatabaseUnavailable] * 3
    assert str(not_made) == "couldn't get a connection: no more"
