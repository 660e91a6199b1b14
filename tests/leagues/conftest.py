"""A board by month with a league, whose months of 2024 are long over."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

import truerank
from tests.settle.conftest import Connection, conn, connect, tr
from truerank.model import LeagueRule

__all__ = ["Connection", "conn", "connect", "tr"]

Row = tuple[Any, ...]

_COPY = "score, ties, event_at, event_position, moved, sort_key"


class Leagues:
    """A board `b` that sums, by month; a league from May 2024 on.

    Args:
        tr: a client of an empty installation. No worker runs: members are divided when told to.
        conn: a connection to it, in autocommit mode.
    """

    BY: ClassVar[Any] = {"actor": "test", "reason": "a test"}

    def __init__(self, tr: truerank.Truerank, conn: Connection) -> None:
        self.tr = tr
        self.conn = conn
        self.events = 0

    def made(self, operator: str = "sum", order: str = "desc") -> "Leagues":
        self.tr.create_board("b", operator=operator, order=order, seasons=("all", "month"))
        return self

    def set(self, *, size: int = 3, period: str = "month", **how: Any) -> bool:
        start = {"from_season": how.pop("from_season", "2024-05")} if period == "month" else {}
        return self.tr.set_league(
            "b", LeagueRule(period=period, size=size, **how), **start, **self.BY
        )

    def submit(self, *scores: tuple[str, int], month: int = 5) -> list[str]:
        """One event each, a second later than the one before; their ids."""
        batch = []
        for member, value in scores:
            self.events += 1
            at = datetime(2024, month, 3, tzinfo=UTC) + timedelta(seconds=self.events)
            batch.append(
                truerank.ScoreEvent(
                    event_id=f"e{self.events}", member=member, value=value, occurred_at=at
                )
            )
        receipts = self.tr.submit_scores("b", batch)
        assert {receipt.code for receipt in receipts} == {None}
        return [event.event_id for event in batch]

    def divide(self) -> None:
        """Do what a worker does until nothing is left to do."""
        for _ in range(1000):
            if self.tr.divide_members() == 0 and self.tr.divide_members() == 0:
                return
        raise AssertionError("dividing doesn't end")

    def season(self, label: str = "2024-05") -> int:
        return self.tr.season("b", label).ranking

    def cohorts(self, label: str = "2024-05") -> dict[int, list[str]]:
        """The members of each cohort of a season with a standing there, in their order."""
        return {
            cohort.number: [
                entry.member
                for entry in self.tr.top(
                    "b", label, cohort=cohort.number, limit=1000, source="database"
                ).entries
            ]
            for cohort in self.tr.cohorts("b", label)
        }

    def tiers(self) -> dict[str, int]:
        return {each.member: each.tier for each in self.tr.league_tiers("b", "month")}

    def differences(self, label: str = "2024-05") -> list[Row]:
        """What the cohorts of a season say that the season doesn't; see `cohort_differences`."""
        return self.conn.execute(
            "SELECT * FROM truerank.cohort_differences(%s, 10)", (self.season(label),)
        ).fetchall()

    def mirrored(self, label: str = "2024-05") -> int:
        """How many members have one standing in the season and the same in just one cohort.

        Asserts that no member has any other.
        """
        season = self.season(label)
        rows = self.conn.execute(
            f"SELECT member, array_agg(ROW({_COPY})::text ORDER BY ranking),"
            " array_agg(ranking ORDER BY ranking) FROM truerank.standing"
            " WHERE ranking = %(season)s OR ranking IN"
            " (SELECT ranking FROM truerank.cohort WHERE season = %(season)s)"
            " GROUP BY member",
            {"season": season},
        ).fetchall()
        for member, copies, rankings in rows:
            assert len(copies) == 2, (member, rankings)
            assert copies[0] == copies[1], member
            assert rankings[0] == season, member
        return len(rows)

    def close(self, label: str = "2024-05", **how: Any) -> truerank.Season:
        return self.tr.close_season("b", label, actor="test", **how)


@pytest.fixture
def leagues(tr: truerank.Truerank, conn: Connection) -> Leagues:
    """A board that sums, without a league as yet."""
    return Leagues(tr, conn).made()
