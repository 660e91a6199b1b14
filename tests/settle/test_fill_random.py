"""Whatever happens while seasons are added: they are those that the board would have had."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import truerank
from tests.projection.pipeline import Pipeline, differences, pipeline, stepped_settings
from tests.settle.conftest import Connection, Months
from tests.settle.test_fill import DIFFERENCES, STANDINGS
from truerank.errors import EventRefused, MergeRefused
from truerank.model import Source

BY: Any = Months.BY
HOW: dict[str, Any] = {**BY, "timeout_s": 0.0}
MEMBERS = [f"m{n:02}" for n in range(12)]
_ENDS_AFTER = 12  # steps, in which whoever doesn't know of the period may hold it up
START = datetime(2024, 5, 20, tzinfo=UTC)
SEEDS = [int(os.environ["TRUERANK_SEED"])] if "TRUERANK_SEED" in os.environ else range(3)


@pytest.fixture
def made(database_url: str, redis_url: str) -> Iterator[Pipeline]:
    settings = stepped_settings(database_url, redis_url)
    with pipeline(settings, groups=1) as made:
        yield made


class Twins:
    """Two boards to which the same happens; `c` has seasons by week from the beginning."""

    def __init__(self, made: Pipeline, rng: random.Random, operator: str) -> None:
        self.made = made
        self.rng = rng
        self.tr = made.client
        self.projector = made.projector()
        self.events: list[str] = []
        self._numbers = iter(range(100_000))
        self._open: list[Connection] = []
        order = rng.choice(["asc", "desc"])
        for board, seasons in (("b", ["month"]), ("c", ["month", "week"])):
            self.tr.create_board(board, operator=operator, order=order, seasons=seasons)

    def happen(self) -> None:
        """Something, to both."""
        acts: list[Callable[[], object]] = [self.begin, self.end, self.projector.step]
        acts += [self.submit] * 4 + [self.correct] * 2 + [self.change] * 2
        self.rng.choice(acts)()

    def submit(self, conn: Connection | None = None, member: str | None = None) -> None:
        events = [
            truerank.ScoreEvent(
                event_id=f"e{next(self._numbers)}",
                member=member or self.rng.choice(MEMBERS),
                value=self.rng.randrange(-3, 4),
                occurred_at=START + timedelta(hours=self.rng.randrange(24 * 60)),
            )
            for _ in range(self.rng.randrange(1, 6))
        ]
        found = [truerank.submit_scores(conn or self.made.conn, board, events) for board in "bc"]
        assert [r.code for r in found[0]] == [r.code for r in found[1]]
        if conn is None:
            self.events += [receipt.event_id for receipt in found[0] if receipt.code is None]

    def correct(self) -> None:
        event = self.rng.choice(self.events)
        correction, value = f"c{next(self._numbers)}", self.rng.randrange(-3, 4)
        voids = self.rng.random() < 0.5
        for board in "bc":
            if voids:
                self.tr.void_events(board, [event], **BY)
                continue
            with suppress(EventRefused):  # of a final season, or an erased member
                self.tr.amend_event(board, event, value, correction_id=correction, **BY)

    def change(self) -> None:
        member = self.rng.choice(MEMBERS)
        word = self.rng.choice(["hide", "show", "ban", "unban", "reset", "delete", "erase"])
        if self.rng.random() < 0.2:
            with suppress(MergeRefused):
                self.tr.merge_members(member, self.rng.choice(MEMBERS), **HOW)
            return
        getattr(self.tr, f"{word}_member")(member, **HOW)

    def begin(self) -> None:
        """Somebody writes, and commits some time later."""
        if not self._open:
            self._open.append(self.made.connection())
            self.submit(self._open[0], "slow")

    def end(self) -> None:
        while self._open:
            self._open.pop().commit()

    def close(self, label: str) -> None:
        self.end()
        for board in "bc":
            self.tr.close_season(board, label, actor="test")

    def finish(self) -> None:
        """Nobody writes any more, merges are complete, and all of it is projected."""
        self.end()
        conn = self.made.conn
        while conn.execute("SELECT FROM truerank.merging LIMIT 1").fetchone():
            conn.execute("SELECT truerank.sweep_members(100)")
        self.made.settle(self.projector)

    def shown(self, board: str, week: str, source: Source) -> list[tuple[int, str, str]]:
        page = self.tr.top(board, week, limit=100, source=source)
        return [(entry.rank, entry.member, entry.score) for entry in page.entries]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_added_seasons_are_the_same_as_those_of_a_board_that_always_had_them(
    made: Pipeline, operator: str, seed: int
) -> None:
    rng = random.Random(f"{operator} {seed}")
    twins = Twins(made, rng, operator)
    for _ in range(25):
        twins.submit()
    for _ in range(10):
        twins.happen()
    twins.close("2024-05")

    twins.tr.add_seasons("b", "week", **BY)
    closes = rng.randrange(8)
    for step in range(60):
        twins.happen()
        if step == closes:
            twins.close("2024-06")
        filled = twins.tr.fill_seasons("b", members_max=rng.randrange(1, 4))
        if filled.done:
            break
        if step > _ENDS_AFTER:
            twins.end()
    else:
        pytest.fail("it comes to no end")
    for _ in range(5):
        twins.happen()
    twins.finish()

    assert made.conn.execute(DIFFERENCES).fetchall() == []
    rows = [[row[:3] for row in made.conn.execute(STANDINGS, (board,))] for board in "bc"]
    assert rows[0] == rows[1]
    assert differences(made) == []
    weeks = {season.label for season in twins.tr.seasons("c", period="week")}
    assert len(weeks) >= 8
    for week in weeks:
        for source in Source:
            assert twins.shown("b", week, source) == twins.shown("c", week, source), week
