"""A pipeline whose answers come from either source."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

import truerank
from tests.projection.pipeline import Pipeline, differences, pipeline
from truerank.model import Page, ScoreEvent, Source
from truerank.projection.projector import Projector
from truerank.settings import Settings


class World:
    """A database, its projection, and a client of both."""

    def __init__(self, pipeline: Pipeline, projector: Projector) -> None:
        self.pipeline = pipeline
        self.client = pipeline.client
        self.projector = projector

    def submit(self, board: str, events: Sequence[ScoreEvent]) -> list[truerank.Receipt]:
        """Submit, and project until both sources know it."""
        receipts = truerank.submit_scores(self.pipeline.conn, board, events)
        self.project()
        return receipts

    def scores(self, board: str, *scores: tuple[str, int | str]) -> list[truerank.Receipt]:
        """One event per pair of member and value; a member may come again."""
        name = f"{board} {self.pipeline.conn.info.backend_pid}"
        ((used,),) = self.pipeline.conn.execute("SELECT count(*) FROM truerank.event").fetchall()
        return self.submit(
            board,
            [
                ScoreEvent(event_id=f"{name} {used + i}", member=member, value=value)
                for i, (member, value) in enumerate(scores)
            ],
        )

    def top(self, *args: Any, **kwargs: Any) -> Page:
        return self._ask(self.client.top, *args, **kwargs)

    def around(self, *args: Any, **kwargs: Any) -> Page:
        return self._ask(self.client.around, *args, **kwargs)

    def place(self, *args: Any, **kwargs: Any) -> Page:
        return self._ask(self.client.place, *args, **kwargs)

    def places(self, *args: Any, **kwargs: Any) -> Page:
        return self._ask(self.client.places, *args, **kwargs)

    def _ask(self, question: Callable[..., Page], *args: Any, **kwargs: Any) -> Page:
        """The one answer of both sources."""
        pages = [question(*args, source=source, **kwargs) for source in Source]
        assert {page.freshness.source for page in pages} == set(Source)
        assert replace(pages[0], freshness=pages[1].freshness) == pages[1]
        return pages[0]

    def project(self) -> None:
        """Step until nothing is left to do."""
        self.projector.step()
        while self.projector.step() or not self.projector.whole:
            pass

    def differences(self) -> list[str]:
        return differences(self.pipeline)


def still(database_url: str, redis_url: str) -> Settings:
    """Both addresses; nothing is due by time alone, and no answer is remembered."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        heartbeat_ms=3_600_000,
        lease_ms=3_600_000,
        board_cache_ms=1,
        cache_max_ms=0,
    )


@contextmanager
def world(database_url: str, redis_url: str) -> Iterator[World]:
    with pipeline(still(database_url, redis_url), groups=2) as made:
        made_of = World(made, made.projector())
        made_of.project()
        yield made_of


@pytest.fixture
def either(database_url: str, redis_url: str) -> Iterator[World]:
    """An empty world."""
    with world(database_url, redis_url) as made:
        yield made
