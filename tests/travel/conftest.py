"""A board whose past a test looks at, by the clock of its server."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg
import pytest

import truerank
from tests.faults.pooler import caller_options
from truerank import ScoreEvent
from truerank.model import Page
from truerank.settings import Settings

BY: Any = {"actor": "op", "reason": "test"}
AT_ONCE: Any = BY | {"timeout_s": 0.0}  # nothing projects, so nothing is waited for


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Both addresses; nothing is remembered for long."""
    return Settings(
        database_url=database_url, redis_url=redis_url, board_cache_ms=1, cache_max_ms=0
    )


class Past:
    """A client without a worker, and a connection of its own.

    Args:
        tr: of the client.
        conn: in autocommit.
    """

    def __init__(self, tr: truerank.Truerank, conn: psycopg.Connection[Any]) -> None:
        self.tr = tr
        self.conn = conn

    def scores(self, *events: tuple[str, str, int | str], **changes: Any) -> datetime:
        """Events as (id, member, value); the instant after which they had come."""
        given = [
            ScoreEvent(event_id=event_id, member=member, value=value, **changes)
            for event_id, member, value in events
        ]
        for receipt in truerank.submit_scores(self.conn, "b", given):
            assert receipt.outcome is truerank.Outcome.APPLIED, receipt
        return self.now()

    def now(self) -> datetime:
        """By the server's clock: all that has come came before, all else comes later."""
        ((now,),) = self.conn.execute("SELECT clock_timestamp()").fetchall()
        assert isinstance(now, datetime)
        return now

    def at(self, instant: datetime | None, season: str | None = None, **how: Any) -> dict[str, str]:
        """Who has which score, in order."""
        page = self.tr.top("b", season, as_of=instant, limit=1000, **how)
        assert page.total == len(page.entries)
        return {entry.member: entry.score for entry in page.entries}


def ranks(page: Page) -> dict[str, tuple[int, int | None]]:
    """The rank of each row, and the one before."""
    return {entry.member: (entry.rank, entry.rank_before) for entry in page.entries}


@pytest.fixture
def past(settings: Settings) -> Iterator[Past]:
    """An empty board `b` that sums, kept as a whole and by day."""
    assert settings.database_url is not None
    with (
        truerank.Truerank(settings) as tr,
        psycopg.connect(settings.database_url, autocommit=True, **caller_options()) as conn,
    ):
        tr.create_board("b", seasons=["all", "day"])
        yield Past(tr, conn)
