"""The page in a real browser, over a real server with a worker."""

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

import truerank
from truerank.local import running_worker
from truerank.serve.server import run_server
from truerank.settings import Settings

_DEADLINE_S = 20.0


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    # Channels are shared by all logical databases of a server: a prefix of this test's own.
    prefix = "page-" + database_url.partition("?")[0].rpartition("/")[2]
    return Settings(database_url=database_url, redis_url=redis_url, prefix=prefix)


@pytest.fixture
def tr(settings: Settings) -> Iterator[truerank.Truerank]:
    with running_worker(settings), truerank.Truerank(settings) as client:
        yield client


@pytest.fixture
def served(settings: Settings) -> Iterator[str]:
    stop, ready, urls = threading.Event(), threading.Event(), []

    def note(url: str) -> None:
        urls.append(url)
        ready.set()

    thread = threading.Thread(
        target=run_server, args=(settings,), kwargs={"port": 0, "ready": note, "stop": stop}
    )
    thread.start()
    try:
        assert ready.wait(_DEADLINE_S), "the server does not start"
        yield urls[0]
    finally:
        stop.set()
        thread.join(_DEADLINE_S)


@pytest.fixture
async def page(chromium: dict[str, Any]) -> AsyncIterator[Page]:
    """A tab whose errors and refused scripts fail the test."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**chromium)
        page = await browser.new_page(viewport={"width": 1180, "height": 860})
        page.set_default_timeout(_DEADLINE_S * 1000)
        expect.set_options(timeout=_DEADLINE_S * 1000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda said: errors.append(said.text) if "Content Security" in said.text else None,
        )
        yield page
        await browser.close()
        assert errors == []
