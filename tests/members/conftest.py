"""Two boards, a projection that a test drives, and both sources asked at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.conformance.conftest import World, still, world
from tests.projection.pipeline import Pipeline, pipeline, wait_until
from truerank.model import MemberChange, Source
from truerank.settings import Settings

BY: Any = {"actor": "op", "reason": "test", "timeout_s": 0.0}


class Club(World):
    """A world with a board `b`, kept as a whole and by day, and commands about members."""

    def does(self, action: str, member: str, *args: Any, **kwargs: Any) -> MemberChange:
        """One command, committed; the projection doesn't know of it yet."""
        name = "merge_members" if action == "merge" else f"{action}_member"
        change: MemberChange = getattr(self.client, name)(member, *args, **BY, **kwargs)
        return change

    def shown(self, board: str = "b", season: str | None = None) -> dict[str, tuple[int, str]]:
        """Rank and score of everybody with a place, the same in both sources."""
        page = self.top(board, season, limit=1000)
        assert page.total == len(page.entries)
        return {entry.member: (entry.rank, entry.score) for entry in page.entries}

    def settled(self, board: str = "b", season: str | None = None) -> dict[str, tuple[int, str]]:
        """The same once the projection knows everything."""
        self.project()
        assert self.differences() == []
        return self.shown(board, season)

    def until_blocked(self, conn: psycopg.Connection[Any]) -> None:
        """Return once a connection waits for another one's lock."""
        blocked = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
        pid = conn.info.backend_pid
        wait_until(
            lambda: self.pipeline.conn.execute(blocked, (pid,)).fetchone() == (True,),
            "somebody to wait",
        )

    def in_sql(self, board: str = "b") -> dict[str, str]:
        """Scores of everybody with a place, by PostgreSQL alone."""
        page = self.client.top(board, limit=1000, source=Source.DATABASE)
        return {entry.member: entry.score for entry in page.entries}


@pytest.fixture
def club(database_url: str, redis_url: str) -> Iterator[Club]:
    """Nobody has scored yet."""
    with world(database_url, redis_url) as made:
        made.client.create_board("b", seasons=["all", "day"])
        yield Club(made.pipeline, made.projector)


@pytest.fixture
def begin() -> Iterator[Callable[..., Future[Any]]]:
    """A function that starts another one in a thread of its own and returns its future."""
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    return still(database_url, redis_url)


@pytest.fixture
def single(settings: Settings) -> Iterator[Pipeline]:
    """A pipeline of one group with one board `b`, kept as a whole and by day; nothing runs."""
    with pipeline(settings, groups=1) as made:
        made.client.create_board("b", seasons=["all", "day"])
        yield made
