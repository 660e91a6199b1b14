"""Boards of a test's own, and seasons that are over."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import psycopg
import pytest

import truerank
from tests.faults.pooler import caller_options

Connection = psycopg.Connection[Any]


@pytest.fixture
def tr(database_url: str, redis_url: str) -> Iterator[truerank.Truerank]:
    """A client. No worker runs: it reads from PostgreSQL."""
    with truerank.connect(database_url, redis_url) as client:
        yield client


@pytest.fixture
def connect(database_url: str) -> Iterator[Callable[..., Connection]]:
    """A function that opens connections, in autocommit unless told otherwise."""
    opened: list[Connection] = []
    usual = {"autocommit": True, "options": "-c statement_timeout=30s", **caller_options()}

    def connect(**options: Any) -> Connection:
        conn = psycopg.connect(database_url, **{**usual, **options})
        opened.append(conn)
        return conn

    yield connect
    for conn in opened:
        conn.close()


@pytest.fixture
def conn(connect: Callable[..., Connection]) -> Connection:
    """One connection in autocommit: each statement is a transaction."""
    return connect()


class Months:
    """A board by month, whose months of 2024 are long over.

    Args:
        tr: a client of an empty installation.
        conn: a connection to it.
        operator: of the board.
        order: of the board.
        made: there is such a board already.
    """

    BY: ClassVar[Any] = {"actor": "test", "reason": "a test"}

    def __init__(
        self,
        tr: truerank.Truerank,
        conn: Connection,
        operator: str = "sum",
        order: str = "desc",
        *,
        made: bool = False,
    ) -> None:
        self.tr = tr
        self.conn = conn
        if not made:
            tr.create_board("b", operator=operator, order=order, seasons=("all", "month"))

    def submit(self, *events: tuple[str, str, int], month: int = 6) -> list[truerank.Receipt]:
        """Events as (id, member, value), one second after the other in a month of 2024."""
        start = datetime(2024, month, 15, tzinfo=UTC)
        return self.tr.submit_scores(
            "b",
            [
                truerank.ScoreEvent(
                    event_id=event_id,
                    member=member,
                    value=value,
                    occurred_at=start + timedelta(seconds=n),
                )
                for n, (event_id, member, value) in enumerate(events)
            ],
        )

    def rules(self, **changes: object) -> None:
        self.tr.update_board("b", changes, **self.BY)

    def close(self, label: str = "2024-06", **how: Any) -> truerank.Season:
        return self.tr.close_season("b", label, actor="test", **how)

    def settled(self, label: str = "2024-06", **how: Any) -> list[tuple[int, str, str]]:
        """The rows of the settlement: rank, member, score."""
        page = self.tr.top("b", label, limit=1000, consistency="settled", **how)
        assert (page.state, page.total) == ("final", len(page.entries))
        return [(entry.rank, entry.member, entry.score) for entry in page.entries]

    def proven(self, label: str = "2024-06") -> list[tuple[int, bool, bool]]:
        """Of each revision: its number, whether events give its digest, whether all are there."""
        ranking = self.tr.season("b", label).ranking
        return self.conn.execute(
            "SELECT s.revision, s.digest = d.digest AND s.population = d.population, d.complete"
            " FROM truerank.settlement AS s,"
            " truerank.settlement_digest_from_events(s.ranking, s.revision) AS d"
            " WHERE s.ranking = %s ORDER BY s.revision",
            (ranking,),
        ).fetchall()


@pytest.fixture
def months(tr: truerank.Truerank, conn: Connection) -> Months:
    """A board that sums."""
    return Months(tr, conn)
