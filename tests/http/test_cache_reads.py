"""Reads behind the pages that a server holds: one for all who wait, no more kept than may be."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.http.stand import Served, Stand, until
from truerank.errors import Busy
from truerank.model import Consistency, Page
from truerank.read.shapes import page_json
from truerank.serve.cache import Pages, Question
from truerank.serve.replies import Encoded


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
        scope = {
            "method": "GET", "raw_path": key.encode(), "query_string": b"", "headers": [],
            "endpoint": ask,
        }  # fmt: skip
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
        await asyncio.sleep(0.05)  # longer than a page may be held
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
