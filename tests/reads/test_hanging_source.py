"""A PostgreSQL that stands still, and ends nothing, costs readers a moment and no answer."""

import asyncio
import time
from collections.abc import Iterator

import msgspec
import pytest

import truerank
from tests.faults.proxy import Proxy, postgresql_through
from tests.projection.pipeline import Pipeline
from truerank import aio
from truerank.errors import DatabaseUnavailable, InvalidInput
from truerank.model import Page, Source
from truerank.settings import Settings

_PATIENCE_S = 30.0


@pytest.fixture
def wire(stopped: Pipeline) -> Iterator[tuple[Proxy, Settings]]:
    """A wire before PostgreSQL, and settings of a reader behind it."""
    assert stopped.settings.database_url is not None
    with postgresql_through(stopped.settings.database_url) as (proxy, url):
        yield (
            proxy,
            msgspec.structs.replace(
                stopped.settings, database_url=url, database_timeout_ms=300, board_cache_ms=1
            ),
        )


def test_a_blocking_reader_gets_what_redis_shows_and_is_told_of_the_rest(
    wire: tuple[Proxy, Settings],
) -> None:
    proxy, settings = wire
    with truerank.Truerank(settings) as client:
        client.top("b")
        client.top("b", source="database")
        proxy.hold()
        began = time.monotonic()

        page = client.top("b")
        with pytest.raises(DatabaseUnavailable):
            client.top("b", consistency="authoritative")

        assert page.freshness.source is Source.PROJECTION
        assert time.monotonic() - began < _PATIENCE_S
        proxy.mend()
        assert client.top("b", consistency="authoritative").freshness.source is Source.DATABASE


def test_an_asyncio_reader_gets_what_redis_shows_and_is_told_of_the_rest(
    wire: tuple[Proxy, Settings],
) -> None:
    proxy, settings = wire

    async def scene() -> tuple[Page, Page]:
        async with aio.Truerank(settings) as client:
            await client.top("b")
            await client.top("b", source="database")
            proxy.hold()
            async with asyncio.timeout(_PATIENCE_S):
                page = await client.top("b")
                with pytest.raises(DatabaseUnavailable):
                    await client.top("b", consistency="authoritative")
            proxy.mend()
            return page, await client.top("b", consistency="authoritative")

    page, after = asyncio.run(scene())

    assert page.freshness.source is Source.PROJECTION
    assert after.freshness.source is Source.DATABASE


@pytest.mark.parametrize("consistency", ["authoritative", "settled"])
def test_what_redis_can_never_be_is_not_asked_of_it(stopped: Pipeline, consistency: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        stopped.client.top("b", source="projection", consistency=consistency)

    assert caught.value.field == "consistency"
